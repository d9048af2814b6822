"""PMML 4.4: a RegressionModel in float64."""

from marginrank._base.version import __version__
from marginrank.export.names import NOT_IN_XML, refuse, unused, xml_quoted
from marginrank.export.numbers import exact
from marginrank.export.weighted_sum import WeightedSum

MISSING = (
    'missingValueReplacement="0" missingValueTreatment="asValue" invalidValueTreatment="asMissing"'
)


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the document, with a field for each feature that has a weight."""
    names = [term.name for term in model.terms]
    refuse(names, NOT_IN_XML, "XML has no way to write one of its characters")
    score = unused("score", {name.casefold() for name in names})
    fields = [(xml_quoted(term.name), exact(term.weight)) for term in model.terms]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">',
        f' <Header><Application name="marginrank" version={xml_quoted(__version__)}/></Header>',
        f' <DataDictionary numberOfFields="{len(fields)}">',
        *(f'  <DataField name={n} optype="continuous" dataType="double"/>' for n, _ in fields),
        " </DataDictionary>",
        f' <RegressionModel modelName="{model.name}" functionName="regression">',
        "  <MiningSchema>",
        *(f"   <MiningField name={n} {MISSING}/>" for n, _ in fields),
        "  </MiningSchema>",
        "  <Output>",
        f'   <OutputField name="{score}" feature="predictedValue" optype="continuous" '
        'dataType="double"/>',
        "  </Output>",
        f'  <RegressionTable intercept="{exact(model.offset)}">',
        *(f'   <NumericPredictor name={n} coefficient="{w}"/>' for n, w in fields),
        "  </RegressionTable>",
        " </RegressionModel>",
        "</PMML>",
    ]
    return {"": ("\n".join(lines) + "\n").encode()}
