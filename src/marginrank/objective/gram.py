"""Gram matrix: inner products of documents, for data with fewer documents than features."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginrank._utils.types import Floats, Integers

BLOCK_ENTRIES = 1 << 22  # entries of X, or inner products, that are stored densely at a time
DENSE_SHARE = 0.25  # share of nonzero entries above which a sparse column is treated as dense


class Rows(NamedTuple):
    """Selected rows and columns of X, each column divided by its scale; X is not copied."""

    X: Any  # array or CSR matrix
    rows: Integers  # ascending
    columns: Integers  # ascending
    scale: Floats | None = None  # divisor of each column; None for 1

    @classmethod
    def of(cls, X: Any) -> "Rows":
        return cls(X, np.arange(X.shape[0]), np.arange(X.shape[1]))

    def over(self, scale: Floats) -> "Rows":
        return self._replace(scale=scale if self.scale is None else self.scale * scale)

    def copy(self) -> Any:
        taken = self.X[self.rows]
        return taken if self.columns.size == self.X.shape[1] else taken[:, self.columns]


@dataclass(frozen=True)
class Gram:
    """The Gram matrix of documents, K = (JX)(JX)ᵀ, where J subtracts the mean of each query.

    Pairs compare documents of one query, so the loss is the same for JX and X. Without the means,
    features with a large offset lose fewer digits.
    """

    documents: Integers
    offsets: Integers  # query q has the documents from offsets[q] to offsets[q + 1]
    products: Floats  # K

    @classmethod
    def of_rows(cls, rows: Rows, documents: Integers, offsets: Integers) -> "Gram":
        """Return the Gram matrix of some rows of X, which are grouped by query.

        Query q has the rows offsets[q] to offsets[q + 1] − 1.
        """
        make = _sparse_products if sp.issparse(rows.X) else _dense_products
        scale = np.ones(rows.columns.size) if rows.scale is None else rows.scale
        return cls(documents, offsets, make(*rows[:3], offsets, scale))

    def curved(self, multiply: Callable[[Floats], Floats], n_documents: int) -> Floats:
        """Return the product AK with the Gram matrix K, for A with one diagonal block per query.

        `multiply` maps a vector v to Av. `n_documents` is the length of v, which may be larger than
        the size of K.
        """
        # One product with A gives one column of the block of each query.
        sizes = np.diff(self.offsets)
        position = np.arange(self.documents.size) - np.repeat(self.offsets[:-1], sizes)
        columns = np.zeros((self.documents.size, int(sizes.max())))
        unit = np.zeros(n_documents)
        for p in range(columns.shape[1]):
            unit[self.documents] = position == p
            columns[:, p] = multiply(unit)[self.documents]
        result = np.empty_like(self.products)
        for query in _slices(self.offsets):
            block = columns[query, : query.stop - query.start]
            np.matmul(block, self.products[query], out=result[query])
        return result

    def spread(self, values: Floats, n_documents: int) -> Floats:
        """Return one value per document, with mean zero in each query.

        `values` has the values of the documents of the Gram matrix, before their mean in each
        query is subtracted. The result has `n_documents` entries, zero for all other documents.
        """
        result = np.zeros(n_documents)
        centered = values.copy()
        _center(centered, self.offsets)
        result[self.documents] = centered
        return result


def _slices(offsets: Integers) -> Iterator[slice]:
    for first, last in pairwise(offsets.tolist()):
        yield slice(first, last)


def _center(rows: Floats, offsets: Integers) -> None:
    for query in _slices(offsets):
        rows[query] -= rows[query].mean(axis=0)


def _dense_products(
    X: Any, rows: Integers, columns: Integers, offsets: Integers, scale: Floats
) -> Floats:
    products = np.zeros((rows.size, rows.size))
    width = max(BLOCK_ENTRIES // rows.size, 1)
    for first in range(0, columns.size, width):
        some = slice(first, first + width)
        block = X[np.ix_(rows, columns[some])].astype(np.float64)
        _center(block, offsets)
        block /= scale[some]
        products += block @ block.T
    return products


def _sparse_products(
    X: Any, rows: Integers, columns: Integers, offsets: Integers, scale: Floats
) -> Floats:
    # Columns with many entries could lose digits to an offset, so they are made dense and centered
    # before they are multiplied.
    X = sp.csr_array(X[rows], dtype=np.float64)
    entries = np.bincount(X.indices, minlength=X.shape[1])[columns]
    full = entries >= max(DENSE_SHARE * rows.size, 1)
    few = ~full & (entries > 0)
    sparse = sp.csr_array(X[:, columns[few]])
    sparse.data /= scale[few][sparse.indices]
    transposed = sp.csr_array(sparse.T)
    products = np.empty((rows.size, rows.size))
    height = max(BLOCK_ENTRIES // rows.size, 1)
    for first in range(0, rows.size, height):
        some = slice(first, first + height)
        products[some] = (sparse[some] @ transposed).toarray()
    for view in (products, products.T):
        _center(view, offsets)
    dense = X[:, columns[full]].toarray()
    among = np.arange(rows.size), np.arange(dense.shape[1])
    products += _dense_products(dense, *among, offsets, scale[full])
    return products
