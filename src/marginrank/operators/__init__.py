"""Where X is, and what multiplies it. A new operator is a folder here and a line below."""

from importlib import import_module
from operator import attrgetter

from marginrank.data.ranking_data import RankingData
from marginrank.objective.protocols import Matrix

# A function of RankingData that returns its matrix, as "module:name": imported when asked for.
BACKENDS = {
    "native": "marginrank.operators.native:native_matrix",
    "torch": "marginrank.operators.torch.matrix:TorchMatrix.of",
}


def matrix_of(data: RankingData, backend: str = "native") -> Matrix:
    """Return X of some data as a backend holds it."""
    if backend not in BACKENDS:
        raise ValueError(f"backend={backend!r} must be one of {', '.join(map(repr, BACKENDS))}.")
    module, _, name = BACKENDS[backend].partition(":")
    matrix: Matrix = attrgetter(name)(import_module(module))(data)
    return matrix
