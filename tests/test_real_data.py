"""Known optima of real data; MARGINRANK_DATA names the folder that holds it."""

import numpy as np
import pytest

from marginrank import RankingData, RankSVM
from marginrank.losses import LOSSES
from marginrank.objective import Objective
from marginrank.solvers import newton, tron

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


def test_pairs_of_cadata(real_data):
    X, y, _ = real_data("cadata/cadata.txt.gz")
    assert RankingData(X, y).n_pairs == 212_416_110


def test_raw_cadata_converges(real_data):
    """One query, 3,842 levels, features between 1e-3 and 1e5."""
    X, y, _ = real_data("cadata/cadata.txt.gz")
    objective = Objective(RankingData(X, y), SQUARED_HINGE, normalization="pairs", threads=2)
    result = newton(objective, tol=1e-9, max_iter=30)
    assert result.stop.converged
    assert result.objective <= (1 + 1e-8) * newton(objective, tol=1e-13).objective


@pytest.mark.parametrize("C", 10.0 ** np.arange(-6, 4))
def test_raw_mslr_converges(raw_mslr, C):
    objective = Objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    optimum = newton(objective, tol=1e-13).objective
    result = newton(objective, tol=1e-9, max_iter=30)
    assert result.stop.converged
    assert result.n_iter <= 30
    assert result.objective == pytest.approx(optimum, rel=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0, 1e3])
def test_tol_holds_on_raw_mslr(raw_mslr, C, tol):
    objective = Objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    optimum = newton(objective, tol=1e-13).objective
    assert newton(objective, tol=tol).objective <= (1 + tol) * optimum


@pytest.mark.parametrize("C", [1e-6, 1.0])
def test_tron_does_not_claim_what_it_did_not_reach_on_raw_mslr(raw_mslr, C):
    """Where the program of paper 1 stops 6.5 % above the optimum without a word."""
    objective = Objective(RankingData(*raw_mslr), SQUARED_HINGE, C=C, threads=2)
    optimum = newton(objective, tol=1e-13).objective
    result = tron(objective, tol=1e-3, max_iter=100)
    assert result.objective <= (1 + 1e-3) * optimum or not result.stop.converged


def test_float32_and_float64_agree_on_raw_mslr(raw_mslr):
    X, y, qid = raw_mslr
    double = RankSVM(C=1e-3, tol=1e-9).fit(X, y, qid=qid)
    single = RankSVM(C=1e-3, tol=1e-9).fit(X.astype(np.float32), y, qid=qid)
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-5)
