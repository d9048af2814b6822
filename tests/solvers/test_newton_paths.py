"""Many problems along a path: each solution is that of the problem alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.objectives import make_objective

from marginrank import RankingData, make_ranking
from marginrank.models.fit_report import StopReason
from marginrank.objective.losses import LOSSES
from marginrank.solvers.smooth import preconditioner, shared_hessian
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.newton_paths import newton_paths
from marginrank.solvers.smooth.shared_hessian import HessianGroup, SharedHessian
from marginrank.solvers.smooth.tron import tron

RIDGES = 2.0 ** -np.arange(-6.0, 12.0, 3.0)
SMOOTH = {name: loss for name, loss in LOSSES.items() if loss.smooth}


@pytest.fixture
def few_documents(monkeypatch):
    """Share Hessians on small data, too."""
    monkeypatch.setattr(shared_hessian, "FEWEST_DOCUMENTS", 0)


def folds_of(reference, n_folds=3):
    """Return the problems that lack a fold of queries each."""
    number = np.arange(reference.pairs.n_queries) % n_folds
    return [reference.on(pairs=reference.pairs.without(number == k)) for k in range(n_folds)]


def objective_of(data, loss="squared_hinge", **options):
    return make_objective(data, LOSSES[loss], **options)


def assert_optimal(problems, ridges, found, tol):
    found = list(found)
    assert len(found) == len(problems) * len(ridges)
    for problem, step, result in found:
        alone = newton(problems[problem].with_ridge(float(ridges[step])), tol=1e-10)
        assert result.stop.converged
        assert result.objective <= alone.objective * (1.0 + tol)
        assert result.objective - alone.objective <= result.gap * (1.0 + 1e-9)


DATA = {
    "queries": ((40, (2, 30), 10), {}, np.asarray),
    "one document decides": ((30, 2, 3), {}, np.asarray),
    "raw features": ((40, 20, 15), {"heavy_tail": 1.5, "correlation": 0.5}, np.asarray),
    "fewer documents than features": ((6, 4, 30), {}, np.asarray),
    "wide": ((8, 5, 300), {}, sp.csr_array),
    "sparse": ((40, 20, 12), {"density": 0.3}, sp.csr_array),
    "sampled": ((200, 100, 6), {"noise": 1.0}, np.asarray),
}


def data_of(name):
    shape, options, layout = DATA[name]
    X, y, qid = make_ranking(*shape, random_state=3, **options)
    return RankingData(layout(X), y, qid)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_each_solution_is_that_of_the_problem_alone(name, tol):
    reference = objective_of(data_of(name), normalization="pairs")
    problems = folds_of(reference)
    found = list(newton_paths(reference, problems, RIDGES, tol=tol))
    assert_optimal(problems, RIDGES, found, tol)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("normalization", ["none", "query"])
def test_every_smooth_loss(loss, normalization):
    reference = objective_of(data_of("queries"), loss, normalization=normalization)
    problems = [reference, *folds_of(reference)]
    found = list(newton_paths(reference, problems, RIDGES, tol=1e-6))
    assert_optimal(problems, RIDGES, found, 1e-6)


@pytest.mark.parametrize("name", ["queries", "one document decides", "raw features", "sparse"])
@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_each_solution_with_a_shared_hessian(name, tol, few_documents):
    reference = objective_of(data_of(name), normalization="pairs")
    problems = folds_of(reference)
    assert_optimal(problems, RIDGES, newton_paths(reference, problems, RIDGES, tol=tol), tol)


@pytest.mark.parametrize("is_small", [False, True])
def test_random_small_problems(is_small, request):
    if is_small:
        request.getfixturevalue("few_documents")
    rng, n_found = np.random.default_rng(0), 0
    for _ in range(60):
        n_queries, n_documents, n = rng.integers(2, 12), rng.integers(2, 9), rng.integers(1, 20)
        X = rng.normal(size=(n_queries * n_documents, n)) * 10.0 ** rng.uniform(-3, 3, n)
        X = np.round(X, rng.integers(0, 3))
        y = rng.integers(0, 3, len(X))
        qid = np.repeat(np.arange(n_queries), n_documents)
        reference = objective_of(RankingData(X, y, qid))
        if not reference.pairs.has_weight:
            continue
        problems = [p for p in folds_of(reference, 2) if p.pairs.has_weight]
        ridges = np.sort(10.0 ** rng.uniform(-6, 6, 4))[::-1]
        found = list(newton_paths(reference, problems, ridges, tol=1e-5))
        for problem, step, result in found:
            alone = newton(problems[problem].with_ridge(float(ridges[step])), tol=1e-9)
            excess = result.objective - alone.objective
            assert excess <= 1e-5 * alone.objective or excess <= alone.gap + result.gap
            assert result.stop.converged or result.stop is StopReason.PRECISION
        n_found += len(found)
    assert n_found > 400


@pytest.mark.parametrize("kind", ["plain", "separable", "rare", "raw"])
def test_estimates_are_true_where_a_sample_stands_for_all(kind, monkeypatch):
    """With small samples, so that many problems can be tried."""
    monkeypatch.setattr(preconditioner, "SMALL_SAMPLE", 32)
    rng = np.random.default_rng(0)
    for seed in range(15):
        n = int(rng.integers(1, 5))
        X, y, qid = make_ranking(
            int(rng.integers(20, 60)) * n,
            10,
            n,
            noise=0.0 if kind == "separable" else 0.5,
            heavy_tail=1.0 if kind == "raw" else 0.0,
            random_state=seed,
        )
        if kind == "rare":
            X[rng.random(X.shape) < 0.97] = 0.0
        reference = objective_of(RankingData(X, y, qid), loss=rng.choice(list(SMOOTH)))
        problems = folds_of(reference)
        ridges = np.sort(10.0 ** rng.uniform(-6, 6, 8))[::-1]
        found = list(newton_paths(reference, problems, ridges, tol=1e-4))
        assert_optimal(problems, ridges, found, 1e-4)


def hostile_features(kind, rng, X, qid):
    """Make features of which a sample tells too little, or too much."""
    if kind == "outliers":
        X[rng.integers(len(X), size=3), 0] *= 10.0 ** rng.integers(2, 7)
    elif kind == "a query of large values":
        X[qid == rng.integers(500), 1] *= 100.0
    elif kind == "heavy tails":
        X[:, :3] = np.sign(X[:, :3]) * np.abs(X[:, :3]) ** 4
        X[:, 3] = np.exp(3.0 * X[:, 3])
    else:
        X[qid < 100] *= 100.0
        X[qid < 100, 0] = 0.0


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize(
    "kind", ["outliers", "a query of large values", "heavy tails", "queries of two kinds"]
)
def test_estimates_are_true_where_a_sample_misleads(kind, seed):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(500), 40)
    X = rng.normal(size=(len(qid), 10))
    y = np.clip(np.round(X @ rng.normal(size=10) / 2 + rng.normal(size=len(qid)) + 1), 0, 4)
    hostile_features(kind, rng, X, qid)
    reference = objective_of(RankingData(X, y, qid), threads=2)
    parts = [qid < 100, qid >= 100, np.arange(500)[qid] % 3 == 0]
    left_out = [~np.isin(np.arange(500), qid[part]) for part in parts]
    problems = [reference.on(pairs=reference.pairs.without(some)) for some in left_out]
    problems = [reference, *problems]
    ridges = 10.0 ** np.arange(6.0, -1.0, -2.0)
    assert_optimal(problems, ridges, newton_paths(reference, problems, ridges, tol=1e-4), 1e-4)
    alone = reference.with_ridge(100.0)
    assert newton(alone, tol=1e-4).objective <= newton(alone, tol=1e-10).objective * (1.0 + 1e-4)


def test_solutions_of_a_problem_come_in_the_order_of_the_ridges():
    reference = objective_of(data_of("queries"))
    found = list(newton_paths(reference, folds_of(reference), RIDGES))
    for problem in range(3):
        assert [f.step for f in found if f.problem == problem] == list(range(len(RIDGES)))


@pytest.mark.parametrize("name", ["sampled", "queries"])
def test_results_do_not_depend_on_the_threads(name, few_documents):
    def weights(threads):
        reference = objective_of(data_of(name), threads=threads)
        groups = groups_of(reference, 3)
        found = newton_paths(reference, folds_of(reference), RIDGES, groups=groups)
        return [one.result.w for one in found]

    for threads in (2, 3):
        np.testing.assert_array_equal(weights(1), weights(threads))


def test_a_problem_is_not_changed_by_its_neighbours():
    reference = objective_of(data_of("queries"), normalization="pairs")
    problems = folds_of(reference)
    together = {
        (f.problem, f.step): f.result.w for f in newton_paths(reference, problems, RIDGES, tol=1e-9)
    }
    for f in newton_paths(reference, problems[1:2], RIDGES, tol=1e-9):
        np.testing.assert_allclose(f.result.w, together[1, f.step], rtol=1e-3, atol=1e-6)


def test_neighbours_share_sweeps():
    """Five problems read X hardly more often than one, and far less than five alone."""
    reference = objective_of(data_of("sampled"), normalization="pairs")
    ridges = 2.0 ** -np.arange(-5.0, 5.0)

    def sweeps(problems):
        before = reference.sweeps
        for _ in newton_paths(reference, problems, ridges):
            pass
        return reference.sweeps - before

    problems = folds_of(reference, 5)
    alone = sum(sweeps([problem]) for problem in problems)
    assert sweeps(problems) < 0.5 * alone


def test_history_and_certificate_are_its_own():
    reference = objective_of(data_of("queries"))
    results = [found[2] for found in newton_paths(reference, folds_of(reference), RIDGES, tol=1e-6)]
    assert sum(bool(result.history) for result in results) > len(results) // 2
    for result in results:
        assert result.gap >= 0
        assert result.n_iter == len(result.history)
        if result.history:  # the end of the path before may be the optimum of the next ridge
            assert result.history[-1].objective == result.objective


def test_values_that_overflow_are_refused_by_the_feature():
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    X[:, 2] *= 1e160
    reference = objective_of(RankingData(X, y, qid))
    with pytest.raises(ValueError, match=r"X\[:, 2\] has values so large"):
        list(newton_paths(reference, [reference], RIDGES))


def independent_optimum(problem, ridge):
    """Return the smallest objective that a trust region method certifies."""
    found = tron(problem.with_ridge(ridge), tol=1e-8, max_iter=2000)
    return found.objective - found.gap, found.objective


HARD = {
    "heavy tails": ((90, 50, 40), {"heavy_tail": 1.5, "correlation": 0.5, "noise": 2.0}),
    "wide": ((40, 40, 300), {"correlation": 0.3, "noise": 1.0}),
}


def groups_of(reference, n_folds):
    """Return the groups of queries of `folds_of`: each is in all folds but one."""
    number = np.arange(reference.pairs.n_queries) % n_folds
    return [
        HessianGroup(
            reference.on(pairs=reference.pairs.without(number != k)),
            np.where(np.arange(n_folds) == k, 0.0, 1.0),
        )
        for k in range(n_folds)
    ]


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("grouped", [False, True])
def test_paths_on_hard_data_against_another_solver(name, grouped):
    shape, options = HARD[name]
    X, y, qid = make_ranking(*shape, random_state=5, dtype=np.float32, **options)
    X /= X.std(axis=0)
    reference = objective_of(RankingData(X, y, qid), threads=2)
    problems = folds_of(reference)
    groups = groups_of(reference, 3) if grouped else []
    ridges = 10.0 ** np.arange(5.0, 0.5, -1.0)
    for found in newton_paths(reference, problems, ridges, tol=1e-4, groups=groups):
        lowest, highest = independent_optimum(problems[found.problem], float(ridges[found.step]))
        assert found.result.stop.converged
        assert found.result.objective <= (1.0 + 1e-4) * highest
        assert found.result.objective >= lowest * (1.0 - 1e-12)
        assert found.result.objective - found.result.gap <= highest * (1.0 + 1e-12)


def test_a_shared_hessian_saves_passes():
    """Folds cost less than forming a Hessian for each of their steps."""
    X, y, qid = make_ranking(80, 40, 60, noise=1.0, random_state=1)
    reference = objective_of(RankingData(X, y, qid))
    problems = folds_of(reference, 5)
    ridges = 2.0 ** -np.arange(-14.0, -2.0)
    before = reference.sweeps
    n_found = len(list(newton_paths(reference, problems, ridges, groups=groups_of(reference, 5))))
    assert n_found == 60
    assert reference.sweeps - before < n_found * 60 / 8


def test_a_shared_hessian_is_renewed_by_cost_and_after_a_poor_step():
    reference = objective_of(data_of("sampled"))
    hessian = SharedHessian(reference, groups_of(reference, 3), 0)
    n = reference.n_features

    def is_renewed(w):
        seen = reference.sweeps
        hessian.refresh([np.full(n, w)])
        return reference.sweeps > seen

    assert is_renewed(0.0)
    assert not is_renewed(1.0)
    hessian.count(1)  # no Hessian would save the only product of a direction
    assert not is_renewed(1.0)
    hessian.count(20)
    assert is_renewed(1.0)
    assert not is_renewed(2.0)
    hessian.expire()
    assert is_renewed(2.0)


def test_problems_with_the_same_shares_have_one_preconditioner(few_documents):
    reference = objective_of(data_of("queries"))
    groups = groups_of(reference, 3)
    same = [group._replace(shares=np.ones(3)) for group in groups]
    for some, n_different in ((groups, 3), (same, 1)):
        hessian = SharedHessian(reference, some, 0)
        hessian.refresh([np.zeros(reference.n_features)])
        assert len({id(hessian.of(k, 1.0)) for k in range(3)}) == n_different
