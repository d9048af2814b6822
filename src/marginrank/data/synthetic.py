"""Random ranking problems for tests, examples and benchmarks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array, get_index_dtype

from marginrank._utils.parameters import (
    ParameterError,
    check_integer,
    check_number,
    check_share,
    given,
)
from marginrank._utils.types import Floats, Integers
from marginrank.data.validation import check_float_dtype

_BLOCK_ELEMENTS = 1 << 18  # entries of X drawn at a time: few compared with all of X
_FEATURES_PER_FACTOR = 10
_MAX_FACTORS = 16  # bounds the memory of the factors if features are many
_QUERY_OFFSET = 0.5
_MAX_HEAVY_TAIL = 10.0  # expm1(10 * 7) * 1e3 is far below the largest float32: no overflow


def make_ranking(
    n_queries: int = 100,
    docs_per_query: int | tuple[int, int] = 20,
    n_features: int = 20,
    *,
    n_levels: int | None = 5,
    noise: float = 0.5,
    informative: int | None = None,
    correlation: float = 0.0,
    heavy_tail: float = 0.0,
    density: float = 1.0,
    dtype: DTypeLike = np.float64,
    shuffle: bool = False,
    return_coef: bool = False,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> tuple[Any, ...]:
    r"""Return a random ranking problem with a known linear model.

    A document :math:`i` of query :math:`q` has the latent features and the utility

    .. math::

        z_{ij} = \sqrt{1 - \rho}\, g_{ij}
                 + \sigma_j \bigl(\sqrt{\rho}\, f_{i,k(j)} + \tfrac12 b_{q,k(j)}\bigr),
        \qquad u_i = z_i^\top w + \text{noise} \cdot \varepsilon_i,

    with :math:`g, f, b, \varepsilon` standard normal, :math:`\sigma_j = \pm 1` and :math:`\rho` the
    `correlation`. Every feature :math:`j` belongs to one of at most 16 factors :math:`k(j)` of
    about ten features each. The offset :math:`b_q` is common to all documents of a query. The true
    weights :math:`w` are scaled such that :math:`z_i^\top w` has about unit variance within a
    query, so `noise` is relative to the signal. Labels are made from :math:`u`, features from
    :math:`z`.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    docs_per_query : int or (int, int), default=20
        Documents per query, or the smallest and largest number (inclusive) of a uniform
        distribution.
    n_features : int, default=20
        Number of features.
    n_levels : int or None, default=5
        Labels are ``0, ..., n_levels - 1``, cut from the utility at quantiles over all documents.
        Each level is half as frequent as the one below it; with more than five levels, the top
        level is 1/20 as frequent as level 0. None returns the utility as a real-valued label.
    noise : float, default=0.5
        Standard deviation of the noise in the utility.
    informative : int or None, default=None
        Number of features with a non-zero true weight; None for all. In sparse data, frequent
        features are more likely to have one.
    correlation : float in [0, 1), default=0.0
        Correlation of two features of the same factor, up to sign. Close to one, the Hessian is
        ill-conditioned.
    heavy_tail : float in [0, 10], default=0.0
        If positive, ``X[i, j] = c_j * sign(z) * expm1(heavy_tail * abs(z)) / heavy_tail`` with
        ``log10(c_j)`` uniform between plus and minus ``min(2 * heavy_tail, 3)``: columns of very
        different scales with outliers, like raw web search features. Labels do not depend on it.
    density : float in (0, 1], default=1.0
        Expected fraction of stored entries. Below one, `X` is sparse, and the feature of rank r
        occurs about 1/r times as often as the first. Entries that are not stored are zeros of z.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values of `X`.
    shuffle : bool, default=False
        If True, documents are in random order, so queries are not contiguous.
    return_coef : bool, default=False
        If True, also return the true weights.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Random numbers; with an int, the data are the same on every machine up to rounding errors.

    Returns
    -------
    X : ndarray or scipy.sparse.csr_array of shape (n_documents, n_features)
        Features; CSR in canonical format if ``density < 1``.
    y : ndarray of shape (n_documents,), float64
        Labels.
    qid : ndarray of shape (n_documents,), int64
        The query of each document, from 0 to ``n_queries - 1``.
    coef : ndarray of shape (n_features,), float64
        The true weights w, if `return_coef` is True.

    Examples
    --------
    >>> from marginrank import make_ranking
    >>> X, y, qid = make_ranking(n_queries=3, docs_per_query=4, n_features=2, random_state=0)
    >>> X.shape, qid.tolist()
    ((12, 2), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])

    Without noise the real-valued label is the score of the true model:

    >>> X, y, qid, coef = make_ranking(n_levels=None, noise=0, return_coef=True, random_state=0)
    >>> bool(abs(X @ coef - y).max() < 1e-12)
    True
    """
    _check_sizes(n_queries, docs_per_query, n_features, n_levels, informative)
    _check_shape_of_features(noise, correlation, heavy_tail, density)
    value_type = check_float_dtype(dtype)
    rng = _generator(random_state)
    low, high = np.broadcast_to(docs_per_query, 2)
    sizes = rng.integers(low, high, size=n_queries, endpoint=True)
    qid = np.repeat(np.arange(n_queries, dtype=np.int64), sizes)
    if shuffle:
        # Documents are exchangeable given their query, so X need not be permuted.
        rng.shuffle(qid)
    presence = _draw_presence(rng, n_features, density)
    model = _draw_model(rng, n_queries, presence, informative, correlation, heavy_tail)
    draw = _draw_dense if density == 1 else _draw_sparse
    X, utility = draw(rng, model, qid, value_type)
    utility += noise * rng.standard_normal(qid.size)
    y = utility if n_levels is None else _cut_into_levels(utility, n_levels)
    return (X, y, qid, model.coef) if return_coef else (X, y, qid)


@dataclass(frozen=True)
class _Model:
    """Parameters of the distribution that `make_ranking` draws from.

    Arrays have one entry per feature, unless their comment says otherwise.
    """

    presence: Floats  # the probability that a feature is stored
    factor: Integers
    sign: Floats
    scale: Floats
    coef: Floats
    offset: Floats  # (n_queries, n_factors): offset of each query and factor
    correlation: float
    heavy_tail: float

    def draw_factors(self, rng: np.random.Generator, qid: Integers, dtype: Any) -> NDArray[Any]:
        """Return random latent factors of each document, with the offset of its query added."""
        factors = rng.standard_normal((qid.size, self.offset.shape[1]), dtype=dtype)
        factors *= math.sqrt(self.correlation)
        factors += self.offset[qid]
        return factors

    def stretch(self, z: NDArray[Any], scale: Floats) -> None:
        """Turn latent features z into heavy-tailed features of different scales, in place."""
        if self.heavy_tail == 0:
            return
        size = np.abs(z)
        size *= self.heavy_tail
        np.expm1(size, out=size)
        np.copysign(size, z, out=z)
        z *= scale.astype(z.dtype)


def _draw_model(
    rng: np.random.Generator,
    n_queries: int,
    presence: Floats,
    informative: int | None,
    correlation: float,
    heavy_tail: float,
) -> _Model:
    n_features = presence.size
    n_factors = min(_MAX_FACTORS, math.ceil(n_features / _FEATURES_PER_FACTOR))
    factor = rng.permutation(np.arange(n_features) % n_factors)
    sign = rng.choice([-1.0, 1.0], size=n_features)
    offset = _QUERY_OFFSET * rng.standard_normal((n_queries, n_factors))
    # Drawn even if unused: heavy_tail must not change the other random numbers.
    exponent = min(2 * heavy_tail, 3.0) * rng.uniform(-1, 1, size=n_features)
    scale = np.asarray(10**exponent / (heavy_tail or 1.0), dtype=np.float64)
    # The smallest exponential variables divided by weights are a weighted sample without
    # replacement. With rare features most utilities would be zero.
    key = rng.standard_exponential(n_features) / presence
    # A stable sort: otherwise weights would depend on the version of NumPy and the processor.
    chosen = np.argsort(key, kind="stable")[:informative]
    coef = np.zeros(n_features)
    coef[chosen] = rng.standard_normal(chosen.size)
    coef /= math.sqrt(_signal_variance(coef, presence, factor, sign, correlation))
    return _Model(presence, factor, sign, scale, coef, offset, correlation, heavy_tail)


def _signal_variance(
    coef: Floats, presence: Floats, factor: Integers, sign: Floats, correlation: float
) -> float:
    """Return the variance of the utility coef @ z of the documents of a query."""
    by_factor = np.bincount(factor, weights=presence * sign * coef)
    own = (1 - correlation) * (presence @ coef**2)
    scattered = (presence * (1 - presence)) @ coef**2
    return float(own + correlation * (by_factor @ by_factor + scattered))


def _draw_presence(rng: np.random.Generator, n_features: int, density: float) -> Floats:
    """Return the probability that an entry is stored for each feature; the mean is `density`.

    Probabilities are min(ceiling, c / rank), in random order.
    """
    if density == 1:
        return np.ones(n_features)
    # Below one: probability one would need infinitely many draws in _draw_sparse_block.
    ceiling = max(0.9, (1 + density) / 2)
    popularity = 1 / np.arange(1, n_features + 1)
    # c[m] gives the mean `density` if the m most popular features are at the ceiling. Take the
    # first m for which all others are below it.
    tail = np.cumsum(popularity[::-1])[::-1]
    c = (density * n_features - ceiling * np.arange(n_features)) / tail
    first = np.argmax(c * popularity <= ceiling)
    return rng.permutation(np.minimum(c[first] * popularity, ceiling))


def _draw_dense(
    rng: np.random.Generator, model: _Model, qid: Integers, dtype: Any
) -> tuple[NDArray[Any], Floats]:
    X = np.empty((qid.size, model.coef.size), dtype=dtype)
    utility = np.empty(qid.size)
    for rows in _blocks(qid.size, model.coef.size):
        z = X[rows]
        rng.standard_normal(dtype=dtype, out=z)
        z *= math.sqrt(1 - model.correlation)
        common = model.draw_factors(rng, qid[rows], dtype).take(model.factor, axis=1)
        common *= model.sign.astype(dtype)
        z += common
        # Use float64 even if X has float32, because rounding would cause ties.
        utility[rows] = z @ model.coef
        model.stretch(z, model.scale)
    return X, utility


def _draw_sparse(
    rng: np.random.Generator, model: _Model, qid: Integers, dtype: Any
) -> tuple[Any, Floats]:
    shape = (qid.size, model.coef.size)
    hits = np.cumsum(-np.log1p(-model.presence))
    blocks = [
        _draw_sparse_block(rng, model, hits, qid[rows], dtype)
        for rows in _blocks(qid.size, math.ceil(hits[-1]) + model.offset.shape[1])
    ]
    values, columns, counts, utility = (np.concatenate(part) for part in zip(*blocks, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    index_type = get_index_dtype(maxval=max(indptr[-1], *shape))
    indices = columns.astype(index_type, copy=False)
    return csr_array((values, indices, indptr.astype(index_type)), shape=shape), utility


def _draw_sparse_block(
    rng: np.random.Generator, model: _Model, hits: Floats, qid: Integers, dtype: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Draw sparse rows; return values, column indices, entries per row, and utilities.

    `hits` are the cumulative sums of the expected number of entries of each feature in a row.
    """
    # Poisson hits of mean -log(1 - p_j) hit a cell at least once with probability p_j, so merging
    # duplicates yields independent entries without visiting empty cells.
    row = np.repeat(np.arange(qid.size), rng.poisson(hits[-1], size=qid.size))
    column = np.searchsorted(hits, hits[-1] * rng.random(row.size), side="right")
    row, column = np.divmod(np.unique(row * hits.size + column), hits.size)
    column = column.astype(get_index_dtype(maxval=hits.size))
    z = rng.standard_normal(row.size, dtype=dtype)
    z *= math.sqrt(1 - model.correlation)
    factors = model.draw_factors(rng, qid, dtype)
    z += model.sign[column] * factors[row, model.factor[column]]
    utility = np.bincount(row, weights=z * model.coef[column], minlength=qid.size)
    model.stretch(z, model.scale[column])
    # Without entries, bincount ignores its weights and returns integers.
    utility = utility.astype(np.float64, copy=False)
    return z, column, np.bincount(row, minlength=qid.size), utility


def _blocks(n_rows: int, elements_per_row: int) -> Iterator[slice]:
    step = max(1, _BLOCK_ELEMENTS // elements_per_row)
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def _cut_into_levels(utility: Floats, n_levels: int) -> Floats:
    # With a fixed ratio of 1/2, the top levels would be empty if there are many levels.
    ratio = max(0.5, 0.05 ** (1 / max(1, n_levels - 1)))
    share = np.cumsum(ratio ** np.arange(n_levels))
    cuts = np.quantile(utility, share[:-1] / share[-1])
    return np.searchsorted(cuts, utility).astype(np.float64)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, size=4, dtype=np.uint32)
    elif random_state is not None and not isinstance(random_state, np.random.Generator):
        check_integer("random_state", random_state, at_least=0)
    return np.random.default_rng(random_state)


def _check_sizes(
    n_queries: int,
    docs_per_query: Any,
    n_features: int,
    n_levels: int | None,
    informative: int | None,
) -> None:
    check_integer("n_queries", n_queries, at_least=1)
    check_integer("n_features", n_features, at_least=1)
    if n_levels is not None:
        check_integer("n_levels", n_levels, at_least=1)
    if informative is not None:
        check_integer("informative", informative, at_least=1, at_most=n_features)
    sizes = docs_per_query if isinstance(docs_per_query, (tuple, list)) else [docs_per_query] * 2
    are_integers = all(isinstance(n, Integral) and not isinstance(n, bool) for n in sizes)
    if len(sizes) != 2 or not are_integers or not 1 <= sizes[0] <= sizes[1]:
        allowed = (
            "an integer of at least 1, or a pair (low, high) of such integers with low <= high"
        )
        raise ParameterError(given("docs_per_query", docs_per_query), f" must be {allowed}.")


def _check_shape_of_features(
    noise: float, correlation: float, heavy_tail: float, density: float
) -> None:
    check_number("noise", noise, allow_equal=True)
    check_share("correlation", correlation)
    check_number("heavy_tail", heavy_tail, allow_equal=True)
    check_share("density", density)
    for name, value, valid, allowed in (
        ("correlation", correlation, correlation < 1, "below 1"),
        ("heavy_tail", heavy_tail, heavy_tail <= _MAX_HEAVY_TAIL, f"at most {_MAX_HEAVY_TAIL:g}"),
        ("density", density, density > 0, "above 0"),
    ):
        if not valid:
            raise ParameterError(given(name, value), f" must be {allowed}.")
