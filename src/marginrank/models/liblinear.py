"""Model files of LIBLINEAR-ranksvm (solver 8)."""

import os

import numpy as np

from marginrank._utils.atomic_files import atomic_write
from marginrank.models._text import Lines, format_weight, shorten
from marginrank.models.linear_model import LinearModel

SOLVER = "L2R_L2LOSS_RANKSVM"
FIELDS = ("solver_type", "nr_class", "nr_feature", "bias")


def write(model: LinearModel, path: str | os.PathLike[str]) -> None:
    """Write the weights, to be read by LIBLINEAR-ranksvm's predict."""
    header = f"solver_type {SOLVER}\nnr_class 2\nnr_feature {model.coef.size}\nbias -1\nw\n"
    weights = "".join(f"{format_weight(value)} \n" for value in model.coef.tolist())
    with atomic_write(path) as file:
        file.write((header + weights).encode("ascii"))


def read(path: str) -> LinearModel:
    """Read the weights."""
    lines = Lines(path)
    n_features = _read_header(lines)
    coef = np.array([_read_weight(lines, k, n_features) for k in range(n_features)])
    lines.end(f"the {n_features} weights that nr_feature announces")
    return LinearModel(coef, {})


def _read_weight(lines: Lines, k: int, n_features: int) -> float:
    line = lines.next(f"weight {k + 1} of {n_features}")
    return lines.number_of(line, f"weight {k + 1}")


def _read_header(lines: Lines) -> int:
    """Return the number of features; the fields come in any order, w last."""
    n_features = None
    missing = set(FIELDS)
    while (line := lines.next("w")) != "w":
        name, _, value = line.partition(" ")
        if name not in missing:
            lines.fail(f"{shorten(line)} is no field of a ranking model, or there twice")
        missing.remove(name)
        if name == "nr_feature":
            n_features = lines.integer_of(value.strip(), name, at_least=1)
        else:
            _check_field(lines, name, value.strip())
    if missing or n_features is None:
        lines.fail(f"w comes before {', '.join(f for f in FIELDS if f in missing)}")
    return n_features


def _check_field(lines: Lines, name: str, value: str) -> None:
    if name == "solver_type" and value != SOLVER:
        lines.fail(f"solver_type is {shorten(value)}; only {SOLVER} models rank")
    if name == "nr_class" and value != "2":
        lines.fail(f"nr_class is {shorten(value)} and must be 2 in a ranking model")
    if name == "bias" and lines.number_of(value, name) >= 0:
        lines.fail(
            f"bias is {value}: a feature was added to the data, which RankSVM does not do; train "
            "without -B"
        )
