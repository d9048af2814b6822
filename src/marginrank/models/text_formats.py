"""Text files of linear models in the formats of LIBLINEAR, SVM^rank, SVM-light and RankLib."""

import math
import os
import re
from typing import NoReturn

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.memory import require_memory
from marginrank._utils.types import Floats
from marginrank.models.linear_model import LinearModel

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
MOST_FEATURES = 2**31 - 1  # largest feature index that the LETOR reader accepts

LIBLINEAR_SOLVER = "L2R_L2LOSS_RANKSVM"  # name of solver 8
LIBLINEAR_FIELDS = ("solver_type", "nr_class", "nr_feature", "bias")

SVMRANK_FIRST_LINE = "SVM-light Version"
SVMRANK_KERNELS = {"1": "polynomial", "2": "radial basis function", "3": "sigmoid", "4": "user"}
SVMRANK_HEADER = """\
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

RANKLIB_FIRST_LINE = "## Coordinate Ascent"


class ModelLines:
    """Reader of the lines of a text file with a model.

    Errors name the file and the line that was read last.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0
        with open(path, "rb") as file:
            text = file.read().decode("utf-8", "replace").removeprefix("\ufeff")
        self._lines = text.rstrip().split("\n")

    def next(self, expected: str) -> str:
        """Return the next line of the file; raise ValueError at its end."""
        self.number += 1
        if self.number > len(self._lines):
            self.fail(f"the file ends before {expected}")
        return self._lines[self.number - 1].strip()

    def end(self, last: str) -> None:
        """Raise ValueError if the file has more lines; `last` names what should be at its end."""
        if self.number < len(self._lines):
            self.fail(f"{shorten(self.next(''))} comes after {last}")

    def fail(self, message: str) -> NoReturn:
        """Raise ValueError with a message, the name of the file and the number of the line."""
        raise ValueError(f"{self.path}:{self.number}: {message}.")

    def number_of(self, text: str, name: str) -> float:
        """Return a text as a finite float; raise ValueError, with the field's name, if invalid."""
        value = float(text) if NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            self.fail(f"{name} is {shorten(text)} and must be a finite number")
        return value

    def integer_of(self, text: str, name: str, at_least: int, at_most: int | None = None) -> int:
        """Return a text as an integer; raise ValueError if it is invalid or out of bounds."""
        value = int(text) if INTEGER.fullmatch(text) else None
        if value is None or value < at_least:
            self.fail(f"{name} is {shorten(text)} and must be an integer of at least {at_least}")
        if at_most is not None and value > at_most:
            self.fail(f"{name} is {value} and must be at most {at_most:,}")
        return value

    def model_of(self, weights: dict[int, float], n_features: int) -> LinearModel:
        """Return a linear model with the given weights by feature index, from 1."""
        require_memory(
            8 * n_features,
            f"{self.path}: the highest feature index is {n_features}, and a vector of weights",
            "check it",
        )
        coef = np.zeros(n_features)
        coef[np.fromiter(weights, np.int64) - 1] = np.fromiter(weights.values(), np.float64)
        return LinearModel(coef, {})


def shorten(text: str) -> str:
    """Return the text in quotes, truncated to 40 characters, for messages."""
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _format_weight(value: float) -> str:
    text = f"{value:.16g}"  # the format of LIBLINEAR, if it is exact
    return text if float(text) == value else f"{value:.17g}"


def write_liblinear(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a linear model to a file that LIBLINEAR-ranksvm's ``predict`` reads."""
    n = model.coef.size
    header = f"solver_type {LIBLINEAR_SOLVER}\nnr_class 2\nnr_feature {n}\nbias -1\nw\n"
    weights = "".join(f"{_format_weight(value)} \n" for value in model.coef.tolist())
    with atomic_write(path) as file:
        file.write((header + weights).encode("ascii"))


def read_liblinear(path: str) -> LinearModel:
    """Read the weights of a linear model of LIBLINEAR-ranksvm."""
    lines = ModelLines(path)
    n = _read_liblinear_header(lines)
    coef: Floats = np.array(
        [lines.number_of(lines.next(f"weight {k} of {n}"), f"weight {k}") for k in range(1, n + 1)]
    )
    lines.end(f"the {n} weights of nr_feature")
    return LinearModel(coef, {})


def _read_liblinear_header(lines: ModelLines) -> int:
    """Return the number of features, from header fields in any order before w."""
    n_features = 0
    missing = list(LIBLINEAR_FIELDS)
    while (line := lines.next("w")) != "w":
        name, _, value = line.partition(" ")
        if name not in missing:
            lines.fail(f"{shorten(line)} is not a field of a ranking model, or appears twice")
        missing.remove(name)
        value = value.strip()
        if name == "nr_feature":
            n_features = lines.integer_of(value, name, at_least=1)
        elif name == "solver_type" and value != LIBLINEAR_SOLVER:
            lines.fail(f"solver_type is {shorten(value)}; only {LIBLINEAR_SOLVER} models rank")
        elif name == "nr_class" and value != "2":
            lines.fail(f"nr_class is {shorten(value)} and must be 2 in a ranking model")
        elif name == "bias" and lines.number_of(value, name) >= 0:
            lines.fail(
                f"bias is {value}, but RankSVM adds no feature to the data; train without -B"
            )
    if missing:
        lines.fail(f"w comes before {', '.join(missing)}")
    return n_features


def write_svmrank(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write a linear model to a file that ``svm_rank_classify`` reads.

    The weights are stored as one support vector.
    """
    weights = [
        f"{k}:{_format_weight(value)} " for k, value in enumerate(model.coef.tolist(), 1) if value
    ]
    text = SVMRANK_HEADER.format(n_features=model.coef.size) + "1 " + "".join(weights) + "#\n"
    with atomic_write(path) as file:
        file.write(text.encode("ascii"))


def read_svmrank(path: str) -> LinearModel:
    """Read the weights of a linear model of SVM^rank or SVM-light, w = Σ alpha · x.

    The sum is over support vectors x. The threshold is ignored, because it does not affect
    rankings.
    """
    lines = ModelLines(path)
    n_features, n_vectors = _read_svmrank_header(lines)
    weights: dict[
        int, float
    ] = {}  # the number of features in a damaged header may not fit in memory
    for k in range(1, n_vectors + 1):
        fields = lines.next(f"support vector {k} of {n_vectors}").partition("#")[0].split()
        if not fields:
            lines.fail("the support vector has no alpha")
        alpha = lines.number_of(fields[0], "alpha")
        last = 0
        for field in fields[1:]:
            feature, value = _pair(lines, field, "<feature>:<value>")
            if feature <= last:
                lines.fail(f"feature {feature} comes after {last}; indices must increase")
            if feature > n_features:
                lines.fail(f"feature {feature} is above the highest feature index, {n_features}")
            product = alpha * lines.number_of(value, f"feature {feature}")
            weights[feature] = weights.get(feature, 0.0) + product
            last = feature
    lines.end(f"the {n_vectors} support vectors of the header")
    if not all(map(math.isfinite, weights.values())):
        raise ValueError(f"{path}: the sum of the support vectors overflows.")
    return lines.model_of(weights, n_features)


def _read_svmrank_header(lines: ModelLines) -> tuple[int, int]:
    version = lines.next(f"'{SVMRANK_FIRST_LINE} …'")
    if not version.startswith(SVMRANK_FIRST_LINE):
        lines.fail(f"{shorten(version)} is not '{SVMRANK_FIRST_LINE} …'")
    kernel = _svmrank_field(lines, "kernel type")
    if kernel != "0":
        name = SVMRANK_KERNELS.get(kernel, "unknown")
        lines.fail(f"kernel type {shorten(kernel)} ({name}) is not linear, so there are no weights")
    for letter in "dgsru":
        _svmrank_field(lines, f"kernel parameter -{letter}")
    highest = _svmrank_field(lines, "highest feature index")
    n_features = lines.integer_of(highest, "the highest feature index", 1, MOST_FEATURES)
    _svmrank_field(lines, "number of training documents")
    n_plus_1 = _svmrank_field(lines, "number of support vectors plus 1")
    n_vectors = lines.integer_of(n_plus_1, "the number of support vectors plus 1", at_least=1) - 1
    lines.number_of(_svmrank_field(lines, "threshold b"), "the threshold")
    return n_features, n_vectors


def _svmrank_field(lines: ModelLines, name: str) -> str:
    """Return the value of the next header line; raise ValueError unless it ends with `name`."""
    line = lines.next(f"the {name}")
    value, mark, comment = line.partition("#")
    if not mark or not comment.strip().startswith(name):
        lines.fail(f"{shorten(line)} is not the {name}")
    return value.strip()


def _pair(lines: ModelLines, field: str, form: str) -> tuple[int, str]:
    index, colon, value = field.partition(":")
    if not colon:
        lines.fail(f"{shorten(field)} is not {form}")
    return lines.integer_of(index, "a feature index", 1, MOST_FEATURES), value


def read_ranklib(path: str) -> LinearModel:
    """Read the weights of a Coordinate Ascent model of RankLib.

    The highest feature index is the number of features.
    """
    lines = ModelLines(path)
    if lines.next(f"'{RANKLIB_FIRST_LINE}'") != RANKLIB_FIRST_LINE:
        lines.fail(
            f"the first line is not '{RANKLIB_FIRST_LINE}', the only kind of RankLib model that is "
            "supported"
        )
    line = ""
    while not line or line.startswith("##"):
        line = lines.next("the weights")
    weights: dict[int, float] = {}
    for field in line.split():
        feature, value = _pair(lines, field, "<feature>:<weight>")
        if feature in weights:
            lines.fail(f"feature {feature} appears twice")
        weights[feature] = lines.number_of(value, f"the weight of feature {feature}")
    lines.end("the weights")
    return lines.model_of(weights, max(weights))
