"""Backends that store the feature matrix X and multiply with it: C++ kernels, or PyTorch."""

from importlib import import_module
from operator import attrgetter

from marginrank.data.ranking_data import RankingData
from marginrank.objective.protocols import Matrix

# Functions of a RankingData that return its Matrix, as "module:name"; imported when needed.
BACKENDS = {
    "native": "marginrank.operators.native:native_matrix",
    "torch": "marginrank.operators.torch.matrix:TorchMatrix.of",
}


def matrix_of(data: RankingData, backend: str = "native") -> Matrix:
    """Return the feature matrix of `data` for the backend with the given name."""
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} must be one of {', '.join(map(repr, BACKENDS))}.")
    module, _, name = BACKENDS[backend].partition(":")
    matrix: Matrix = attrgetter(name)(import_module(module))(data)
    return matrix
