"""SGDRankSVM as scikit-learn users meet it."""

import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from helpers.objectives import make_objective
from helpers.tables import each
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import (
    RankingData,
    RankSVM,
    SGDRankSVM,
    StopReason,
    dump_letor,
    load_letor,
    load_model,
    make_ranking,
    metrics,
)
from marginrank.estimators import sgd_rank_svm
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(40, (5, 25), 6, random_state=0)
VALID = make_ranking(20, (5, 25), 6, random_state=1)


@contextmanager
def quiet():
    """Let a fit stop before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


# Steps go by the number of documents, so that a repeated document is not a weight of two.
UNEQUAL = {
    f"check_sample_weight_equivalence_on_{kind}_data": "steps depend on the documents"
    for kind in ("dense", "sparse")
}


@pytest.mark.filterwarnings("ignore:The fit stopped")  # on data with one step a pass
@parametrize_with_checks([SGDRankSVM(n_jobs=1)], expected_failed_checks=lambda _: UNEQUAL)
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


def test_fit_stores_what_it_found():
    model = SGDRankSVM(C=0.5).fit(X, Y, qid=QID)
    data = RankingData(X, Y, QID)
    point = make_objective(data, LOSSES["squared_hinge"], C=0.5).at(model.coef_)
    assert model.objective_ == pytest.approx(point.value, rel=1e-12)
    assert model.gap_ == pytest.approx(point.gap, rel=1e-6)
    assert model.n_pairs_ == data.n_pairs
    assert model.n_iter_ == len(model.history_) == model.history_[-1].iteration > 1
    assert model.history_[-1].steps == model.t_ > 0
    assert min(line.objective for line in model.history_) == pytest.approx(model.objective_)
    assert model.stop_reason_ is StopReason.ESTIMATED
    assert model.objective_ < (1 + model.tol) * RankSVM(C=0.5).fit(X, Y, qid=QID).objective_


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
@pytest.mark.parametrize("method", ["query", "pair"])
def test_weights_and_normalisations_are_those_of_rank_svm(method, normalization):
    rng = np.random.default_rng(0)
    weights = {
        "sample_weight": rng.uniform(0.1, 3.0, size=len(Y)),
        "query_weight": rng.uniform(0.1, 3.0, size=40),
    }
    C = 0.1 if normalization == "none" else 50.0
    batch = RankSVM(C=C, normalization=normalization).fit(X, Y, qid=QID, **weights)
    model = SGDRankSVM(C=C, normalization=normalization, method=method, tol=0, max_iter=40)
    with quiet():
        model.fit(X, Y, qid=QID, **weights)
    assert batch.objective_ * (1 - 1e-6) <= model.objective_ <= 1.01 * batch.objective_


def test_layouts_queries_and_order():
    coef = SGDRankSVM(shuffle=False).fit(X, Y, qid=QID).coef_
    sizes = np.bincount(QID)
    assert SGDRankSVM(shuffle=False).fit(X, Y, group=sizes).coef_.tobytes() == coef.tobytes()
    words = np.array([f"query {q}" for q in QID])
    assert SGDRankSVM(shuffle=False).fit(X, Y, qid=words).coef_.tobytes() == coef.tobytes()
    sparse = SGDRankSVM(shuffle=False).fit(sp.csr_array(X), Y, qid=QID).coef_
    np.testing.assert_allclose(sparse, coef, rtol=1e-5, atol=1e-8)
    # Rows of a query need not be adjacent, as long as queries come up in the same order.
    order = np.argsort(np.arange(len(Y)) - np.searchsorted(QID, QID), kind="stable")
    mixed = SGDRankSVM(shuffle=False).fit(X[order], Y[order], qid=QID[order]).coef_
    np.testing.assert_array_equal(mixed, coef)


BIG = {
    "dense": ((300, (5, 60), 30), {"dtype": np.float32}),
    "csr, diagonal metric": ((300, (5, 40), 2000), {"density": 0.01}),
    "long queries": ((2, 5000, 10), {"n_levels": None}),
}


@pytest.mark.parametrize("method", ["query", "pair"])
@pytest.mark.parametrize(("shape", "kind"), BIG.values(), ids=BIG)
def test_any_number_of_threads_gives_bitwise_the_same(shape, kind, method):
    features, labels, qid = make_ranking(*shape, **kind, random_state=3)
    parameters = {"C": 1e-3, "method": method, "max_iter": 3, "n_iter_no_change": 1}
    with quiet():
        coefs = [
            SGDRankSVM(n_jobs=n_jobs, **parameters).fit(features, labels, qid=qid).coef_
            for n_jobs in (1, 2, 8)
        ]
    assert coefs[0].any()
    for coef in coefs[1:]:
        assert coef.tobytes() == coefs[0].tobytes()


def test_a_random_state_is_drawn_from_once(letor):
    drawn = [np.random.RandomState(3) for _ in range(2)]
    SGDRankSVM(random_state=drawn[0]).fit(X, Y, qid=QID)
    SGDRankSVM(random_state=drawn[1]).fit(letor / "train.txt")
    once = np.random.RandomState(3)
    once.randint(2**31)
    follows = once.randint(2**31)
    assert [state.randint(2**31) for state in drawn] == [follows] * 2


def test_seeds():
    a, b, c = (SGDRankSVM(random_state=seed).fit(X, Y, qid=QID).coef_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert np.any(a != c)


@pytest.mark.parametrize("learning_rate", ["inverse", "constant"])
def test_learning_rates(learning_rate):
    best = RankSVM().fit(X, Y, qid=QID).objective_
    with quiet():
        slow = SGDRankSVM(learning_rate=learning_rate, eta0=1e-4).fit(X, Y, qid=QID)
        right = SGDRankSVM(learning_rate=learning_rate, eta0=1.0).fit(X, Y, qid=QID)
    assert best < right.objective_ < 1.1 * best
    assert slow.objective_ > 1.2 * best


def test_without_averaging():
    parameters = {"max_iter": 2, "learning_rate": "constant", "eta0": 0.5}
    with quiet():
        last = SGDRankSVM(average=False, **parameters).fit(X, Y, qid=QID)
        mean = SGDRankSVM(**parameters).fit(X, Y, qid=QID)
    assert last.objective_ > mean.objective_
    np.testing.assert_array_equal(last._learner.sgd.average, mean._learner.sgd.average)


# Streams


def pieces(sizes):
    first = 0
    for size in sizes:
        rows = (first <= QID) & (first + size > QID)
        yield {"X": X[rows], "y": Y[rows], "qid": QID[rows]}
        first += size


@pytest.mark.parametrize("normalization", ["none", "pairs", "query"])
def test_partial_fits_of_pieces_equal_one_of_all(normalization):
    model = SGDRankSVM(shuffle=False, normalization=normalization)
    whole = clone(model).partial_fit(X, Y, qid=QID)
    parts = clone(model)
    for piece in pieces([1, 9, 13, 17]):
        parts.partial_fit(**piece)
    assert parts.coef_.tobytes() == whole.coef_.tobytes()
    assert parts.t_ == whole.t_
    assert (whole.n_iter_, parts.n_iter_) == (1, 4)
    assert parts.n_pairs_ == whole.n_pairs_ == RankingData(X, Y, QID).n_pairs


def test_partial_fit_means_the_pairs_so_far_or_a_total():
    n_pairs = RankingData(X, Y, QID).n_pairs
    C = 1e-3
    so_far, known, again = (SGDRankSVM(C=C) for _ in range(3))
    so_far.partial_fit(X, Y, qid=QID)
    for _ in range(30):
        known.partial_fit(X, Y, qid=QID, n_pairs_total=n_pairs)
        again.partial_fit(X, Y, qid=QID)

    def distance(model, C):
        point = make_objective(RankingData(X, Y, QID), LOSSES["squared_hinge"], C=C).at(model.coef_)
        return point.value / RankSVM(C=C).fit(X, Y, qid=QID).objective_ - 1

    assert distance(so_far, C) < 0.1
    assert distance(known, C) < 1e-3
    assert distance(again, 30 * C) < 0.02 < distance(again, C)


def test_partial_fit_goes_on_after_fit():
    model = SGDRankSVM().fit(X, Y, qid=QID)
    before = model.coef_.copy()
    passes, steps = model.n_iter_, model.t_
    model.partial_fit(**next(pieces([5])))
    assert model.n_iter_ == passes + 1
    assert model.t_ > steps
    assert 0 < np.abs(model.coef_ - before).max() < 0.2 * np.abs(before).max()


def test_partial_fit_before_any_pair():
    model = SGDRankSVM().partial_fit(X[:3], np.ones(3))
    np.testing.assert_array_equal(model.coef_, np.zeros(6))
    model.partial_fit(X, Y, qid=QID)
    assert model.score(X, Y, qid=QID) > 0.7


def test_a_pickle_goes_on_as_the_original():
    model = SGDRankSVM().partial_fit(**next(pieces([20])))
    copy = pickle.loads(pickle.dumps(model))
    for one in (model, copy):
        one.partial_fit(X, Y, qid=QID)
    assert copy.coef_.tobytes() == model.coef_.tobytes()


@pytest.fixture
def letor(tmp_path):
    data = RankingData(X.astype(np.float32), Y, QID)
    dump_letor(data, tmp_path / "train.txt")
    data.save(tmp_path / "store")
    return tmp_path


@pytest.mark.parametrize("chunk_documents", [1, 50, 10**6])
def test_a_text_in_chunks_equals_memory(letor, chunk_documents):
    parameters = {"shuffle": False, "max_iter": 4, "n_iter_no_change": 9}
    data = load_letor(letor / "train.txt")
    with quiet():
        expected = SGDRankSVM(**parameters).fit(data.X, data.y, qid=data.qid)
        model = SGDRankSVM(**parameters).fit(
            letor / "train.txt", read_options={"chunk_documents": chunk_documents}
        )
    assert model._learner.coef(model._parameters(), total=float(data.n_pairs)).tobytes() == (
        expected._learner.coef(model._parameters(), total=float(data.n_pairs)).tobytes()
    )
    assert model.n_features_in_ == 6
    assert model.n_pairs_ == data.n_pairs
    point = make_objective(data, LOSSES["squared_hinge"]).at(model.coef_)
    assert model.objective_ == pytest.approx(point.value)
    assert model.gap_ == pytest.approx(point.gap, rel=1e-6)


def test_a_store_equals_memory(letor):
    data = RankingData.open(letor / "store")
    model = SGDRankSVM().fit(letor / "store")
    expected = SGDRankSVM().fit(data.X, data.y, qid=data.qid)
    assert model.coef_.tobytes() == expected.coef_.tobytes()


def test_shuffled_chunks_learn_too(letor):
    model = SGDRankSVM().fit(letor / "train.txt", read_options={"chunk_documents": 100})
    assert model.stop_reason_ is StopReason.ESTIMATED
    assert model.objective_ < (1 + model.tol) * RankSVM().fit(X, Y, qid=QID).objective_


def test_chunks_with_more_features_than_the_first(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("1 qid:1 1:1\n0 qid:1 1:0\n" + "1 qid:2 3:1\n0 qid:2 2:1\n")
    model = SGDRankSVM().fit(path, read_options={"chunk_documents": 1})
    assert model.coef_.shape == (3,)
    assert model.coef_[2] > 0 > model.coef_[1]


def test_what_cannot_be_read_twice(letor):
    with pytest.raises(ValueError, match="once"):
        SGDRankSVM().fit("-")
    with (
        open(letor / "train.txt", "rb") as file,
        pytest.raises(ValueError, match="once"),
    ):
        SGDRankSVM().fit(file)
    with pytest.raises(ValueError, match="early_stopping=True"):
        SGDRankSVM(early_stopping=True).fit(letor / "train.txt")


# Early stopping


def test_early_stopping_keeps_the_best_on_the_validation_data():
    model = SGDRankSVM(early_stopping=True, scoring="ndcg@5", C=1e-2, n_iter_no_change=2)
    model.fit(X, Y, qid=QID, eval_set=[VALID[:2]], eval_qid=[VALID[2]])
    assert model.stop_reason_ is StopReason.VALIDATED
    best = max(line.metric for line in model.history_)
    scores = model.predict(VALID[0])
    assert metrics.ndcg(VALID[1], scores, qid=VALID[2], k=5) == best
    late = [line.metric for line in model.history_[-2:]]
    assert max(late) <= best + model.tol


def test_early_stopping_holds_whole_queries_out():
    model = SGDRankSVM(early_stopping=True, validation_fraction=0.25).fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.VALIDATED
    # 30 of 40 queries are learned from; the others' labels have no influence but on the metric.
    weight = model._learner.sgd.seen
    counts = RankingData(X, Y, QID).queries.n_pairs
    assert 0 < weight < counts.sum()


def test_validation_without_early_stopping_is_only_recorded():
    plain = SGDRankSVM().fit(X, Y, qid=QID)
    judged = SGDRankSVM().fit(X, Y, qid=QID, eval_set=[RankingData(*VALID)])
    assert judged.coef_.tobytes() == plain.coef_.tobytes()
    assert np.isnan([line.metric for line in plain.history_]).all()
    last = judged.history_[-1]
    assert 0 < last.metric <= 1


def test_a_metric_without_a_value_does_not_stop_a_fit():
    """No validation query has documents of both kinds, so that AUC is nan."""
    labels = np.ones(len(VALID[1]))
    model = SGDRankSVM(early_stopping=True, scoring="auc")
    with pytest.warns(ConvergenceWarning, match=r"auc.*validation"):
        model.fit(X, Y, qid=QID, eval_set=[(VALID[0], labels)], eval_qid=[VALID[2]])
    assert model.stop_reason_ is StopReason.ESTIMATED
    assert model.coef_.tobytes() == SGDRankSVM().fit(X, Y, qid=QID).coef_.tobytes()


def test_rows_sorted_by_label_do_not_stop_a_fit_early():
    """The feature ties all validation documents at first: in this order that looked perfect."""
    rng = np.random.default_rng(0)
    informative = rng.normal(size=(len(Y), 1)) + Y[:, None]
    features = np.where(rng.random((len(Y), 1)) < 0.5, 0.0, informative)
    rows = np.lexsort((-VALID[1], VALID[2]))
    valid = [np.where(VALID[1] > 2, VALID[1], 0.0)[:, None], VALID[1], VALID[2]]
    best = []
    for order in (slice(None), rows, rows[::-1]):
        model = SGDRankSVM(early_stopping=True, max_iter=20)
        with quiet():
            V, v, groups = (part[order] for part in valid)
            model.fit(features, Y, qid=QID, eval_set=[(V, v)], eval_qid=[groups])
        best.append([line.metric for line in model.history_])
    np.testing.assert_allclose(best[1], best[0], rtol=1e-12)
    np.testing.assert_allclose(best[2], best[0], rtol=1e-12)


# How a fit goes


SHAPES = [(10, 20, 30), (50, 20, 20), (200, 20, 10), (100, 15, 136), (30, 20, 600)]
REACHED = {  # by shape and C
    "query": {*((shape, 1e-4) for shape in SHAPES[:4]), (SHAPES[1], 1.0), (SHAPES[2], 1.0)},
    "pair": {(SHAPES[2], 1e-4)},
}


@pytest.mark.parametrize("method", ["query", "pair"])
@pytest.mark.parametrize("C", [1e-4, 1.0])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_fit_comes_as_close_as_it_says_or_warns(shape, C, method):
    features, labels, qid = make_ranking(*shape, random_state=0)
    optimum = RankSVM(C=C, tol=1e-8).fit(features, labels, qid=qid).objective_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SGDRankSVM(C=C, method=method).fit(features, labels, qid=qid)
    assert model.stop_reason_.converged or (shape, C) not in REACHED[method]
    if model.stop_reason_.converged:
        assert model.stop_reason_ is StopReason.ESTIMATED
        assert model.objective_ <= (1 + model.tol) * optimum
        assert not caught
    else:
        assert "estimated relative suboptimality" in str(caught[0].message)


def test_passes_before_the_first_step_are_no_standstill():
    """The first step waits for 4,096 documents, and there are 600."""
    features, labels, qid = make_ranking(30, 20, 600, random_state=0)
    with quiet():
        model = SGDRankSVM().fit(features, labels, qid=qid)
    start = [line.objective for line in model.history_ if line.steps == 0]
    assert len(start) > model.n_iter_no_change
    assert model.objective_ < 1e-2 * start[0]


def test_an_objective_of_zero_is_not_negative():
    features = 1e8 * np.array([[1.0], [0.0], [2.0], [1.0]])
    with quiet():
        model = SGDRankSVM(C=1e-3).fit(features, [1, 0, 1, 0], qid=[0, 0, 1, 1])
    assert model.objective_ >= 0
    assert model.history_
    assert all(line.objective >= 0 for line in model.history_)


def test_too_few_passes_warn():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = SGDRankSVM(max_iter=1).fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.MAX_ITER


def test_verbose_prints_a_line_a_pass(capsys):
    model = SGDRankSVM(verbose=1).fit(X, Y, qid=QID)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert all(line.startswith("pass") for line in lines)


def test_an_interrupt_stores_the_weights_and_is_raised(monkeypatch):
    def interrupt(line):
        raise KeyboardInterrupt

    monkeypatch.setattr(sgd_rank_svm, "print_pass", interrupt)
    model = SGDRankSVM(verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert model.n_iter_ == 1
    assert model.score(X, Y, qid=QID) > 0.7


def test_an_interrupt_inside_a_pass_keeps_what_was_learned(monkeypatch):
    """Between two calls of the kernel, as Ctrl-C arrives."""
    from marginrank.solvers.stochastic import sgd

    calls = []

    def interrupted(problem, order):
        for part in np.array_split(order, 4):
            calls.append(part)
            if len(calls) == 3:
                raise KeyboardInterrupt
            yield part

    monkeypatch.setattr(sgd, "_in_runs", interrupted)
    model = SGDRankSVM()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    assert model.n_iter_ == 0
    assert model.t_ > 0
    assert model.score(X, Y, qid=QID) > 0.6


def test_save_and_load(tmp_path):
    model = SGDRankSVM(C=0.1, early_stopping=True, method="pair").fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert type(loaded) is SGDRankSVM
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.history_ == model.history_
    assert loaded.stop_reason_ is model.stop_reason_
    loaded.partial_fit(X, Y, qid=QID)
    assert loaded.score(X, Y, qid=QID) > 0.7


def test_a_model_of_partial_fits_can_be_saved(tmp_path):
    model = SGDRankSVM().partial_fit(X, Y, qid=QID)
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").coef_, model.coef_)


def test_cross_validation_passes_the_queries_on():
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        scores = cross_val_score(SGDRankSVM(), X, Y, cv=cv, params={"qid": QID, "groups": QID})
    expected = []
    for train, test in GroupKFold(3).split(X, Y, QID):
        fitted = SGDRankSVM().fit(X[train], Y[train], qid=QID[train])
        expected.append(fitted.score(X[test], Y[test], qid=QID[test]))
    np.testing.assert_allclose(scores, expected)


# What is refused


@each(("name", "value"),
    [
        ("method", "document"), ("C", 0.0), ("C", np.nan), ("C", 1e-320), ("loss", "none"),
        ("normalization", "mean"), ("learning_rate", "optimal"), ("eta0", 0.0), ("average", 10),
        ("max_iter", 0), ("tol", -1e-3), ("shuffle", "yes"), ("early_stopping", None),
        ("validation_fraction", 0.0), ("validation_fraction", 1.0), ("n_iter_no_change", 0),
        ("scoring", "accuracy"), ("n_jobs", 0), ("random_state", "seed"),
    ],)  # fmt: skip
def test_bad_parameters_are_named(name, value):
    for fit in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=name):
            getattr(SGDRankSVM(**{name: value}), fit)(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.ones(len(Y))}, "y has no pair"),
        ({"sample_weight": np.zeros(len(Y))}, "zero for every pair"),
        ({"X": np.where(np.eye(len(Y), 6) > 0, np.nan, X)}, r"X\[0, 0\] is NaN"),
        ({"qid": QID[:-1]}, r"qid has \d+ entries"),
        ({"eval_set": VALID[0]}, r"eval_set must be \[\(X, y\)\]"),
        ({"eval_set": (VALID[0][:, :4], VALID[1])}, "eval_set has 4 features, but X has 6"),
    ],
)
def test_bad_data_is_named(arguments, message):
    model = SGDRankSVM()
    with pytest.raises(ValueError, match=message):
        model.fit(**({"X": X, "y": Y, "qid": QID} | arguments))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    ("C", "weight", "normalization", "message"),
    [
        (1e200, 1.0, "none", "too large to compute with"),
        (1e200, 1.0, "pairs", "too large to compute with"),
        (1e200, 1.0, "query", "too large to compute with"),
        (1e-200, 1e-80, "none", "is zero in floating point"),
    ],
)
def test_a_C_out_of_range_is_refused_as_by_rank_svm(C, weight, normalization, message):
    given = {"qid": QID, "sample_weight": np.full(len(Y), weight)}
    for estimator in (RankSVM, SGDRankSVM):
        with pytest.raises(ValueError, match=f"times the weights of all pairs.* {message}"):
            estimator(C=C, normalization=normalization).fit(X, Y, **given)


def test_validation_data_with_other_names_is_refused(tmp_path):
    train = RankingData(X, Y, QID, feature_names=[*"abcdef"])
    train.save(tmp_path / "store")
    frame = pd.DataFrame(VALID[0], columns=[*"abcdfe"])
    message = "feature 5 of eval_set is 'f', but 'e' in X"
    for given in (
        {"eval_set": [(frame, VALID[1])], "eval_qid": [VALID[2]]},
        {"eval_set": [RankingData(*VALID, feature_names=[*"abcdfe"])]},
    ):
        for source in (train, tmp_path / "store"):
            with pytest.raises(ValueError, match=message):
                SGDRankSVM().fit(source, **given)
    ordered = {"eval_set": [(frame[[*"abcdef"]], VALID[1])], "eval_qid": [VALID[2]]}
    assert SGDRankSVM().fit(train, **ordered).history_[-1].metric > 0


def test_a_call_as_for_rankers_of_lightgbm_and_xgboost():
    """As PyTerrier calls learners of form="ltr": sizes of queries, and a validation set."""
    sizes, valid_sizes = (np.unique(ids, return_counts=True)[1] for ids in (QID, VALID[2]))
    expected = SGDRankSVM(early_stopping=True)
    expected.fit(X, Y, qid=QID, eval_set=VALID[:2], eval_qid=[VALID[2]])
    model = SGDRankSVM(early_stopping=True)
    model.fit(X, Y, group=sizes, eval_set=[VALID[:2]], eval_group=[valid_sizes])
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    assert [line.metric for line in model.history_] == [line.metric for line in expected.history_]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"eval_qid": [VALID[2]]}, "eval_qid was given without eval_set"),
        ({"eval_set": [VALID[:2]] * 2}, "eval_set has 2 entries"),
        ({"eval_set": [VALID[:2]], "eval_qid": VALID[2]}, f"eval_qid has {len(VALID[2])} entries"),
        ({"eval_set": [VALID]}, r"eval_set must be \[\(X, y\)\]"),
        ({"eval_set": [RankingData(*VALID)], "eval_qid": [VALID[2]]}, "eval_qid"),
    ],
)
def test_validation_data_of_another_form(given, message):
    with pytest.raises(ValueError, match=message):
        SGDRankSVM().fit(X, Y, qid=QID, **given)


def test_labels_beside_a_path(letor):
    with pytest.raises(ValueError, match=r"y\b.*path"):
        SGDRankSVM().fit(letor / "train.txt", Y)


def test_bad_pieces_are_named():
    model = SGDRankSVM().partial_fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="5 features"):
        model.partial_fit(X[:, :5], Y, qid=QID)
    with pytest.raises(ValueError, match="n_pairs_total"):
        model.partial_fit(X, Y, qid=QID, n_pairs_total=0)


def test_one_query_cannot_be_held_out():
    with pytest.raises(ValueError, match="quer"):
        SGDRankSVM(early_stopping=True).fit(X, Y)


# Names of features, and files


def test_names_of_an_earlier_fit_are_forgotten(tmp_path, letor):
    named = pd.DataFrame(X, columns=[f"column {j}" for j in range(6)])
    path = tmp_path / "m.json"
    for refit in (
        lambda model: model.fit(letor / "train.txt"),
        lambda model: model.fit(X[:, :4], Y, qid=QID),
    ):
        model = SGDRankSVM().fit(named, Y, qid=QID)
        assert model.feature_names_in_.tolist() == named.columns.tolist()
        refit(model).save(path)
        assert not hasattr(model, "feature_names_in_")
        assert load_model(path).n_features_in_ == model.n_features_in_ == model.coef_.size


def test_names_of_a_store_are_kept(tmp_path):
    names = list("abcdef")
    RankingData(X, Y, QID, feature_names=names).save(tmp_path / "store")
    model = SGDRankSVM().fit(tmp_path / "store")
    assert model.feature_names_in_.tolist() == names


def test_partial_fit_with_other_names_is_refused():
    named = pd.DataFrame(X, columns=list("abcdef"))
    model = SGDRankSVM().partial_fit(named, Y, qid=QID)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(named.rename(columns={"a": "z"}), Y, qid=QID)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(model.coef_, before)


def test_what_is_true_of_a_fit_is_forgotten_when_learning_goes_on(tmp_path):
    model = SGDRankSVM().fit(X, Y, qid=QID).partial_fit(X, Y, qid=QID)
    for name in ("objective_", "gap_", "stop_reason_", "history_"):
        assert not hasattr(model, name)
    model.save(tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    for name in ("t_", "n_iter_", "n_pairs_"):
        assert getattr(loaded, name) == getattr(model, name) > 0
    fitted = SGDRankSVM().fit(X, Y, qid=QID)
    fitted.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").t_ == fitted.t_
