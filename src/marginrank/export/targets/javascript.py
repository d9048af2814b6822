"""JavaScript: one function of an array or an object, for node and for browsers."""

from collections.abc import Iterable
from typing import Any

from marginrank.export.curve_sum import CurveSum
from marginrank.export.names import javascript_quoted
from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import Sum, WeightedSum
from marginrank.models.additive_model import Curve

TEXT = """\
// {written_by}
(function (root) {{
  "use strict";
  const features = [{features}];
  const places = [{places}];
{terms}
  const has = Object.prototype.hasOwnProperty;

  // The score of a document: an array in the order of `features`, or an object by name.
  // {missing}
  function score(values) {{
    const byPlace = Array.isArray(values) || ArrayBuffer.isView(values);
    let total = {offset};
    for (let k = 0; k < places.length; k++) {{
      const key = byPlace ? places[k] : features[places[k]];
      const value = has.call(values, key) && values[key] !== null ? Number(values[key]) : NaN;
{add}
    }}
    return total;
  }}

  const model = {{ features, score }};
  if (typeof module === "object" && module.exports) module.exports = model;
  else root.{name} = model;
}})(typeof globalThis === "object" ? globalThis : this);
"""
CURVE = """\
  const curves = [
{curves}
  ];

  // What a curve adds: straight between its knots, and on beyond the outer ones.
  function added(value, [missing, categorical, knots, values]) {{
    if (Number.isNaN(value)) return missing;
    let above = 0;
    for (let end = knots.length; above < end; ) {{
      const middle = (above + end) >> 1;
      if (knots[middle] <= value) above = middle + 1;
      else end = middle;
    }}
    if (categorical) {{
      return above > 0 && knots[above - 1] === value ? values[above - 1] : missing;
    }}
    if (knots.length === 1) return values[0];
    const right = Math.min(Math.max(above, 1), knots.length - 1);
    const left = right - 1;
    const share = (value - knots[left]) / (knots[right] - knots[left]);
    return values[left] + share * (values[right] - values[left]);
  }}
"""


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return a script; without modules it defines a global of the model's name."""
    weights = _list(exact(term.weight) for term in model.terms)
    return _script(
        model,
        terms=f"  const weights = {weights};",
        missing="What is absent, undefined, null or NaN counts as 0.",
        add="      if (!Number.isNaN(value)) total += weights[k] * value;",
    )


def write_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a script; without modules it defines a global of the model's name."""
    return _script(
        model,
        terms=CURVE.format(curves="\n".join(f"    {_curve(term.curve)}," for term in model.terms)),
        missing="What is absent, undefined, null, NaN or an unknown category adds what its curve "
        "says.",
        add="      total += added(value, curves[k]);",
    )


def _script(model: Sum[Any], **parts: str) -> dict[str, bytes]:
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        features=", ".join(map(javascript_quoted, model.features)),
        places=", ".join(str(term.place) for term in model.terms),
        offset=exact(model.offset),
        **parts,
    )
    return {"": text.encode("ascii")}


def _curve(curve: Curve) -> str:
    knots, values = (_list(map(exact, numbers)) for numbers in (curve.knots, curve.values))
    return f"[{exact(curve.missing)}, {str(curve.categorical).lower()}, {knots}, {values}]"


def _list(entries: Iterable[str]) -> str:
    return f"[{', '.join(entries)}]"
