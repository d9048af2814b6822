"""The loss as a sum over groups of queries, and points that start from the order of others."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import make_objective

from marginrank import RankingData, _core, make_ranking
from marginrank.objective.losses import LOSSES

LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
}
X, Y, QID = make_ranking(30, (1, 40), 6, random_state=0)
SHUFFLED = np.random.default_rng(0).permutation(len(Y))


def grouped_objective(documents=slice(None), layout=np.asarray, threads=1, **options):
    data = RankingData(layout(X[documents]), Y[documents], QID[documents])
    return make_objective(data, LOSSES["squared_hinge"], threads=threads, **options)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("documents", [slice(None), SHUFFLED], ids=["grouped", "shuffled"])
def test_a_group_has_the_loss_and_gradient_of_its_queries(documents, layout):
    w = np.random.default_rng(1).normal(size=6)
    grouped = grouped_objective(documents, layout, ridge=0.0).at(w).by_group(1000)
    assert grouped.losses.shape == (30,)
    for g, q in enumerate(dict.fromkeys(QID[documents].tolist())):  # as they first appear
        alone = grouped_objective(q == QID, layout, ridge=0.0)
        assert grouped.losses[g] == pytest.approx(alone.at(w).value, rel=1e-12)
        np.testing.assert_allclose(grouped.gradients[g], alone.at(w).gradient, atol=1e-11)


@pytest.mark.parametrize("n_groups", [1, 7, 29, 30, 31])
def test_groups_add_up_to_the_whole(n_groups):
    w = np.random.default_rng(1).normal(size=6)
    objective = grouped_objective()
    point = objective.at(w)
    grouped = objective.at(w, objective.scores(w)).by_group(n_groups)
    assert grouped.losses.size == min(n_groups, 30)
    assert grouped.losses.sum() == pytest.approx(point.loss_value, rel=1e-12)
    np.testing.assert_allclose(grouped.gradients.sum(axis=0) + w, point.gradient, rtol=1e-10)


def test_the_gradient_comes_with_the_groups():
    w = np.random.default_rng(1).normal(size=6)
    objective = grouped_objective(ridge=0.5)
    point = objective.at(w, objective.scores(w))
    before = objective.sweeps
    point.by_group(10)
    np.testing.assert_allclose(point.gradient, objective.at(w).gradient, rtol=1e-12)
    assert objective.sweeps == before + 2  # one of the groups, one of the point to compare with


def test_any_number_of_threads_gives_the_same_bits():
    w = np.random.default_rng(1).normal(size=6)
    results = [grouped_objective(threads=threads).at(w).by_group(7) for threads in (1, 2, 5)]
    for result in results[1:]:
        assert np.array_equal(result.losses, results[0].losses)
        assert np.array_equal(result.gradients, results[0].gradients)


@pytest.mark.parametrize("distance", [0.0, 1e-6, 0.1, 10.0])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_point_may_start_from_the_order_of_another(distance, layout):
    rng = np.random.default_rng(1)
    w = rng.normal(size=6)
    objective = grouped_objective(layout=layout)
    other = objective.at(w + distance * rng.normal(size=6))
    plain, started = objective.at(w), objective.at(w, like=other)
    assert started.value == pytest.approx(plain.value, rel=1e-13)
    np.testing.assert_allclose(started.gradient, plain.gradient, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(started.hess_vec(w)[0], plain.hess_vec(w)[0], rtol=1e-11, atol=1e-12)


def test_a_point_of_other_documents_is_no_guide():
    objective = grouped_objective()
    w = np.ones(6)
    expected = objective.at(w)
    started = objective.at(w, like=objective.sample(0.5, 0).at(w))
    assert np.array_equal(started.gradient, expected.gradient)


@pytest.mark.parametrize("bounds", [[], [-1, 3], [0, 5, 4], [0, 10**6]])
def test_bounds_that_leave_the_documents_are_refused(bounds):
    data = RankingData(X, Y, QID)
    pairs = grouped_objective().pairs.native(LOSSES["squared_hinge"])
    z = np.zeros(data.n_documents)
    with pytest.raises(ValueError, match="bounds must ascend inside the documents"):
        _core.transpose_dot_by_group(data.matrix, pairs, z, np.array(bounds, dtype=np.int64), 1)
