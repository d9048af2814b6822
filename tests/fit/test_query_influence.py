"""Standard errors against the bootstrap over queries; leave-one-out against refits."""

from copy import copy

import numpy as np
import pytest
from helpers.brute_force import written_down
from helpers.tables import each

from marginrank import RankingData, RankSVM, SparseRankSVM, load_model, make_ranking
from marginrank.fit.linear import Parameters, make_objective
from marginrank.metrics import ndcg

X, Y, QID = make_ranking(30, 12, 5, random_state=0)
N_BOOTSTRAP = 60


def by_explicit_pairs(data, model, **parameters):
    """Return the standard errors of a squared hinge from one row per pair."""
    pair_set = make_objective(data, Parameters(**parameters)).pairs
    i, j, query, weight, _ = written_down(pair_set)
    rows = pair_set.documents.rows
    differences = np.asarray(data.X)[rows if rows is not None else slice(None)]
    differences = differences[i] - differences[j]
    margin = np.maximum(1 - differences @ model.coef_, 0)
    scale = np.ones(data.n_features) if model.scale_ is None else model.scale_
    active = weight * (margin > 0)
    hessian = np.diag(scale**2) + 2 * (differences.T * active) @ differences
    slopes = -2 * (weight * margin)[:, None] * differences
    queries = np.unique(query)
    gradients = np.array([slopes[query == q].sum(axis=0) for q in queries])
    shares = np.array([weight[query == q].sum() for q in queries])
    if parameters.get("normalization", "none") == "none":
        shares = np.ones(len(queries))
    slopes = gradients - np.outer(shares / shares.sum(), gradients.sum(axis=0))
    bread = np.linalg.inv(hessian)
    n = len(queries)
    return np.sqrt(np.diag(n / (n - 1) * bread @ slopes.T @ slopes @ bread))


def bootstrap(data, model, seed=0):
    """Return the standard deviations of the weights over samples of the queries with pairs."""
    rng = np.random.default_rng(seed)
    active = np.flatnonzero(data.queries.n_pairs)
    fit = copy(model).set_params(scale=model.scale_, tol=1e-4, warm_start=True)
    weights = []
    for _ in range(N_BOOTSTRAP):
        counts = np.zeros(data.n_queries)
        np.add.at(counts, rng.choice(active, active.size), 1)
        weights.append(fit.fit(data.X, data.y, qid=data.qid, query_weight=counts).coef_)
    return np.std(weights, axis=0, ddof=1)


PROBLEMS = {
    "plain": {"C": 0.1},
    "mean over pairs": {"C": 5.0, "normalization": "pairs"},
    "mean over queries": {"C": 5.0, "normalization": "query"},
    "costs": {"C": 0.1, "pair_cost": "gain"},
    "adjacent": {"C": 0.1, "pair_selection": "adjacent"},
}


@each(("name", "scale"), [(name, scale) for name in PROBLEMS for scale in (None, "query")])
def test_explicit_pairs_have_the_same_errors(name, scale):
    rng = np.random.default_rng(1)
    order = rng.permutation(len(Y))  # the rows of a query need not be contiguous
    data = RankingData(X[order], Y[order], QID[order], sample_weight=rng.uniform(0.5, 2, len(Y)))
    options = PROBLEMS[name]
    model = RankSVM(scale=scale, tol=1e-10, **options).fit(data)
    expected = by_explicit_pairs(data, model, **options)
    np.testing.assert_allclose(model.coef_stderr(data), expected, rtol=1e-9)


def test_listed_pairs_have_the_errors_of_labels():
    data = RankingData(X, Y, QID)
    i, j, *_ = written_down(make_objective(data, Parameters()).pairs)
    pairs = np.stack([i, j], axis=1)
    model = RankSVM(C=0.1, tol=1e-10).fit(X, qid=QID, pairs=pairs)
    listed = model.coef_stderr(X, qid=QID, pairs=pairs)
    np.testing.assert_allclose(listed, model.coef_stderr(X, Y, qid=QID), rtol=1e-9)


def test_listed_margins_have_the_errors_and_the_scores_of_margins_by_label():
    i, j = np.nonzero((QID[:, None] == QID) & (Y[:, None] > Y))
    listed = {"pairs": np.column_stack([i, j]), "pair_margin": (Y[i] - Y[j]).astype(float)}
    by_label = RankSVM(C=0.1, margin="label", tol=1e-12).fit(X, Y, qid=QID)
    by_pair = RankSVM(C=0.1, tol=1e-12).fit(X, qid=QID, **listed)
    expected = by_label.coef_stderr(X, Y, qid=QID)
    np.testing.assert_allclose(by_pair.coef_stderr(X, qid=QID, **listed), expected, rtol=1e-6)
    found, wanted = (
        by_pair.leave_one_out(X, qid=QID, **listed),
        by_label.leave_one_out(X, Y, qid=QID),
    )
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-6, atol=1e-9)
    assert found.loss == pytest.approx(wanted.loss, rel=1e-8)
    with pytest.raises(TypeError, match="memory_limit"):
        by_pair.coef_stderr(X, qid=QID, memory_limit="1GB", **listed)


def assert_like_bootstrap(data, **parameters):
    model = RankSVM(n_jobs=1, **parameters).fit(data)
    found, expected = model.coef_stderr(data), bootstrap(data, model)
    has_effect = expected > 0
    assert not found[~has_effect].any()
    ratios = found[has_effect] / expected[has_effect]
    # The bootstrap itself has a relative standard error of 9 % with 60 samples.
    assert 0.88 < np.median(ratios) < 1.12
    assert np.mean((ratios > 0.75) & (ratios < 1.33)) > 0.8


@each("loss", ["squared_hinge", "huber", "logistic"])
def test_the_bootstrap_over_queries_agrees_on_generated_data(loss):
    data = RankingData(*make_ranking(150, 10, 5, random_state=0))
    assert_like_bootstrap(data, C=1.0, loss=loss, normalization="query")


REAL = ("MQ2008/S1.txt.gz", "OHSUMED/S1.txt.gz", "MSLR-sample/train.txt.gz")


@pytest.mark.filterwarnings("ignore:Features without effect")
@pytest.mark.parametrize("file", REAL)
def test_the_bootstrap_over_queries_agrees_on_real_data(real_data, file):
    X, y, qid = real_data(file)
    assert_like_bootstrap(RankingData(X, y, qid), normalization="query", scale="query")


def test_queries_without_weight_or_pairs_count_as_absent():
    tied = np.where(QID == 3, 0, Y)  # no pairs
    model = RankSVM(C=0.1, tol=1e-10).fit(X, tied, qid=QID)
    without = QID != 3
    expected = model.coef_stderr(X[without], Y[without], qid=QID[without])
    np.testing.assert_allclose(model.coef_stderr(X, tied, qid=QID), expected, rtol=1e-9)
    weight = without.astype(float)
    found = model.coef_stderr(X, Y, qid=QID, query_weight=weight)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_saved_model_has_the_same_errors(tmp_path):
    model = RankSVM(C=0.1, scale="query").fit(X, Y, qid=QID)
    model.save(tmp_path / "model.json")
    found = load_model(tmp_path / "model.json").coef_stderr(X, Y, qid=QID)
    assert found.tolist() == model.coef_stderr(X, Y, qid=QID).tolist()


def test_many_pairs_exactly_at_the_margin_break_it():
    """At w = ½ pairs of difference 2 reach the margin, and the curvature falls to a fraction."""
    differences = np.concatenate([np.full(200, 2.0), np.full(150, 1.0), np.full(50, -1.0)])
    x = np.stack([differences, np.zeros(400)], axis=1).reshape(-1, 1)
    data = RankingData(x, np.tile([1, 0], 400), np.repeat(np.arange(400), 2))
    model = RankSVM(C=1.0, tol=1e-10).fit(data)
    assert abs(model.coef_[0] - 0.5) < 0.01
    ratio = model.coef_stderr(data) / bootstrap(data, model)
    assert not 0.75 < ratio[0] < 1.3


def test_other_data_and_unfinished_fits_are_rejected():
    model = RankSVM(C=0.1).fit(X, Y, qid=QID)
    other = make_ranking(30, 12, 5, random_state=9)
    with pytest.raises(ValueError, match="standard errors from the optimum"):
        model.coef_stderr(other[0], other[1], qid=other[2])
    with pytest.raises(ValueError, match="4 features"):
        model.coef_stderr(X[:, :4], Y, qid=QID)


@each(
    ("options", "message"),
    [({"loss": "hinge"}, "loss='hinge'"), ({"objective": "ndcg@5"}, "objective='ndcg@5'")],
)
def test_problems_without_standard_errors(options, message):
    model = RankSVM(C=0.1, **options).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=message):
        model.coef_stderr(X, Y, qid=QID)


def test_one_query_has_no_standard_error():
    model = RankSVM(C=0.1).fit(X, Y, group=[len(Y)])
    with pytest.raises(ValueError, match="at least two queries with pairs"):
        model.coef_stderr(X, Y, group=[len(Y)])


def test_only_rank_svm_has_standard_errors():
    assert not hasattr(SparseRankSVM(), "coef_stderr")


def refits(data, model, *, tol=1e-8, warm_start=True):
    """Return the scores of each query from a fit without it, and the loss of these scores."""
    fit = copy(model).set_params(scale=model.scale_, tol=tol, warm_start=warm_start)
    scores = np.empty(data.n_documents)
    for q in range(data.n_queries):
        weight = (np.arange(data.n_queries) != q).astype(float)
        fit.fit(data.X, data.y, qid=data.qid, query_weight=weight)
        scores[data.qid == q] = fit.predict(data)[data.qid == q]
    names = ("C", "loss", "normalization")
    parameters = Parameters(**{name: getattr(model, name) for name in names})
    objective = make_objective(data, parameters)
    rows = objective.pairs.documents.rows
    by_document = scores if rows is None else scores[rows]
    evaluation = objective.pair_loss.evaluate(objective.space.vector(by_document), None)
    return scores, evaluation.losses.value


def assert_like_refits(data, *, rtol_loss, atol_ndcg, **parameters):
    model = RankSVM(tol=1e-8, n_jobs=1, **parameters).fit(data)
    found, (scores, loss) = model.leave_one_out(data), refits(data, model)
    assert abs(found.loss - loss) < rtol_loss * loss
    expected, estimate, trained = (
        ndcg(data.y, one, qid=data.qid, k=10) for one in (scores, found.scores, model.predict(data))
    )
    assert abs(estimate - expected) < atol_ndcg
    assert abs(estimate - expected) < 0.1 * abs(trained - expected)


@each("loss", ["squared_hinge", "huber", "logistic"])
@each("normalization", ["none", "pairs", "query"])
def test_refits_without_each_query_agree_on_generated_data(loss, normalization):
    rng = np.random.default_rng(0)
    order = rng.permutation(len(Y))
    data = RankingData(X[order], Y[order], QID[order])
    C = 0.1 if normalization == "none" else 100.0
    options = {"C": C, "loss": loss, "normalization": normalization}
    assert_like_refits(data, rtol_loss=0.01, atol_ndcg=2e-3, **options)


@pytest.mark.filterwarnings("ignore:Features without effect")
@pytest.mark.parametrize("file", REAL)
def test_refits_without_each_query_agree_on_real_data(real_data, file):
    data = RankingData(*real_data(file))
    options = {"normalization": "query", "scale": "query"}
    assert_like_refits(data, rtol_loss=0.01, atol_ndcg=5e-4, **options)
    assert_like_refits(data, rtol_loss=0.02, atol_ndcg=5e-4, C=100.0, **options)


def test_leaving_out_is_exact_where_no_pair_crosses_the_margin():
    """With small scores all pairs are active, so the objective is quadratic."""
    data = RankingData(X, Y, QID)
    for normalization, C in (("none", 1e-5), ("query", 0.01)):
        model = RankSVM(C=C, tol=1e-13, normalization=normalization).fit(data)
        scores, loss = refits(data, model, tol=1e-13, warm_start=False)
        assert abs(scores).max() < 0.5
        found = model.leave_one_out(data)
        np.testing.assert_allclose(found.scores, scores, rtol=1e-9, atol=1e-12)
        assert abs(found.loss - loss) < 1e-9 * loss


def test_leaving_out_keeps_documents_without_pairs():
    data = RankingData(X, np.where(QID == 3, 0, Y), QID)
    model = RankSVM(C=0.1).fit(data)
    same = np.isclose(model.leave_one_out(data).scores, model.predict(X), rtol=1e-12)
    has_pairs = (data.queries.n_pairs > 0)[data.qid]
    assert same[~has_pairs].all()
    assert np.mean(same[has_pairs]) < 0.1


def test_long_queries_of_listed_pairs_are_not_split(monkeypatch):
    """A fit may split them into groups without a common pair, which are not independent."""
    for name in ("LONG_QUERY", "BUNDLE"):
        monkeypatch.setattr(f"marginrank.objective.listed_pairs.{name}", 4)
    rng = np.random.default_rng(0)
    n_queries, size, C = 5, 20, 0.1
    X = rng.normal(size=(n_queries * size, 3))
    qid = np.repeat(np.arange(n_queries), size)
    pairs = np.concatenate([q * size + rng.permutation(size).reshape(-1, 2) for q in range(5)])
    model = RankSVM(C=C, tol=1e-10).fit(X, qid=qid, pairs=pairs)
    differences = X[pairs[:, 0]] - X[pairs[:, 1]]
    slack = np.maximum(1 - differences @ model.coef_, 0)
    hessian = np.eye(3) + 2 * C * differences[slack > 0].T @ differences[slack > 0]
    slopes = np.zeros((n_queries, 3))
    np.add.at(slopes, qid[pairs[:, 0]], 2 * C * slack[:, None] * differences)
    changes = (slopes - slopes.mean(axis=0)) @ np.linalg.inv(hessian)
    expected = np.sqrt(n_queries / (n_queries - 1) * np.sum(changes**2, axis=0))
    found = model.coef_stderr(X, qid=qid, pairs=pairs)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="at least two queries with pairs"):
        RankSVM(C=C).fit(X, group=[100], pairs=pairs).coef_stderr(X, group=[100], pairs=pairs)
