"""Known optima of real data; MARGINRANK_DATA names the folder that holds it."""

import numpy as np
import pytest
from helpers.objectives import make_objective
from helpers.plain_defaults import plain_kernel

from marginrank import RankingData, RankSVM, StopReason, metrics
from marginrank.objective.losses import LOSSES
from marginrank.solvers.smooth.newton import newton
from marginrank.solvers.smooth.tron import tron

SQUARED_HINGE = LOSSES["squared_hinge"]
SOLVERS = [{"solver": "newton"}, {"solver": "tron", "max_iter": 5000}]
SOLVER_NAMES = [parameters["solver"] for parameters in SOLVERS]


@pytest.fixture(scope="module")
def mq2008(real_data):
    return real_data("MQ2008/S1.txt.gz", "MQ2008/S2.txt.gz", "MQ2008/S3.txt.gz")


@pytest.fixture(scope="module")
def ohsumed(real_data):
    return real_data("OHSUMED/S1.txt.gz", "OHSUMED/S2.txt.gz", "OHSUMED/S3.txt.gz")


@pytest.fixture(scope="module")
def raw_mslr(real_data):
    return real_data("MSLR-sample/train.txt.gz")


@pytest.mark.parametrize("parameters", SOLVERS, ids=SOLVER_NAMES)
@pytest.mark.parametrize(("C", "optimum"), [(1.0, 29_566.52285), (128.0, 3_782_896.726)])
def test_optimum_of_mq2008(mq2008, C, optimum, parameters):
    X, y, qid = mq2008
    model = RankSVM(C=C, tol=1e-9, **parameters).fit(X, y, qid=qid)
    assert model.n_pairs_ == 52_325
    # Printed with ten digits.
    assert model.objective_ == pytest.approx(optimum, rel=1e-8)


def test_accuracy_on_mq2008(mq2008, real_data):
    X, y, qid = mq2008
    assert len(y) == 9_630
    assert len(np.unique(qid)) == 471
    X_test, y_test, qid_test = real_data("MQ2008/S5.txt.gz")
    model = RankSVM(tol=1e-9).fit(X, y, qid=qid)
    assert 100 * model.score(X_test, y_test, qid=qid_test) == pytest.approx(82.7171, abs=5e-5)


@pytest.mark.parametrize("parameters", SOLVERS, ids=SOLVER_NAMES)
def test_optimum_of_ohsumed(ohsumed, parameters):
    X, y, qid = ohsumed
    model = RankSVM(C=1e-4, tol=1e-9, **parameters).fit(X, y, qid=qid)
    assert model.n_pairs_ == 367_663
    assert model.objective_ == pytest.approx(33.1698345, rel=1e-8)


@pytest.mark.filterwarnings("ignore:Features without effect")
def test_ndcg_as_the_goal_ranks_other_queries_of_mslr_better(real_data):
    parts = [real_data(f"MSLR-sample/{part}.txt.gz") for part in ("train", "test")]
    gains = []
    for (X, y, qid), (X_test, y_test, qid_test) in (parts, parts[::-1]):
        at_10 = [
            metrics.ndcg(y_test, model.fit(X, y, qid=qid).predict(X_test), qid=qid_test, k=10)
            for model in (
                RankSVM(C=0.004, scale="standard", tol=1e-4, pair_cost="ndcg"),
                RankSVM(C=0.004, scale="standard", tol=1e-4, objective="ndcg@10"),
            )
        ]
        gains.append(at_10[1] - at_10[0])
    assert np.mean(gains) > 0.01


def test_pairs_of_cadata(real_data):
    X, y, _ = real_data("cadata/cadata.txt.gz")
    assert RankingData(X, y).n_pairs == 212_416_110


def test_raw_cadata_converges(real_data):
    """One query, 3,842 levels, features between 1e-3 and 1e5."""
    X, y, _ = real_data("cadata/cadata.txt.gz")
    objective = make_objective(RankingData(X, y), SQUARED_HINGE, normalization="pairs", threads=2)
    result = newton(objective, tol=1e-9, max_iter=30)
    assert result.stop.converged
    assert result.objective <= (1 + 1e-8) * newton(objective, tol=1e-13).objective


# Optima over raw features of MSLR by C, with ten digits.
RAW_MSLR = {
    1e-6: 0.1842758600,
    1e-5: 1.821122398,
    1e-4: 18.02067998,
    1e-3: 178.6358827,
    1e-2: 1772.938440,
    0.1: 17602.00677,
    1.0: 175279.6523,
    10.0: 1749812.616,
    100.0: 17482857.90,
    1e3: 174796755.8,
}


@pytest.mark.parametrize("C", RAW_MSLR)
def test_raw_mslr_converges(raw_mslr, C):
    objective = make_objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    result = newton(objective, tol=1e-9, max_iter=30)
    assert result.stop.converged
    assert result.n_iter <= 30
    assert result.objective == pytest.approx(RAW_MSLR[C], rel=2e-9)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3])
def test_tol_holds_on_raw_mslr(raw_mslr, C, tol):
    objective = make_objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    result = newton(objective, tol=tol)
    assert result.stop.converged
    assert (1 - 2e-9) * RAW_MSLR[C] <= result.objective <= (1 + tol) * RAW_MSLR[C]


@pytest.mark.parametrize("C", [1e-6, 1.0])
def test_tron_does_not_claim_what_it_did_not_reach_on_raw_mslr(raw_mslr, C):
    """The program of paper 1 stops 6.5 % above the optimum without a warning."""
    objective = make_objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    result = tron(objective, tol=1e-3, max_iter=100)
    assert result.objective > 1.005 * RAW_MSLR[C]
    assert not result.stop.converged


def test_float32_and_float64_agree_on_raw_mslr(raw_mslr):
    X, y, qid = raw_mslr
    double = RankSVM(C=1e-3, tol=1e-9).fit(X, y, qid=qid)
    single = RankSVM(C=1e-3, tol=1e-9).fit(X.astype(np.float32), y, qid=qid)
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_hinge_on_mq2008_is_certified(mq2008, C):
    """Value and lower bound, confirmed over the 52,325 explicit pairs."""
    X, y, qid = mq2008
    model = RankSVM(C=C, loss="hinge", tol=1e-6).fit(X, y, qid=qid)
    assert model.stop_reason_ is StopReason.CERTIFIED
    preferred, other = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    differences = X[preferred] - X[other]
    t = differences @ model.coef_
    value = 0.5 * model.coef_ @ model.coef_ + C * np.maximum(0, 1 - t).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-11)
    # α from a linear ramp around the kink is feasible for the dual, and so gives a lower bound.
    bounds = []
    for width in (1e-3, 3e-3, 1e-2):
        alpha = np.clip(0.5 + (1 - t) / width, 0, 1)
        v = C * alpha @ differences
        bounds.append(C * alpha.sum() - 0.5 * v @ v)
    assert (1 - 1e-4) * value <= max(bounds) <= value
    assert model.gap_ <= 1e-6 * value
    better = RankSVM(C=C, loss="hinge", tol=1e-8).fit(X, y, qid=qid)
    assert better.objective_ >= model.objective_ - model.gap_
    assert model.objective_ <= (1 + 1e-6) * better.objective_


@pytest.mark.parametrize(("C", "certified"), [(1e-4, 1e-6), (1.0, 5e-6)])
def test_hinge_on_raw_mslr_is_certified(raw_mslr, C, certified):
    """A feature of 2e8 leaves rounding in the gradient, which the certificate counts."""
    X, y, qid = raw_mslr
    model = RankSVM(C=C, loss="hinge", tol=1e-6).fit(X, y, qid=qid)
    assert model.stop_reason_.converged
    assert model.gap_ <= certified * model.objective_


def test_bundle_methods_agree_on_mq2008(mq2008):
    X, y, qid = mq2008
    best = RankSVM(C=1e-3, loss="hinge", tol=1e-7).fit(X, y, qid=qid)
    for solver in ("ocas", "bmrm"):
        model = RankSVM(C=1e-3, loss="hinge", solver=solver, tol=1e-6).fit(X, y, qid=qid)
        assert model.stop_reason_ is StopReason.CERTIFIED
        assert model.objective_ <= (1 + 1e-6) * best.objective_


@pytest.mark.parametrize(
    ("loss", "allowed"), [("squared_hinge", 5e-4), ("hinge", 5e-3), ("huber", 5e-3)]
)
def test_ndcg_of_ohsumed_over_five_folds(real_data, loss, allowed):
    """The squared hinge has a known result; the other losses come near it."""
    values = []
    for fold in range(5):
        names = [f"OHSUMED/S{(fold + k) % 5 + 1}.txt.gz" for k in range(5)]
        X, y, qid = real_data(*names[:3])
        model = RankSVM(C=1e-4, loss=loss).fit(X, y, qid=qid)
        X, y, qid = real_data(names[4])
        values.append(metrics.ndcg(y, model.predict(X), qid=qid, k=10, discount="letor"))
    assert np.mean(values) == pytest.approx(0.4536, abs=allowed)


def test_kernel_machines_need_no_more_than_the_linear_one(mq2008):
    """A linear kernel on a part of MQ2008."""
    X, y, qid = (part[:1500] for part in mq2008)
    linear = RankSVM(C=1e-2, tol=1e-9).fit(X, y, qid=qid)
    kernel = plain_kernel(kernel="linear", C=1e-2, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_allclose(kernel.predict(X), linear.predict(X), atol=1e-5)
