"""Linear model files of SVM^rank and SVM-light."""

import math
import os

from marginrank._utils.atomic_files import atomic_write
from marginrank.models._text import MOST_FEATURES, Lines, format_weight, shorten
from marginrank.models.linear_model import LinearModel

VERSION = "SVM-light Version"
KERNELS = {"1": "polynomial", "2": "radial basis function", "3": "sigmoid", "4": "user-defined"}
HEADER = """\
SVM-light Version V6.20
0 # kernel type
3 # kernel parameter -d 
1 # kernel parameter -g 
1 # kernel parameter -s 
1 # kernel parameter -r 
empty# kernel parameter -u 
{n_features} # highest feature index 
0 # number of training documents 
2 # number of support vectors plus 1 
0 # threshold b, each following line is a SV (starting with alpha*y)
"""  # noqa: W291


def write(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write the weights as one support vector, to be read by svm_rank_classify.

    The number of training documents, which no reader uses, is written as 0.
    """
    weights = [
        f"{k}:{format_weight(value)} " for k, value in enumerate(model.coef.tolist(), 1) if value
    ]
    text = HEADER.format(n_features=model.coef.size) + "1 " + "".join(weights) + "#\n"
    with atomic_write(path) as file:
        file.write(text.encode("ascii"))


def read(path: str) -> LinearModel:
    """Read w = Σ alpha · x; the threshold is dropped, as it does not change any order."""
    lines = Lines(path)
    n_features, n_vectors = _read_header(lines)
    weights: dict[int, float] = {}  # the header may announce more features than memory holds
    for k in range(n_vectors):
        vector = lines.next(f"support vector {k + 1} of {n_vectors}")
        _add_vector(lines, vector, weights, n_features)
    lines.end(f"the {n_vectors} support vectors that the header announces")
    if not all(map(math.isfinite, weights.values())):
        raise ValueError(f"{path}: the sum of the support vectors overflows.")
    return LinearModel(lines.weights_of(weights, n_features), {})


def _read_header(lines: Lines) -> tuple[int, int]:
    """Return the number of features and of support vectors."""
    version = lines.next(f"'{VERSION} …'")
    if not version.startswith(VERSION):
        lines.fail(f"{shorten(version)} is not '{VERSION} …'")
    kernel = _field(lines, "kernel type")
    if kernel != "0":
        name = KERNELS.get(kernel, "unknown")
        lines.fail(f"kernel type {shorten(kernel)} ({name}) is not linear: there are no weights")
    for letter in "dgsru":
        _field(lines, f"kernel parameter -{letter}")
    n_features = lines.integer_of(
        _field(lines, "highest feature index"), "the highest feature index", 1, MOST_FEATURES
    )
    _field(lines, "number of training documents")
    n_plus_1 = _field(lines, "number of support vectors plus 1")
    n_vectors = lines.integer_of(n_plus_1, "the number of support vectors plus 1", at_least=1) - 1
    lines.number_of(_field(lines, "threshold b"), "the threshold")
    return n_features, n_vectors


def _field(lines: Lines, name: str) -> str:
    """Return the value of a header line, which ends in its name."""
    line = lines.next(f"the {name}")
    value, mark, comment = line.partition("#")
    if not mark or not comment.strip().startswith(name):
        lines.fail(f"{shorten(line)} is not the {name}")
    return value.strip()


def _add_vector(lines: Lines, line: str, weights: dict[int, float], n_features: int) -> None:
    """Add alpha · x."""
    fields = line.partition("#")[0].split()
    if not fields:
        lines.fail("the support vector has no alpha")
    alpha = lines.number_of(fields[0], "alpha")
    last = 0
    for field in fields[1:]:
        index, colon, value = field.partition(":")
        if not colon:
            lines.fail(f"{shorten(field)} is not <feature>:<value>")
        feature = lines.integer_of(index, "a feature index", at_least=1)
        if feature <= last:
            lines.fail(f"feature {feature} comes after {last}; indices must increase")
        if feature > n_features:
            lines.fail(f"feature {feature} is above the highest feature index, {n_features}")
        product = alpha * lines.number_of(value, f"feature {feature}")
        weights[feature] = weights.get(feature, 0.0) + product
        last = feature
