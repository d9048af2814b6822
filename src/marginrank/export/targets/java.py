"""Java: a class with one function of an array, in float64.

The initialiser of a class is a method, of 64 kB at most: arrays of many numbers and names are in
classes of their own.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from marginrank._base.parameters import ParameterError, given
from marginrank.export.curve_sum import CurveSum, flat
from marginrank.export.names import java_quoted
from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import Sum, WeightedSum

# Words of the language, and names that the file has for other things.
NO_CLASS = re.compile(
    r"abstract|assert|boolean|break|byte|case|catch|char|class|const|continue|default|do|double|"
    r"else|enum|extends|false|final|finally|float|for|goto|if|implements|import|instanceof|int|"
    r"interface|long|native|new|null|package|permits|private|protected|public|record|return|sealed|"
    r"short|static|strictfp|super|switch|synchronized|this|throw|throws|transient|true|try|var|"
    r"void|volatile|while|yield|java|Double|String|(Names|Weights|Curves)\d+"
)
PART = 500  # entries of an array; of knots more, as those of a curve stay together
Arrays = Mapping[str, Sequence[str]]
TEXT = """\
// {written_by}

/** Scores documents by a {sum}. */
public final class {name} {{
    private static final double OFFSET = {offset};

    private {name}() {{}}

    /** Returns the names of the features, in the order that score takes. */
    public static String[] features() {{
        java.util.List<String> names = new java.util.ArrayList<>();
{collect}
        return names.toArray(new String[0]);
    }}

    /** Returns the score of a document; NaN stands for a feature that is missing. */
    public static double score(double[] features) {{
        double score = OFFSET;
{add}
        return score;
    }}

{functions}{classes}}}
"""
NAMES = """
    private static final class {part} {{
        static final String[] VALUES = {{
{names}
        }};
    }}
"""
ARRAYS = """
    private static final class {part} {{{arrays}
    }}
"""
ARRAY = """
        static final {kind}[] {name} = {{
{entries}
        }};"""
ADD_PRODUCTS = """\
    private static double add(double score, double[] features, int[] places, double[] weights) {
        for (int k = 0; k < places.length; k++) {
            double value = features[places[k]];
            if (!Double.isNaN(value)) {
                score += weights[k] * value;
            }
        }
        return score;
    }
"""
ADD_CURVES = """\
    private static double add(
            double score, double[] features, int[] places, int[] starts, double[] missing,
            int[] categorical, double[] knots, double[] values) {
        for (int k = 0; k < places.length; k++) {
            double value = features[places[k]];
            int first = starts[k];
            int end = starts[k + 1];
            if (Double.isNaN(value)) {
                score += missing[k];
            } else if (categorical[k] != 0) {
                int found = above(knots, first, end, value) - 1;
                score += found >= first && knots[found] == value ? values[found] : missing[k];
            } else if (end - first == 1) {
                score += values[first];
            } else {
                int right = above(knots, first + 1, end - 1, value);
                int left = right - 1;
                score += values[left]
                        + (value - knots[left]) / (knots[right] - knots[left])
                                * (values[right] - values[left]);
            }
        }
        return score;
    }

    /** Returns the place of the first knot above a value, or the end. */
    private static int above(double[] knots, int first, int end, double value) {
        while (first < end) {
            int middle = (first + end) >>> 1;
            if (knots[middle] <= value) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        return first;
    }
"""
TYPES = {"places": "int", "starts": "int", "categorical": "int"}  # others are double


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return a source file; its name must be that of the class."""
    parts = [
        {
            "places": [str(term.place) for term in part],
            "weights": [exact(term.weight) for term in part],
        }
        for part in _parts(model.terms)
    ]
    return _source(model, "weighted sum of features", "Weights", parts, ADD_PRODUCTS)


def write_curves(model: CurveSum) -> dict[str, bytes]:
    """Return a source file; its name must be that of the class."""
    sizes = [term.curve.knots.size for term in model.terms]
    before = (np.cumsum(sizes) - sizes) // PART
    parts = [
        flat([model.terms[k] for k in np.flatnonzero(before == part)]) for part in np.unique(before)
    ]
    return _source(model, "sum of curves of features", "Curves", parts, ADD_CURVES)


def _source(
    model: Sum[Any], kind: str, prefix: str, parts: Sequence[Arrays], functions: str
) -> dict[str, bytes]:
    if NO_CLASS.fullmatch(model.name):
        raise ParameterError(
            given("name", model.name), " cannot be the name of this class in Java; choose another."
        )
    names = _parts(model.features)
    classes = [
        *(
            NAMES.format(part=f"Names{k}", names=_lines(map(java_quoted, part)))
            for k, part in enumerate(names)
        ),
        *(ARRAYS.format(part=f"{prefix}{k}", arrays=_arrays(part)) for k, part in enumerate(parts)),
    ]
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        sum=kind,
        offset=exact(model.offset),
        collect="\n".join(_collect(k) for k in range(len(names))),
        add="\n".join(_add(f"{prefix}{k}", part) for k, part in enumerate(parts)),
        functions=functions,
        classes="".join(classes),
    )
    return {"": text.encode("ascii")}


def _parts(entries: Sequence[Any]) -> list[Sequence[Any]]:
    return [entries[k : k + PART] for k in range(0, len(entries), PART)]


def _arrays(arrays: Arrays) -> str:
    return "".join(
        ARRAY.format(kind=TYPES.get(name, "double"), name=name.upper(), entries=_lines(entries))
        for name, entries in arrays.items()
    )


def _collect(k: int) -> str:
    return f"        names.addAll(java.util.Arrays.asList(Names{k}.VALUES));"


def _add(part: str, arrays: Arrays) -> str:
    given = ", ".join(f"{part}.{name.upper()}" for name in arrays)
    return f"        score = add(score, features, {given});"


def _lines(values: Iterable[str]) -> str:
    return "\n".join(f"            {value}," for value in values)
