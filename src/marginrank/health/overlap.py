"""Overlap: find documents and queries that are both in the training and in the test data."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginrank.data import RankingData
from marginrank.health.documents import blocks
from marginrank.health.finding import Finding, listed
from marginrank.health.queries import numbers_of

Hashes = NDArray[np.uint64]
ODD = np.uint64(0x9E3779B97F4A7C15)


def check_overlap(train: RankingData, test: RankingData) -> list[Finding]:
    """Return findings about test queries and test documents that are also in the training data."""
    return [*_check_queries(train, test), *_check_documents(train, test)]


def _check_queries(train: RankingData, test: RankingData) -> list[Finding]:
    known = set(map(str, train.query_ids.tolist()))
    shared = [i for i in test.query_ids.tolist() if str(i) in known]
    if not shared or (_is_counted(train) and _is_counted(test)):
        return []
    return [
        Finding(
            "shared-queries",
            "error",
            "test",
            f"{len(shared):,} of {test.n_queries:,} test queries are also in the training data: "
            f"{listed(shared)}.",
            "Split by query, not by document: metrics are too good if a model has seen the query.",
        )
    ]


def _is_counted(data: RankingData) -> bool:
    """Return True if query ids are 0, 1, 2, … or 1, 2, 3, ….

    Such ids are not compared, because each file may number its own queries.
    """
    ids = numbers_of(data.query_ids)
    return ids is not None and ids[0] in (0, 1) and bool(np.all(np.diff(ids) == 1))


def _check_documents(train: RankingData, test: RankingData) -> list[Finding]:
    dtype = np.float32 if np.float32 in (train.X.dtype, test.X.dtype) else np.float64
    trained, tested = _hashes(train, dtype), _hashes(test, dtype)
    distinct = np.unique(tested)
    n_shared = np.count_nonzero(np.isin(distinct, trained))
    # The number of shared documents to expect by chance, because unrelated queries may share
    # documents. It is measured between two halves of the training queries. The whole has twice as
    # many queries as a half, hence the factor 2.
    expected = 2 * _repeated_share(train, trained) * distinct.size
    if n_shared <= expected + 4 * np.sqrt(expected):
        return []
    shared = np.flatnonzero(np.isin(tested, trained))
    queries = test.query_ids[np.unique(test.queries.query_of_document[shared])].tolist()
    return [
        Finding(
            "shared-documents",
            "error",
            "test",
            f"{shared.size:,} of {test.n_documents:,} test documents have exactly the features of "
            f"a training document; they are in the queries {listed(queries)}.",
            "Remove them from one of the files: metrics are too good if a model has seen the "
            "documents.",
        )
    ]


def _repeated_share(train: RankingData, trained: Hashes) -> float:
    """Return the share of documents in half of the training queries that the other half has, too.

    The share is over distinct documents; `trained` has one hash per document.
    """
    odd = train.queries.query_of_document % 2 == 1
    distinct = np.unique(trained[odd])
    return float(np.isin(distinct, trained[~odd]).mean()) if distinct.size else 0.0


def _hashes(data: RankingData, dtype: Any) -> Hashes:
    """Return a hash of the features of each document; documents are ordered query by query.

    Zeros do not change the hash, so dense and sparse matrices have the same hashes.
    """
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 2**63, data.n_features, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    found = []
    for block in blocks(data):
        if sp.issparse(block.X):
            terms = _mixed(block.X.data, dtype) * factors[block.X.indices]
            sums = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
            found.append(sums[block.X.indptr[1:]] - sums[block.X.indptr[:-1]])
        else:
            found.append((_mixed(block.X, dtype) * factors).sum(axis=1, dtype=np.uint64))
    return np.concatenate(found)


def _mixed(values: Any, dtype: Any) -> Any:
    """Return a 64-bit hash of each value, rounded to `dtype`; the hash of zero is zero."""
    rounded = values.astype(dtype).astype(np.float64) + 0.0  # −0 becomes 0
    rounded[np.isnan(rounded)] = np.nan  # NaN has many representations; use one of them
    bits = rounded.view(np.uint64) * ODD
    return (bits ^ (bits >> np.uint64(29))) * ODD
