"""Export to Java: a class whose method takes an array of features and returns a score."""

import re

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.names import java_quoted
from marginrank.export.sums import CurveSum, WeightedSum
from marginrank.export.text import WRITTEN_BY, entry_lines, exact

# Names that a class cannot have: keywords of Java, and names that the file itself defines.
NO_CLASS = re.compile(
    r"abstract|assert|boolean|break|byte|case|catch|char|class|const|continue|default|do|double|"
    r"else|enum|extends|false|final|finally|float|for|goto|if|implements|import|instanceof|int|"
    r"interface|long|native|new|null|package|permits|private|protected|public|record|return|sealed|"
    r"short|static|strictfp|super|switch|synchronized|this|throw|throws|transient|true|try|var|"
    r"void|volatile|while|yield|java|Double|String|Math|Place|"
    r"(Names|Places|Weights|Starts|Categorical|Knots|Values)\d+"
)
# A class initializer is a method of at most 64 kB, so long arrays are split over nested classes.
PART = 500  # entries per nested class
TEXT = """\
// {written_by}

/** Scores documents by a {sum}. */
public final class {name} {{
    private static final double OFFSET = {offset};
{fields}

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
FIELD = """\
    private static final {kind}[] {name} = java.util.stream.Stream.of(
            {parts}).flatMapTo{stream}(java.util.Arrays::stream).toArray();"""
PART_CLASS = """
    private static final class {part} {{
        static final {kind}[] PART = {{
{entries}
        }};
    }}
"""
ADD_PRODUCTS = """\
        for (int k = 0; k < PLACES.length; k++) {
            double value = features[PLACES[k]];
            if (!Double.isNaN(value)) {
                score += WEIGHTS[k] * value;
            }
        }"""
ADD_CURVES = """\
        int k = 0;
        int at = 0;
        for (; k < {n_curves}; at += nodes(k), k++) {{
            Place x = find(features[PLACES[k]], k);
            score += between(at + x.left, x.share);
        }}"""
ADD_GRIDS = """
        for (; k < PLACES.length; at += nodes(k) * nodes(k + 1), k += 2) {
            Place row = find(features[PLACES[k]], k).inside();
            Place column = find(features[PLACES[k + 1]], k + 1).inside();
            int corner = at + row.left * nodes(k + 1) + column.left;
            double above = between(corner, column.share);
            double below = between(corner + nodes(k + 1), column.share);
            score += above + row.share * (below - above);
        }"""
CURVES = """
    /** Returns the position of a value on axis k; missing or unknown: its first node. */
    private static Place find(double value, int k) {{
        int first = STARTS[k];
        int end = STARTS[k + 1];
        if (Double.isNaN(value)) {{
            return new Place(0, 0.0);
        }}
        if (CATEGORICAL[k] != 0) {{
            int found = above(first, end, value) - 1;
            boolean known = found >= first && KNOTS[found] == value;
            return known ? new Place(found - first, 1.0) : new Place(0, 0.0);
        }}
        if (end - first == 1) {{
            return new Place(0, 1.0);
        }}
        int right = above(first + 1, end - 1, value);
        double share = (value - KNOTS[right - 1]) / (KNOTS[right] - KNOTS[right - 1]);
        return new Place(right - first, share);
    }}

    /** Returns the place of the first knot above a value, or the end. */
    private static int above(int first, int end, double value) {{
        while (first < end) {{
            int middle = (first + end) >>> 1;
            if (KNOTS[middle] <= value) {{
                first = middle + 1;
            }} else {{
                end = middle;
            }}
        }}
        return first;
    }}

    /** Returns the number of nodes of axis k: one for missing values, one per knot. */
    private static int nodes(int k) {{
        return STARTS[k + 1] - STARTS[k] + 1;
    }}

    /** Returns the value between two nodes by linear interpolation. */
    private static double between(int left, double share) {{
        return VALUES[left] + share * (VALUES[left + 1] - VALUES[left]);
    }}

    /** A node, and a relative position between it and the next node. */
    private static final class Place {{
        final int left;
        final double share;

        Place(int left, double share) {{
            this.left = left;
            this.share = share;
        }}{inside}
    }}
"""
INSIDE = """

        /** Functions of two features are constant beyond their outer knots. */
        Place inside() {
            return new Place(left, Math.min(Math.max(share, 0.0), 1.0));
        }"""
TYPES = {"names": "String", "places": "int", "starts": "int", "categorical": "int"}


def write(model: WeightedSum | CurveSum) -> dict[str, bytes]:
    """Return the model as a Java source file, which must be named after its class."""
    if NO_CLASS.fullmatch(model.name):
        raise ParameterError(
            given("name", model.name), " cannot be the name of a Java class here; pass another."
        )
    called, add, functions = "weighted sum of features", ADD_PRODUCTS, ""
    if isinstance(model, CurveSum):
        called = "sum of curves of features"
        add = ADD_CURVES.format(n_curves=len(model.listed())) + (ADD_GRIDS if model.grids else "")
        functions = CURVES.format(inside=INSIDE if model.grids else "")
    arrays = {"names": list(map(java_quoted, model.features)), **model.flat()}
    parts = {
        name: {
            f"{name.capitalize()}{k // PART}": entries[k : k + PART]
            for k in range(0, len(entries), PART)
        }
        for name, entries in arrays.items()
    }
    kinds = {name: TYPES.get(name, "double") for name in arrays}
    text = TEXT.format(
        written_by=WRITTEN_BY,
        name=model.name,
        offset=exact(model.offset),
        sum=called,
        add=add,
        functions=functions,
        fields="\n".join(
            FIELD.format(
                kind=kind,
                name=name.upper(),
                stream=kind.capitalize(),
                parts=",\n            ".join(f"{part}.PART" for part in parts[name]),
            )
            for name, kind in kinds.items()
            if name != "names"
        ),
        collect="\n".join(
            f"        names.addAll(java.util.Arrays.asList({part}.PART));"
            for part in parts["names"]
        ),
        classes="".join(
            PART_CLASS.format(part=part, kind=kinds[name], entries=entry_lines(entries, " " * 12))
            for name, named in parts.items()
            for part, entries in named.items()
        ),
    )
    return {"": text.encode("ascii")}
