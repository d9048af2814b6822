"""Native kernels of marginrank; use them through marginrank.objective.objective."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Levels = NDArray[np.int32]

class Matrix:
    """A view of X; never copies it."""

    @staticmethod
    def dense(x: NDArray[Any]) -> Matrix: ...
    @staticmethod
    def csr(
        data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_columns: int
    ) -> Matrix: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def n_entries(self) -> int: ...
    def dot(self, v: Floats, rows: Integers | None = None, threads: int = 1) -> Floats: ...
    def column(self, j: int, rows: Integers | None = None, threads: int = 1) -> Floats: ...
    def take_columns(self, columns: Integers, threads: int = 1) -> Matrix: ...
    def magnitudes(self, threads: int = 1) -> Floats: ...
    def sum(self, threads: int = 1) -> float: ...

class Incidence:
    """A list of pairs, by document."""

    def __init__(self, n_documents: int, pairs: Integers, weight: Floats | None) -> None: ...

class Pairs:
    """Documents grouped by query, the pairs among them and their loss."""

    def __init__(
        self,
        *,
        n_rows: int,
        offsets: Integers,
        rows: Integers | None,
        level: Levels,
        n_levels: Levels,
        query_weight: Floats,
        preferred: Floats | None,
        other: Floats | None,
        margin: Floats | None,
        adjacent: bool,
        pieces: Floats,
    ) -> None: ...
    @staticmethod
    def of_list(
        *,
        n_rows: int,
        offsets: Integers,
        rows: Integers | None,
        incidence: Incidence,
        query_weight: Floats,
        margin: Floats | None,
        pieces: Floats,
    ) -> Pairs: ...

class Point:
    """What a vector of scores leaves for Hessian-vector products."""

class LetorReader:
    """Parses LETOR text, piece by piece."""

    def __init__(
        self,
        float64: bool,
        first_index: int,
        n_features: int,
        missing: float | None,
        keep_comments: bool,
    ) -> None: ...
    def begin_source(self) -> None: ...
    def feed(
        self, text: bytes, first: int, last: int, threads: int
    ) -> tuple[int, int, bytes] | None: ...
    def shape(self) -> tuple[int, int, int, bool]: ...
    def dense(self, threads: int) -> NDArray[Any]: ...
    def csr(self) -> tuple[NDArray[Any], NDArray[np.int32], Integers]: ...
    def documents(self) -> tuple[Floats, Integers, list[bytes], list[bytes]]: ...

def format_letor(
    X: Matrix,
    y: Floats,
    first: int,
    last: int,
    prefixes: list[bytes],
    suffixes: list[bytes],
    first_index: int,
) -> bytes: ...
def evaluate(
    X: Matrix, pairs: Pairs, w: Floats, like: Point | None, threads: int
) -> tuple[Floats, Floats, Floats, Floats, Point]: ...
def evaluate_scores(
    pairs: Pairs, scores: Floats, like: Point | None, threads: int
) -> tuple[Floats, Floats, Point]: ...
def active_weights(pairs: Pairs, scores: Floats, threads: int) -> Floats: ...
def hess_vec(X: Matrix, point: Point, v: Floats, threads: int) -> tuple[Floats, Floats]: ...
def hess_vec_scores(point: Point, u: Floats, threads: int) -> Floats: ...
def hessian(X: Matrix, point: Point, threads: int) -> Floats: ...
def hess_diag(X: Matrix, point: Point, threads: int) -> Floats: ...
def transpose_dot(X: Matrix, pairs: Pairs, z: Floats, threads: int) -> Floats: ...
def query_squares(X: Matrix, pairs: Pairs, size: Floats, threads: int) -> Floats: ...
def transpose_dot_by_group(
    X: Matrix, pairs: Pairs, z: Floats, bounds: Integers, threads: int
) -> Floats: ...
def coordinate_descent(
    H: Floats,
    u: Floats,
    residual: Floats,
    l1: float,
    l2: float,
    positive: bool,
    max_passes: int,
    tol: float,
) -> tuple[Floats, Floats, int, float]: ...
def sgd_run(
    X: Matrix,
    pairs: Pairs,
    curved: Pairs,
    weight: Floats,
    order: Integers,
    w: Floats,
    average: Floats,
    gradient: Floats,
    curvature: Floats,
    inverse: Floats,
    counters: Floats,
    options: Floats,
    threads: int,
) -> int: ...
def sgd_step(
    w: Floats,
    average: Floats,
    gradient: Floats,
    curvature: Floats,
    inverse: Floats,
    counters: Floats,
    options: Floats,
) -> None: ...
def rank_labels(
    y: Floats, offsets: Integers, threads: int
) -> tuple[Levels, Levels, Integers, Integers]: ...
def rank_documents(scores: Floats, offsets: Integers, threads: int) -> Integers: ...
def instruction_sets() -> list[str]: ...
def use_instruction_set(name: str) -> None: ...
