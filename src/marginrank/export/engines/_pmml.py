"""A reference of PMML: regressions on features, and on fields that are derived from them."""

from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from marginrank._utils.types import Floats
from marginrank.export.engines._documents import Documents

PMML = "{http://www.dmg.org/PMML-4_4}"


def regression(content: bytes, documents: Documents) -> Floats:
    """Add up a RegressionTable."""
    root = ElementTree.fromstring(content)
    fields = {
        field.attrib["name"]: _replaced(field, documents)
        for field in root.iter(f"{PMML}MiningField")
    }
    for derived in root.iter(f"{PMML}DerivedField"):
        (rule,) = derived
        fields[derived.attrib["name"]] = RULES[rule.tag](rule, fields[rule.attrib["field"]])
    (table,) = root.iter(f"{PMML}RegressionTable")
    total = np.full(len(documents.X), float(table.attrib["intercept"]))
    for predictor in table.iter(f"{PMML}NumericPredictor"):
        total += float(predictor.attrib["coefficient"]) * fields[predictor.attrib["name"]]
    for term in table.iter(f"{PMML}PredictorTerm"):
        product = np.prod([fields[factor.attrib["field"]] for factor in term], axis=0)
        total += float(term.attrib["coefficient"]) * product
    return total


def _replaced(field: Element, documents: Documents) -> Floats:
    """Return a feature, with what its field has for missing values."""
    values = documents.X[:, documents.places[field.attrib["name"]]]
    instead = float(field.get("missingValueReplacement", "nan"))
    return np.where(np.isnan(values), instead, values)


def _norm_continuous(rule: Element, x: Floats) -> Floats:
    """Interpolate between the two points around x, or from the two that are next to it.

    Outliers are as they are, or the extreme values.
    """
    knots = np.array([float(point.attrib["orig"]) for point in rule])
    norms = np.array([float(point.attrib["norm"]) for point in rule])
    right = np.clip(np.searchsorted(knots, x, side="right"), 1, knots.size - 1)
    left = right - 1
    share = (x - knots[left]) / (knots[right] - knots[left])
    if rule.attrib["outliers"] == "asExtremeValues":
        share = np.clip(share, 0.0, 1.0)
    y = norms[left] + share * (norms[right] - norms[left])
    return np.where(np.isnan(x), float(rule.attrib["mapMissingTo"]), y)


def _discretize(rule: Element, x: Floats) -> Floats:
    """Look up the interval that holds x; all are closed."""
    y = np.full(x.size, float(rule.attrib["defaultValue"]))
    for entry in rule:
        (interval,) = entry
        low, high = (float(interval.attrib[side]) for side in ("leftMargin", "rightMargin"))
        y[(low <= x) & (x <= high)] = float(entry.attrib["binValue"])
    return np.where(np.isnan(x), float(rule.attrib["mapMissingTo"]), y)


RULES = {f"{PMML}NormContinuous": _norm_continuous, f"{PMML}Discretize": _discretize}
