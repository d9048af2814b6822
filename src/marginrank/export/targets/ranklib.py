"""RankLib: a Coordinate Ascent model, which is a weighted sum of features by index."""

from marginrank.export.numbers import exact
from marginrank.export.targets._text import WRITTEN_BY
from marginrank.export.weighted_sum import WeightedSum


def write(model: WeightedSum) -> dict[str, bytes]:
    """Return the model; the first line is the name by which RankLib knows it."""
    weights = " ".join(f"{term.place + 1}:{exact(term.weight)}" for term in model.listed())
    return {"": f"## Coordinate Ascent\n## {WRITTEN_BY}\n{weights}\n".encode("ascii")}
