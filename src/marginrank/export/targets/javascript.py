"""Export to JavaScript: a function that scores an array or object of features.

It runs in Node.js and in browsers.
"""

from marginrank.export.names import javascript_quoted
from marginrank.export.sums import CurveSum, WeightedSum, term_list
from marginrank.export.text import WRITTEN_BY, entry_lines, exact

TEXT = """\
// {written_by}
(function (root) {{
  "use strict";
  const features = [{features}];
{terms}
  const has = Object.prototype.hasOwnProperty;

  // The score of a document: an array in the order of `features`, or an object by name.
  // {missing}
  function score(values) {{
    const byPlace = Array.isArray(values) || ArrayBuffer.isView(values);
    const valueOf = (place) => {{
      const key = byPlace ? place : features[place];
      return has.call(values, key) && values[key] !== null ? Number(values[key]) : NaN;
    }};
    let total = {offset};
{add}
    return total;
  }}
{functions}
  const model = {{ features, score }};
  if (typeof module === "object" && module.exports) module.exports = model;
  else root.{name} = model;
}})(typeof globalThis === "object" ? globalThis : this);
"""
MISSING = "A value that is absent, undefined, null or NaN counts as 0."
MISSING_IN_CURVES = "An absent, undefined, null, NaN or unknown value adds its learned value."
TERMS = """\
  const places = [{places}];
  const weights = [{weights}];"""
ADD_PRODUCTS = """\
    for (let k = 0; k < places.length; k++) {
      const value = valueOf(places[k]);
      if (!Number.isNaN(value)) total += weights[k] * value;
    }"""
CURVES = """\
  // An axis is the index of a feature, whether it is categorical, and its knots.
  // The nodes of an axis are one for missing values, and one per knot.
  const curves = [  // an axis, and the values at its nodes
{curves}
  ];"""
ADD_CURVES = """\
    for (const [[place, categorical, knots], atNodes] of curves) {
      total += between(atNodes, find(valueOf(place), categorical, knots));
    }"""
FIND = """
  // The index of the node before a value, and the relative position to the next node.
  function find(value, categorical, knots) {
    if (Number.isNaN(value)) return [0, 0];
    let above = 0;
    for (let end = knots.length; above < end; ) {
      const middle = (above + end) >> 1;
      if (knots[middle] <= value) above = middle + 1;
      else end = middle;
    }
    if (categorical) {
      return above > 0 && knots[above - 1] === value ? [above - 1, 1] : [0, 0];
    }
    if (knots.length === 1) return [0, 1];
    const right = Math.min(Math.max(above, 1), knots.length - 1);
    return [right, (value - knots[right - 1]) / (knots[right] - knots[right - 1])];
  }

  // Linear interpolation between two nodes.
  function between(atNodes, [left, share]) {
    return atNodes[left] + share * (atNodes[left + 1] - atNodes[left]);
  }
"""
GRIDS = """
  const grids = [  // two axes, and the values at their nodes: one row per node of the first
{grids}
  ];"""
ADD_GRIDS = """
    for (const [[first, ...rows], [second, ...columns], atNodes] of grids) {
      const [row, down] = inside(find(valueOf(first), ...rows));
      const column = inside(find(valueOf(second), ...columns));
      const above = between(atNodes[row], column);
      const below = between(atNodes[row + 1], column);
      total += above + down * (below - above);
    }"""
INSIDE = """
  // The nearest position between the outer knots; grids are constant beyond these.
  function inside([left, share]) {
    return [left, Math.min(Math.max(share, 0), 1)];
  }
"""


def write(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return the model as a script for Node.js and browsers.

    Without a module system, the script defines a global object with the name of the model.
    """
    if isinstance(model, CurveSum):
        terms, add, functions = CURVES, ADD_CURVES, FIND
        if model.grids:
            terms, add, functions = terms + GRIDS, add + ADD_GRIDS, functions + INSIDE
        terms = terms.format(
            curves=entry_lines(map(term_list, model.terms)),
            grids=entry_lines(map(term_list, model.grids)),
        )
        missing = MISSING_IN_CURVES
    else:
        terms = TERMS.format(
            places=", ".join(str(term.place) for term in model.terms),
            weights=", ".join(exact(term.weight) for term in model.terms),
        )
        missing, add, functions = MISSING, ADD_PRODUCTS, ""
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        features=", ".join(map(javascript_quoted, model.features)),
        offset=exact(model.offset),
        terms=terms,
        missing=missing,
        add=add,
        functions=functions,
    )
    return {"": text.encode("ascii")}
