"""Export to PMML 4.4: a RegressionModel in float64, with a derived field for each curve."""

from collections.abc import Iterator, Sequence

from marginrank._utils.version import __version__
from marginrank.export.names import NOT_IN_XML, check_not_found, unused, xml_quoted
from marginrank.export.sums import CurveSum, WeightedSum
from marginrank.export.text import exact
from marginrank.models.additive_model import Curve

STAYS_MISSING = 'invalidValueTreatment="asMissing"'
MISSING_IS_ZERO = f'missingValueReplacement="0" missingValueTreatment="asValue" {STAYS_MISSING}'
DOUBLE = 'optype="continuous" dataType="double"'


def write(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return the model as a PMML document."""
    if isinstance(model, WeightedSum):
        predictors = [_predictor(xml_quoted(term.name), term.weight) for term in model.terms]
        return _document(model, MISSING_IS_ZERO, predictors)
    taken, derived = {name.casefold() for name in model.used}, list[str]()

    def add(name: str, feature: str, curve: Curve, goes_on: bool = True) -> str:
        """Add a derived field with the value of a curve; return the field's name, made unique."""
        name = unused(name, taken)
        taken.add(name)
        field = xml_quoted(feature)
        rule = _categories(field, curve) if curve.categorical else _straight(field, curve, goes_on)
        derived.extend([f'   <DerivedField name="{name}" {DOUBLE}>', *rule, "   </DerivedField>"])
        return name

    predictors = [
        _predictor(f'"{add(f"curve_{k}", term.name, term.curve)}"', 1.0)
        for k, term in enumerate(model.terms, start=1)
    ]
    # PMML has no functions of two features, so a grid is written as a sum over the nodes of its
    # first feature. A term is the product of two derived fields: the interpolation weight of the
    # node for the first feature, and the value of the grid's row for the second feature.
    for k, grid in enumerate(model.grids, start=1):
        first, second = (axis.name for axis in grid.axes)
        for node, (hat, row) in enumerate(zip(grid.hats, grid.rows, strict=True)):
            near = add(f"grid_{k}_near_{node}", first, hat, goes_on=False)
            there = add(f"grid_{k}_row_{node}", second, row, goes_on=False)
            predictors.append(
                f'   <PredictorTerm coefficient="1.0"><FieldRef field="{near}"/>'
                f'<FieldRef field="{there}"/></PredictorTerm>'
            )
    return _document(model, STAYS_MISSING, predictors, derived)


def _document(
    model: WeightedSum | CurveSum,
    missing: str,
    predictors: Sequence[str],
    derived: Sequence[str] = (),
) -> dict[str, bytes]:
    check_not_found(model.used, NOT_IN_XML, "XML cannot represent one of its characters")
    score = unused("score", {name.casefold() for name in model.used})
    fields = [xml_quoted(name) for name in model.used]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">',
        f' <Header><Application name="marginrank" version={xml_quoted(__version__)}/></Header>',
        f' <DataDictionary numberOfFields="{len(fields)}">',
        *(f"  <DataField name={name} {DOUBLE}/>" for name in fields),
        " </DataDictionary>",
        f' <RegressionModel modelName="{model.name}" functionName="regression">',
        "  <MiningSchema>",
        *(f"   <MiningField name={name} {missing}/>" for name in fields),
        "  </MiningSchema>",
        "  <Output>",
        f'   <OutputField name="{score}" feature="predictedValue" {DOUBLE}/>',
        "  </Output>",
        *(["  <LocalTransformations>", *derived, "  </LocalTransformations>"] if derived else []),
        f'  <RegressionTable intercept="{exact(model.offset)}">',
        *predictors,
        "  </RegressionTable>",
        " </RegressionModel>",
        "</PMML>",
    ]
    return {"": ("\n".join(lines) + "\n").encode()}


def _predictor(quoted: str, weight: float) -> str:
    return f'   <NumericPredictor name={quoted} coefficient="{exact(weight)}"/>'


def _straight(field: str, curve: Curve, goes_on: bool) -> Iterator[str]:
    knots, values = curve.knots.tolist(), curve.values.tolist()
    if len(knots) == 1:  # PMML requires two
        knots, values = [0.0, 1.0], values * 2
    missing, outliers = exact(curve.missing), "asIs" if goes_on else "asExtremeValues"
    yield f'    <NormContinuous field={field} outliers="{outliers}" mapMissingTo="{missing}">'
    for knot, value in zip(knots, values, strict=True):
        yield f'     <LinearNorm orig="{exact(knot)}" norm="{exact(value)}"/>'
    yield "    </NormContinuous>"


def _categories(field: str, curve: Curve) -> Iterator[str]:
    # A category is written as an interval of one number, because PMML compares the ends of
    # intervals as numbers, but categories as text.
    other = exact(curve.missing)
    yield (
        f'    <Discretize field={field} dataType="double" mapMissingTo="{other}" '
        f'defaultValue="{other}">'
    )
    for knot, value in zip(map(exact, curve.knots), map(exact, curve.values), strict=True):
        yield (
            f'     <DiscretizeBin binValue="{value}"><Interval closure="closedClosed" '
            f'leftMargin="{knot}" rightMargin="{knot}"/></DiscretizeBin>'
        )
    yield "    </Discretize>"
