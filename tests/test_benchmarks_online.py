"""The algorithms of paper 2 that benchmarks/online.py compares with."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, make_ranking
from marginrank.fit.linear import Parameters, make_objective

# Not through sys.path, which Dask's workers inherit: they import a library called sparse if there
# is one, and benchmarks has a script of that name.
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
plain_sgd = SimpleNamespace(**runpy.run_path(str(BENCHMARKS / "plain_sgd.py")))


def test_the_first_step_by_query_is_a_full_gradient_of_one_query():
    X, y, qid = make_ranking(1, 30, 4, random_state=0)
    data = RankingData(X, y, qid)
    w = plain_sgd.by_query(data, C=0.1, n_passes=1)
    np.testing.assert_allclose(w, -make_objective(data, Parameters(C=0.1)).at_zero().gradient)


@pytest.mark.parametrize("algorithm", plain_sgd.ALGORITHMS.values())
def test_both_find_the_optimum_of_one_pair(algorithm):
    data = RankingData([[1.0, 0.5], [0.0, 0.0]], [1, 0], [0, 0])
    expected = RankSVM(C=0.3, tol=1e-12).fit(data).coef_
    np.testing.assert_allclose(algorithm(data, 0.3, 2000), expected, rtol=1e-3)


def test_random_pairs_are_preferences():
    """With steps this small, w is a sum of pairs with weights 1/t, near their mean direction."""
    X, y, qid = make_ranking(20, 10, 3, random_state=0)
    data = RankingData(X, y, qid)
    w = plain_sgd.by_pair(data, C=1e-9, n_passes=200)
    mean = -make_objective(data, Parameters(C=1e-9)).at_zero().gradient
    assert w @ mean > 0.8 * np.linalg.norm(w) * np.linalg.norm(mean)
