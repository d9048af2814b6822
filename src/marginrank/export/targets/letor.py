"""Systems that read LETOR text, where features have indices from 1 on: RankLib and fastrank."""

from marginrank.export.numbers import exact
from marginrank.export.sums import WeightedSum
from marginrank.export.targets._text import WRITTEN_BY, json_file


def write_ranklib(model: WeightedSum) -> dict[str, bytes]:
    """Return a Coordinate Ascent model; the first line is the name by which RankLib knows it."""
    weights = " ".join(f"{term.place + 1}:{exact(term.weight)}" for term in model.listed())
    return {"": f"## Coordinate Ascent\n## {WRITTEN_BY}\n{weights}\n".encode("ascii")}


def write_fastrank(model: WeightedSum) -> dict[str, bytes]:
    """Return the model, for ``CModel.from_dict``; index 0 has a weight that is not used."""
    weights = [0.0] * (1 + max((term.place + 1 for term in model.terms), default=0))
    for term in model.terms:
        weights[term.place + 1] = term.weight
    return {"": json_file({"Linear": {"weights": weights}})}
