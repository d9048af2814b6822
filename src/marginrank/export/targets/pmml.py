"""PMML 4.4: a RegressionModel in float64, of features or of fields that are derived from them."""

from collections.abc import Iterator, Sequence
from typing import Any

from marginrank._base.version import __version__
from marginrank.export.curve_sum import CurveSum, CurveTerm
from marginrank.export.names import NOT_IN_XML, refuse, unused, xml_quoted
from marginrank.export.numbers import exact
from marginrank.export.weighted_sum import Sum, WeightedSum
from marginrank.models.additive_model import Curve

STAYS_MISSING = 'invalidValueTreatment="asMissing"'
MISSING_IS_ZERO = f'missingValueReplacement="0" missingValueTreatment="asValue" {STAYS_MISSING}'
DOUBLE = 'optype="continuous" dataType="double"'


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the document, with a field for each feature that has a weight."""
    predictors = [_predictor(xml_quoted(term.name), term.weight) for term in model.terms]
    return _document(model, MISSING_IS_ZERO, predictors)


def write_curves(model: CurveSum) -> dict[str, bytes]:
    """Return the document, with a field for each curve, derived from its feature."""
    taken = {term.name.casefold() for term in model.terms}
    names = []
    for k in range(1, len(model.terms) + 1):
        names.append(unused(f"curve_{k}", taken))
        taken.add(names[-1])
    predictors = [_predictor(f'"{name}"', 1.0) for name in names]
    derived = [line for pair in zip(names, model.terms, strict=True) for line in _derived(*pair)]
    return _document(model, STAYS_MISSING, predictors, derived)


def _document(
    model: Sum[Any], missing: str, predictors: Sequence[str], derived: Sequence[str] = ()
) -> dict[str, bytes]:
    names = [term.name for term in model.terms]
    refuse(names, NOT_IN_XML, "XML has no way to write one of its characters")
    score = unused("score", {name.casefold() for name in names})
    fields = [xml_quoted(name) for name in names]
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


def _derived(name: str, term: CurveTerm) -> Iterator[str]:
    """Yield the lines of what a curve makes of a feature."""
    yield f'   <DerivedField name="{name}" {DOUBLE}>'
    lines = _categories if term.curve.categorical else _straight
    yield from lines(xml_quoted(term.name), term.curve)
    yield "   </DerivedField>"


def _straight(field: str, curve: Curve) -> Iterator[str]:
    """Yield lines between knots, of which PMML wants two; they go on beyond the outer ones."""
    knots, values = curve.knots.tolist(), curve.values.tolist()
    if len(knots) == 1:
        knots, values = [0.0, 1.0], values * 2
    missing = exact(curve.missing)
    yield f'    <NormContinuous field={field} outliers="asIs" mapMissingTo="{missing}">'
    for knot, value in zip(knots, values, strict=True):
        yield f'     <LinearNorm orig="{exact(knot)}" norm="{exact(value)}"/>'
    yield "    </NormContinuous>"


def _categories(field: str, curve: Curve) -> Iterator[str]:
    """Yield an interval of one number for each category: what is compared are numbers, not text."""
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
