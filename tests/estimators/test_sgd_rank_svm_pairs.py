"""SGDRankSVM with costs, margins, propensities and pairs: what RankSVM takes, it takes."""

import copy
import inspect
import pickle
import warnings
from contextlib import contextmanager

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.pair_kinds import NAMES, pair_kind
from helpers.tables import each
from sklearn.exceptions import ConvergenceWarning

from marginrank import (
    RankingData,
    RankSVM,
    SGDRankSVM,
    StopReason,
    dump_letor,
    load_model,
    make_ranking,
)
from marginrank.solvers.stochastic import sgd

X, Y, QID = make_ranking(30, (5, 25), 6, shuffle=True, random_state=0)
VALID = make_ranking(20, (5, 25), 6, random_state=1)
PAIRS = np.argwhere((QID[:, None] == QID) & (Y[:, None] > Y))
WEIGHT = np.random.default_rng(0).uniform(0.2, 2.0, size=len(PAIRS))


@contextmanager
def quiet():
    """Let a fit stop before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fit(model, kind):
    labels = None if "pairs" in kind.given else Y
    with quiet():
        return model.fit(X, labels, qid=QID, **kind.weights, **kind.given)


def test_all_that_chooses_pairs_has_the_names_and_defaults_of_rank_svm():
    ours, theirs = SGDRankSVM().get_params(), RankSVM().get_params()
    for name in ("C", "loss", "pair_selection", "pair_cost", "margin", "normalization"):
        assert ours[name] == theirs[name]
    wanted = dict(inspect.signature(RankSVM.fit).parameters)
    # Files of any size are read as streams; effects of positions are as simple as possible.
    for name in ("memory_limit", "context", "monotonic_position", "eval_set", "eval_group"):
        del wanted[name]
    for method in (SGDRankSVM.fit, SGDRankSVM.partial_fit):
        taken = inspect.signature(method).parameters
        assert all(taken[name].kind == wanted[name].kind for name in wanted)


@each("normalization", ["none", "pairs", "query"])
@each("method", ["query", "pair"])
@pytest.mark.parametrize("name", NAMES)
def test_the_optimum_is_that_of_rank_svm(name, method, normalization):
    kind = pair_kind(name, Y, QID)
    same = {"C": 0.1 if normalization == "none" else 50.0, "normalization": normalization}
    batch = fit(RankSVM(**same, **kind.parameters), kind)
    model = SGDRankSVM(method=method, tol=0, max_iter=40, **same, **kind.parameters)
    fit(model, kind)
    assert batch.objective_ * (1 - 1e-6) <= model.objective_ <= 1.03 * batch.objective_
    assert model.n_pairs_ == batch.n_pairs_


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge", "huber", "logistic", "logistic@0.001"])
def test_every_loss(loss):
    batch = RankSVM(C=0.1, loss=loss).fit(X, Y, qid=QID)
    with quiet():
        model = SGDRankSVM(C=0.1, loss=loss).fit(X, Y, qid=QID)
    assert batch.objective_ * (1 - 1e-6) <= model.objective_ <= 1.01 * batch.objective_


@pytest.mark.parametrize(
    "choice",
    [
        {"pair_cost": lambda a, b: (a - b) ** 2},
        {"pair_cost": np.add.outer(np.arange(5.0), np.arange(5.0))},
        {"margin": lambda y: np.sqrt(y)},
        {"margin": "gain", "pair_cost": "gain", "pair_selection": "adjacent"},
    ],
    ids=["callable cost", "matrix", "callable margin", "all at once"],
)
def test_functions_and_matrices(choice):
    batch = RankSVM(C=0.01, **choice).fit(X, Y, qid=QID)
    with quiet():
        model = SGDRankSVM(C=0.01, tol=0, max_iter=40, **choice).fit(X, Y, qid=QID)
    assert batch.objective_ * (1 - 1e-6) <= model.objective_ <= 1.02 * batch.objective_


# Pairs


def test_all_pairs_equal_the_labels():
    labels = SGDRankSVM(C=0.1).fit(X, Y, qid=QID)
    listed = SGDRankSVM(C=0.1).fit(X, pairs=PAIRS, qid=QID)
    assert listed.n_pairs_ == labels.n_pairs_ == len(PAIRS)
    assert listed.objective_ == pytest.approx(labels.objective_, rel=2e-3)
    assert listed.stop_reason_ is StopReason.ESTIMATED


def test_other_ways_to_give_pairs():
    rows = np.repeat(np.arange(len(PAIRS)), 2)
    A = sp.csr_array((np.tile([1.0, -1.0], len(PAIRS)), (rows, PAIRS.ravel())))
    coef = SGDRankSVM().fit(X, pairs=PAIRS, qid=QID).coef_
    np.testing.assert_array_equal(SGDRankSVM().fit(X, pairs=A, qid=QID).coef_, coef)
    unknown = np.full(len(Y), np.nan)  # labels are not looked at
    np.testing.assert_array_equal(SGDRankSVM().fit(X, unknown, pairs=PAIRS, qid=QID).coef_, coef)


@pytest.mark.parametrize("method", ["query", "pair"])
@pytest.mark.parametrize("given", [{"qid": QID}, {}], ids=["queries", "one query"])
def test_any_number_of_threads_gives_bitwise_the_same(given, method, monkeypatch):
    monkeypatch.setattr(sgd, "LONG_QUERY", 20)  # so that queries are cut
    coefs = []
    for n_jobs in (1, 2, 8):
        model = SGDRankSVM(n_jobs=n_jobs, method=method, C=0.1, max_iter=5)
        with quiet():
            coefs.append(model.fit(X, pairs=PAIRS, pair_weight=WEIGHT, **given).coef_)
    assert coefs[0].any()
    for coef in coefs[1:]:
        assert coef.tobytes() == coefs[0].tobytes()


def test_pairs_are_judged_on_validation_data():
    model = SGDRankSVM(early_stopping=True).fit(
        X, pairs=PAIRS, qid=QID, eval_set=[VALID[:2]], eval_qid=[VALID[2]]
    )
    assert model.stop_reason_ is StopReason.VALIDATED
    assert model.score(X, Y, qid=QID) > 0.7


def test_inputs_are_not_modified():
    pairs, weight, propensity = PAIRS.copy(), WEIGHT.copy(), np.full(len(Y), 0.5)
    for array in (pairs, weight, propensity):
        array.flags.writeable = False
    SGDRankSVM().fit(X, pairs=pairs, pair_weight=weight, qid=QID)
    with quiet():
        SGDRankSVM(method="pair").fit(X, Y, qid=QID, propensity=propensity)


# Streams


def pieces():
    """Yield rows and pairs of whole queries, ten at a time; pairs by row of the piece."""
    for first in range(0, 30, 10):
        rows = np.flatnonzero((first <= QID) & (first + 10 > QID))
        inside = np.isin(PAIRS[:, 0], rows)
        yield rows, np.searchsorted(rows, PAIRS[inside]), WEIGHT[inside]


def test_partial_fits_on_pairs_come_close_to_rank_svm():
    C = 1e-3
    model = SGDRankSVM(C=C)
    for _ in range(20):
        for rows, pairs, weight in pieces():
            arguments = {"qid": QID[rows], "pairs": pairs, "pair_weight": weight}
            model.partial_fit(X[rows], n_pairs_total=WEIGHT.sum(), **arguments)
    assert model.n_pairs_ == 20 * len(PAIRS)
    batch = RankSVM(C=C).fit(X, pairs=PAIRS, pair_weight=WEIGHT, qid=QID)
    scores = X @ model.coef_
    slack = np.maximum(0.0, 1.0 - scores[PAIRS[:, 0]] + scores[PAIRS[:, 1]])
    value = 0.5 * model.coef_ @ model.coef_ + C * np.sum(WEIGHT * slack**2)
    assert batch.objective_ <= value <= 1.01 * batch.objective_


COPIES = {
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "joblib": lambda model, folder: joblib.load(joblib.dump(model, folder / "m")[0]),
    "joblib, mapped": lambda model, folder: joblib.load(
        joblib.dump(model, folder / "m")[0], mmap_mode="r"
    ),
}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
def test_copies_go_on_as_the_original(make_copy, tmp_path):
    rows, pairs, weight = next(pieces())
    model = SGDRankSVM().partial_fit(X[rows], qid=QID[rows], pairs=pairs, pair_weight=weight)
    twin = make_copy(model, tmp_path)
    for one in (model, twin):
        one.partial_fit(X, Y, qid=QID)
    assert twin.coef_.tobytes() == model.coef_.tobytes()
    assert twin.t_ == model.t_ > 0


def test_costs_and_margins_in_a_file(tmp_path):
    order = np.argsort(QID, kind="stable")
    dump_letor(RankingData(X[order], Y[order], QID[order]), tmp_path / "train.txt")
    choice = {"C": 0.01, "pair_cost": "ndcg", "margin": "label"}
    with quiet():
        model = SGDRankSVM(**choice).fit(
            tmp_path / "train.txt", read_options={"chunk_documents": 50}
        )
    batch = RankSVM(**choice).fit(X, Y, qid=QID)
    assert batch.objective_ * (1 - 1e-6) <= model.objective_ <= 1.01 * batch.objective_


def test_files_keep_the_choice_of_pairs(tmp_path):
    model = SGDRankSVM(C=0.01, pair_cost=lambda a, b: a - b, margin="label", max_iter=500)
    model.fit(X, Y, qid=QID).save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded.margin == "label"
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="pair_cost was a callable"):
        loaded.fit(X, Y, qid=QID)


# What is refused


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({"pair_cost": "cheap"}, {"y": Y}, "pair_cost='cheap' must be"),
        ({"margin": "wide"}, {"y": Y}, "margin='wide' must be"),
        ({"pair_selection": "some"}, {"y": Y}, "pair_selection='some' must be"),
        ({"pair_cost": "gain"}, {"pairs": PAIRS}, r"pair_cost.*\bpairs"),
        ({"margin": "label"}, {"pairs": PAIRS}, r"margin.*\bpairs"),
        ({}, {"pairs": PAIRS, "propensity": np.ones(len(Y))}, r"propensity.*\bpairs"),
        ({"pair_selection": "adjacent"}, {"pairs": PAIRS}, r"'adjacent'.*\bpairs"),
        ({}, {"y": Y, "pair_weight": WEIGHT}, r"pair_weight.*\bpairs"),
        ({}, {"pairs": PAIRS, "pair_weight": [1.0]}, "pair_weight has 1 entries"),
        ({}, {"pairs": [[0, len(Y)]]}, rf"pairs\[0\] has row {len(Y)}"),
        ({}, {"pairs": PAIRS, "qid": np.arange(len(Y))}, r"pairs\[0\] joins row \d+ of query"),
        ({}, {"y": Y, "propensity": np.zeros(len(Y))}, r"propensity\[0\] is 0"),
        ({"pair_cost": "ndcg"}, {"y": -Y}, r"y\[\d+\] is -"),
        ({"pair_cost": "gain"}, {"y": 120.0 * Y}, "pairs sum to .*, too large"),
        ({}, {"y": Y, "sample_weight": np.full(len(Y), 1e100)}, "pairs sum to .*, too large"),
        ({}, {}, "requires y to be passed, but the target y is None"),
    ],
)
@each("method", ["fit", "partial_fit"])
def test_malformed_input_is_named(method, parameters, arguments, message):
    model = SGDRankSVM(**parameters)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, **arguments)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "_learner")


@pytest.mark.parametrize(
    ("parameters", "arguments", "message"),
    [
        ({}, {"pair_weight": np.zeros(len(PAIRS))}, "pair_weight is zero for every pair"),
        ({"early_stopping": True}, {}, "early_stopping=True.*pairs"),
    ],
)
def test_pairs_that_cannot_be_learned_from(parameters, arguments, message):
    with pytest.raises(ValueError, match=message):
        SGDRankSVM(**parameters).fit(X, pairs=PAIRS, qid=QID, **arguments)


def test_a_stream_takes_no_matrix_of_costs(tmp_path):
    order = np.argsort(QID, kind="stable")
    dump_letor(RankingData(X[order], Y[order], QID[order]), tmp_path / "train.txt")
    model = SGDRankSVM(pair_cost=np.ones((5, 5)))
    with pytest.raises(ValueError, match=r"pair_cost.*matrix"):
        model.partial_fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"pair_cost.*matrix"):
        model.fit(tmp_path / "train.txt")
    assert not hasattr(model, "coef_")
