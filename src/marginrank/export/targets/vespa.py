"""Vespa: a rank profile over attributes, in float64.

Vespa has no quotes for names, so that attributes are identifiers: where a feature is none, its
attribute has a similar name, and a file tells which.
"""

from marginrank._utils.parameters import ParameterError, given
from marginrank.export.names import identifiers
from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY, json_file
from marginrank.export.weighted_sum import WeightedSum

PART = 500  # terms of a function
BUILT_IN = ("default", "unranked")


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the rank profile, and the names of attributes where they are not the features'."""
    if model.name in BUILT_IN:
        raise ParameterError(
            given("name", model.name), " is a rank profile that Vespa has; choose another name."
        )
    names = dict(zip(model.features, identifiers(model.features), strict=True))
    terms = [f"{_value(names[term.name])} * {exact(term.weight)}" for term in model.terms]
    parts = [terms[k : k + PART] for k in range(0, len(terms), PART)]
    calls = [f"{model.name}_part_{number}" for number in range(len(parts))]
    functions = [_function(call, part) for call, part in zip(calls, parts, strict=True)]
    functions.append(_function(f"{model.name}_score", [*calls, exact(model.offset)]))
    text = (
        f"# {WRITTEN_BY}\n"
        f"rank-profile {model.name} inherits default {{\n"
        f"{''.join(functions)}"
        f"    first-phase {{\n        expression: {model.name}_score\n    }}\n"
        "}\n"
    )
    files = {"": text.encode("ascii")}
    renamed = {name: made for name, made in names.items() if name != made}
    return files | ({"names.json": json_file(renamed)} if renamed else {})


def _value(attribute: str) -> str:
    """Return the value of an attribute, which is NaN where it is not set."""
    return f"if (isNan(attribute({attribute})) == 1, 0.0, attribute({attribute}))"


def _function(name: str, terms: list[str]) -> str:
    lines = "\n            + ".join(terms)
    return (
        f"    function {name}() {{\n"
        f"        expression {{\n            {lines}\n        }}\n"
        "    }\n"
    )
