"""Coordinate Ascent models of RankLib: weights by index."""

from marginrank.models._text import MOST_FEATURES, Lines, shorten
from marginrank.models.linear_model import LinearModel

FIRST_LINE = "## Coordinate Ascent"


def is_ranklib(path: str) -> bool:
    """Whether a file begins like a Coordinate Ascent model."""
    with open(path, "rb") as file:
        return file.read(64).removeprefix(b"\xef\xbb\xbf").startswith(FIRST_LINE.encode())


def read(path: str) -> LinearModel:
    """Read the weights; there are as many features as the highest index says."""
    lines = Lines(path)
    if lines.next(f"'{FIRST_LINE}'") != FIRST_LINE:
        lines.fail(f"this is not '{FIRST_LINE}': only such models of RankLib have weights")
    line = ""
    while not line or line.startswith("##"):
        line = lines.next("the weights")
    weights: dict[int, float] = {}
    for field in line.split():
        index, colon, value = field.partition(":")
        if not colon:
            lines.fail(f"{shorten(field)} is not <feature>:<weight>")
        feature = lines.integer_of(index, "a feature index", 1, MOST_FEATURES)
        if feature in weights:
            lines.fail(f"feature {feature} is there twice")
        weights[feature] = lines.number_of(value, f"the weight of feature {feature}")
    lines.end("the weights")
    return LinearModel(lines.weights_of(weights, max(weights)), {})
