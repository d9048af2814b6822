"""fastrank: a linear model, with a weight for each index from 0 on, which no LETOR text has."""

from marginrank.export.targets._text import json_file
from marginrank.export.weighted_sum import WeightedSum


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the model, for ``CModel.from_dict``."""
    weights = [0.0] * (1 + max((term.place + 1 for term in model.terms), default=0))
    for term in model.terms:
        weights[term.place + 1] = term.weight
    return {"": json_file({"Linear": {"weights": weights}})}
