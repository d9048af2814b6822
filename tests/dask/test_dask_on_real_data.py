"""Known optima of real data, on worker processes; MARGINRANK_DATA names its folder."""

import numpy as np
import pytest
from collections_of import as_data

from marginrank.dask import DaskRankSVM, DaskSparseRankSVM
from marginrank.estimators import SparseRankSVM

SETS = {
    "MQ2008": {"C": 1.0, "optimum": 29_566.52285, "n_pairs": 52_325},
    "OHSUMED": {"C": 1e-4, "optimum": 33.1698345, "n_pairs": 367_663},
}


@pytest.fixture(params=SETS)
def name(request):
    return request.param


@pytest.fixture
def data(name, real_data):
    return real_data(*(f"{name}/S{k}.txt.gz" for k in (1, 2, 3)))


def in_chunks(X, y, qid, n=4):
    """Return the arguments of fit: Dask arrays whose chunks end with a query."""
    ends = np.append(np.flatnonzero(np.diff(qid)) + 1, len(y))
    cuts = ends[np.searchsorted(ends, len(y) * np.arange(1, n + 1) // n)]
    return as_data(np.diff(cuts, prepend=0), X, y, qid)


@pytest.mark.parametrize("partitions", ["as_is", "by_query"])
def test_optimum(client, name, data, partitions):
    known = SETS[name]
    model = DaskRankSVM(C=known["C"], tol=1e-9)
    model.fit(**in_chunks(*data), client=client, partitions=partitions)
    assert model.n_pairs_ == known["n_pairs"]
    assert model.objective_ == pytest.approx(known["optimum"], rel=1e-8)
    assert model.gap_ >= 0


@pytest.mark.filterwarnings("ignore:Features without effect")
def test_sparse_optimum(client, data):
    X, y, qid = data
    local = SparseRankSVM(radius=1.0, scale="query").fit(X, y, qid=qid)
    model = DaskSparseRankSVM(radius=1.0, scale="query").fit(**in_chunks(X, y, qid), client=client)
    assert model.objective_ == pytest.approx(local.objective_, rel=2e-6)
    assert model.stop_reason_.converged
