"""The native module by itself: what it refuses, and its variants for different machines."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import make_objective

from marginrank import RankingData, RankSVM, _core, make_ranking
from marginrank.objective.losses import LOSSES

LARGEST_QUERY = 2**30 - 1


@pytest.mark.parametrize(
    ("size", "message"),
    [(LARGEST_QUERY, "offsets must end"), (LARGEST_QUERY + 1, "2\\*\\*30 documents or more")],
)
@pytest.mark.parametrize("function", [_core.rank_labels, _core.rank_documents])
def test_queries_whose_positions_would_overflow_are_refused(function, size, message):
    with pytest.raises(ValueError, match=message):
        function(np.zeros(1), np.array([0, size]), 1)


@pytest.fixture
def instruction_sets():
    names = _core.instruction_sets()
    yield names
    _core.use_instruction_set(names[-1])


def numbers(X, y, qid, loss):
    """What every inner loop takes part in."""
    data = RankingData(X, y, qid)
    objective = make_objective(data, LOSSES[loss], C=0.1, threads=2)
    n = data.n_features
    point = objective.at(np.linspace(-0.5, 0.5, n))
    results = [point.value, point.gradient, point.scores]
    if loss != "hinge":
        results += [*point.hess_vec(np.cos(np.arange(n))), point.hess_diag(), point.hessian()]
    return [*results, data.matrix.sum(1)]


@pytest.mark.parametrize("levels", [2, 5, 60])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_all_instruction_sets_agree_to_rounding(instruction_sets, levels, dtype, loss):
    X, y, qid = make_ranking(7, 90, 21, n_levels=levels, dtype=dtype, random_state=0)
    assert instruction_sets[0] == "baseline"
    results = []
    for name in instruction_sets:
        _core.use_instruction_set(name)
        results.append(numbers(X, y, qid, loss) + numbers(sp.csr_array(X), y, qid, loss))
    for result in results[1:]:
        for value, expected in zip(result, results[0], strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)


def test_fits_of_all_instruction_sets_agree(instruction_sets):
    X, y, qid = make_ranking(30, 40, 12, random_state=0)
    coefs = []
    for name in instruction_sets:
        _core.use_instruction_set(name)
        coefs.append(RankSVM(tol=1e-12).fit(X, y, qid=qid).coef_)
    for coef in coefs[1:]:
        np.testing.assert_allclose(coef, coefs[0], rtol=1e-5)


def test_every_instruction_set_is_compiled_and_the_best_that_runs_here_is_used(instruction_sets):
    compiled = _core.compiled_instruction_sets()
    assert compiled[: len(instruction_sets)] == instruction_sets
    for name in compiled[len(instruction_sets) :]:
        with pytest.raises(ValueError, match="instruction set"):
            _core.use_instruction_set(name)


def test_an_instruction_set_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="instruction set"):
        _core.use_instruction_set("x86-64-v5")
