"""Scales as part of the model: the same as features that were scaled first."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from marginrank import (
    RankingData,
    RankSVM,
    SGDRankSVM,
    SparseRankSVM,
    dump_letor,
    load_letor,
    load_model,
    make_ranking,
)
from marginrank._utils.parameters import ParameterError
from marginrank.fit.scaling import ScaleSearch, effect_message, find_scale, without_effect
from marginrank.models.parameters import check_scale

LAYOUTS = {"dense": np.asarray, "float32": lambda X: X.astype(np.float32), "csr": sp.csr_array}
SCALERS = {"standard": StandardScaler, "range": MinMaxScaler}
EXPECTED = {
    "standard": lambda X: StandardScaler().fit(X).scale_,
    "range": lambda X: MinMaxScaler().fit(X).data_range_,
}


def problem(n_queries=30, n_features=6, seed=0):
    """Return data of six orders of magnitude, offsets and zeros, exact in float32."""
    rng = np.random.default_rng(seed)
    X, y, qid = make_ranking(n_queries, (2, 15), n_features, random_state=seed)
    X = X * 10.0 ** rng.uniform(-3, 3, n_features)
    X[:, 0] += 1e3 * X[:, 0].std()
    X[rng.random(X.shape) < 0.3] = 0.0
    order = rng.permutation(len(y))
    X = X.astype(np.float32).astype(np.float64)
    return X[order], y[order], qid[order]


def inside_queries(scores, qid):
    """Return scores less the means of their queries: all that pairs can see."""
    _, query = np.unique(qid, return_inverse=True)
    return scores - (np.bincount(query, scores) / np.bincount(query))[query]


def query_spread(X, qid):
    """Return the spread inside queries, in extended precision."""
    X = X.astype(np.longdouble)
    squares = sum(((X[qid == q] - X[qid == q].mean(0)) ** 2).sum(axis=0) for q in np.unique(qid))
    return np.sqrt(squares / len(X)).astype(np.float64)


def assert_same_scores(model, X, other, Z, qid, rtol=1e-8):
    found, expected = (
        inside_queries(m.predict(features), qid) for m, features in ((model, X), (other, Z))
    )
    np.testing.assert_allclose(found, expected, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", SCALERS)
def test_the_same_as_a_scaler_first(name, layout):
    X, y, qid = problem()
    scaled = SCALERS[name]().fit_transform(X)
    model = RankSVM(scale=name, C=0.1, tol=1e-14).fit(layout(X), y, qid=qid)
    other = RankSVM(C=0.1, tol=1e-14).fit(scaled, y, qid=qid)
    assert_same_scores(model, X, other, scaled, qid)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-12)
    np.testing.assert_allclose(model.scale_, EXPECTED[name](X), rtol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_spread_inside_queries(layout):
    X, y, qid = problem()
    spread = query_spread(X, qid)
    model = RankSVM(scale="query", C=0.1, tol=1e-14).fit(layout(X), y, qid=qid)
    other = RankSVM(C=0.1, tol=1e-14).fit(X / spread, y, qid=qid)
    np.testing.assert_allclose(model.scale_, spread, rtol=1e-12)
    assert_same_scores(model, X, other, X / spread, qid)


FITS = {
    "hinge": {"loss": "hinge", "tol": 1e-9},
    "ocas": {"loss": "hinge", "solver": "ocas"},
    "bmrm": {"loss": "hinge", "solver": "bmrm", "tol": 1e-4},
    "tron": {"solver": "tron", "tol": 1e-12},
    "huber": {"loss": "huber", "tol": 1e-12},
    "logistic": {"loss": "logistic", "tol": 1e-12},
    "adjacent": {"pair_selection": "adjacent", "pair_cost": "gain", "tol": 1e-12},
    "margin": {"margin": "label", "normalization": "query", "tol": 1e-12},
    "lam": {"lam": 0.3, "normalization": "pairs", "tol": 1e-12},
}


@pytest.mark.parametrize("parameters", FITS.values(), ids=FITS)
def test_every_loss_and_solver(parameters):
    X, y, qid = problem(12)
    scale = StandardScaler().fit(X).scale_
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    model, other = (
        RankSVM(scale=which, **parameters).fit(features, y, qid=qid, sample_weight=weight)
        for which, features in (("standard", X), (None, X / scale))
    )
    assert model.stop_reason_.converged
    assert other.stop_reason_.converged
    tol = parameters.get("tol", 1e-6)
    assert model.objective_ == pytest.approx(other.objective_, rel=2 * tol + 1e-13)
    assert model.objective_ - model.gap_ <= other.objective_ * (1 + 1e-12)
    # ½‖u − u*‖² ≤ F(u) − F*, for both.
    apart = np.sqrt(2 * model.gap_) + np.sqrt(2 * other.gap_)
    assert np.linalg.norm(model.coef_ * scale - other.coef_) <= apart + 1e-8


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_wide_data(layout):
    """More features than documents: the Newton system has an unknown for each document."""
    X, y, qid = problem(8, 300)
    scale = StandardScaler().fit(X).scale_
    model = RankSVM(scale="standard", tol=1e-13).fit(layout(X), y, qid=qid)
    other = RankSVM(tol=1e-13).fit(X / scale, y, qid=qid)
    assert_same_scores(model, X, other, X / scale, qid)


PENALTIES = {
    "radius": {"radius": 0.8},
    "fenchel": {"radius": 0.8, "solver": "fenchel", "variant": "pairwise", "max_iter": 10_000},
    "l1": {"C": 30.0},
    "mixed": {"C": 30.0, "l1_ratio": 0.5, "positive": True},
    "truncated": {"C": 5.0, "solver": "truncated_gradient", "tol": 1e-4, "max_iter": 20_000},
}


@pytest.mark.parametrize("parameters", PENALTIES.values(), ids=PENALTIES)
def test_sparse_penalties(parameters):
    X, y, qid = problem()
    scale = np.ptp(X, axis=0)
    parameters = {"tol": 1e-8} | parameters
    model, other = (
        SparseRankSVM(scale=which, **parameters).fit(features, y, qid=qid)
        for which, features in (("range", X), (None, X / scale))
    )
    assert model.stop_reason_.converged
    assert model.objective_ == pytest.approx(other.objective_, rel=3 * parameters["tol"])
    np.testing.assert_array_equal(model.coef_ != 0, other.coef_ != 0)
    if "radius" in parameters:
        assert np.sum(scale * np.abs(model.coef_)) <= 0.8 * (1 + 1e-14)


def test_listed_pairs():
    X, y, qid = problem()
    pairs = [
        (i, j)
        for i in range(len(y))
        for j in range(len(y))
        if qid[i] == qid[j] and y[i] > y[j] and (i + j) % 3
    ]
    scaled = StandardScaler().fit_transform(X)
    model = RankSVM(scale="standard", tol=1e-14).fit(X, qid=qid, pairs=pairs)
    other = RankSVM(tol=1e-14).fit(scaled, qid=qid, pairs=pairs)
    assert_same_scores(model, X, other, scaled, qid)


@pytest.mark.parametrize("learner", [RankSVM, SparseRankSVM])
def test_a_warm_start_begins_at_the_last_weights(learner):
    X, y, qid = problem()
    model = learner(scale="standard", C=10.0, warm_start=True).fit(X, y, qid=qid)
    objective = model.objective_
    model.fit(X, y, qid=qid)
    assert model.n_iter_ == 0
    assert model.objective_ == pytest.approx(objective, rel=1e-12)


def test_features_of_very_different_sizes_converge():
    X, y, qid = make_ranking(40, 20, 4, random_state=0)
    sizes = np.array([1e-3, 1e6, 1.0, 1e3])
    model = RankSVM(scale="standard").fit(X * sizes, y, qid=qid)
    other = RankSVM(scale="standard").fit(X, y, qid=qid)
    assert model.stop_reason_.converged
    assert model.n_iter_ == other.n_iter_
    np.testing.assert_allclose(model.coef_ * sizes, other.coef_, rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_constant_features_are_left_as_they_are(layout):
    X, y, qid = problem()
    X[:, 1], X[:, 2] = 0.0, 0.125
    data = RankingData(layout(X), y, qid)
    for name in ("standard", "range", "query"):
        found = find_scale(data, name)
        np.testing.assert_array_equal(found.values[[1, 2]], 1.0)
        np.testing.assert_array_equal(found.without_effect, [1, 2])


def test_features_that_no_pair_sees_are_named_once():
    X, y, qid = problem(n_features=20)
    X[:, :13] = np.random.default_rng(0).normal(size=(qid.max() + 1, 13))[qid]
    with pytest.warns(UserWarning, match="Features without effect") as caught:
        model = RankSVM(scale="standard").fit(X, y, qid=qid)
    (warning,) = caught
    listed = ", ".join(f"f{k + 1}" for k in range(10))
    assert f": {listed} and 3 more" in str(warning.message)
    assert warning.filename == __file__
    np.testing.assert_allclose(model.coef_[:13], 0.0, atol=1e-10)
    assert np.all(model.scale_[:13] > 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankSVM().fit(X, y, qid=qid)  # nobody asked


def test_names_of_features_that_no_pair_sees():
    X, y, qid = problem()
    X[:, 3] = 7.0
    data = RankingData(X, y, qid, feature_names=list("abcdef"))
    message = effect_message(without_effect(find_scale(data, "query")), data.feature_names)
    assert message.endswith("query: d. Drop them.")
    plain = effect_message(without_effect(find_scale(data, "query")), None)
    assert plain.spelled(str).endswith("query: f4. Drop them.")


@pytest.mark.parametrize("scale", ["standard", "range", "query"])
def test_an_array_is_the_same_as_its_name(scale):
    X, y, qid = problem()
    named = RankSVM(scale=scale).fit(X, y, qid=qid)
    given = RankSVM(scale=named.scale_.tolist()).fit(X, y, qid=qid)
    np.testing.assert_array_equal(given.coef_, named.coef_)
    np.testing.assert_array_equal(given.scale_, named.scale_)


def test_no_scale_has_two_names():
    X, y, qid = problem()
    plain, none = (RankSVM(scale=scale).fit(X, y, qid=qid) for scale in (None, "none"))
    np.testing.assert_array_equal(plain.coef_, none.coef_)
    assert plain.scale_ is None
    assert none.scale_ is None


WRONG = {
    "standart": "scale='standart' must be None, 'standard', 'range', 'query' or an array",
    2.0: "scale=2.0 must be None",
    ((1.0,),): "must be None",
    ("a",): "must be None",
    (1.0, 0.0): r"scale\[1\] is 0; it must be positive",
    (1.0, -1.0): r"scale\[1\] is -1",
    (np.nan,): r"scale\[0\] is nan",
    (1.0, 1.0, np.inf): r"scale\[2\] is inf",
}


@pytest.mark.parametrize("scale", WRONG, ids=repr)
def test_wrong_scales_are_refused_by_name(scale):
    with pytest.raises(ParameterError, match=WRONG[scale]) as refused:
        check_scale(scale)
    assert refused.value.parameter == "scale"


def test_an_array_has_a_number_for_each_feature():
    X, y, qid = problem()
    with pytest.raises(ParameterError, match=r"scale has 2 entries .* 6"):
        RankSVM(scale=[1.0, 2.0]).fit(X, y, qid=qid)


def test_values_that_no_number_divides_are_refused():
    X = np.array([[1e308, 0.0], [-1e308, 1.0]])
    for name in ("standard", "range", "query"):
        with pytest.raises(ValueError, match=r"X\[:, 0\] has values too large"):
            RankSVM(scale=name).fit(X, [0, 1])


@pytest.mark.parametrize("scale", ["standard", "range", "query"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_nothing_of_the_size_of_X_is_made(layout, scale):
    rng = np.random.default_rng(0)
    X = layout(rng.normal(size=(40_000, 40)))
    qid = np.repeat(np.arange(2000), 20)
    data = RankingData(X, rng.integers(0, 3, 40_000), qid)

    def peak(**parameters):
        tracemalloc.start()
        RankSVM(max_iter=1, tol=1e-1, **parameters).fit(data)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    plain = peak()
    assert peak(scale=scale) < plain + 0.6 * X.size * 8


def test_the_number_of_threads_does_not_change_the_bits():
    X, y, qid = problem()
    models = [RankSVM(scale="query", n_jobs=n).fit(X, y, qid=qid) for n in (1, 2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("method", ["query", "pair"])
def test_stochastic_steps_are_those_of_scaled_features(layout, method):
    X, y, qid = problem()
    scale = StandardScaler().fit(X).scale_
    parameters = {"method": method, "max_iter": 3, "C": 0.1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SGDRankSVM(scale="standard", **parameters).fit(layout(X), y, qid=qid)
        other = SGDRankSVM(**parameters).fit(layout(X / scale), y, qid=qid)
    assert_same_scores(model, X, other, X / scale, qid)
    np.testing.assert_allclose(
        [(line.objective, line.steps) for line in model.history_],
        [(line.objective, line.steps) for line in other.history_],
        rtol=1e-9,
    )
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-9)
    assert model.gap_ == pytest.approx(other.gap_, rel=1e-6)
    best = RankSVM(scale="standard", C=0.1).fit(X, y, qid=qid)
    assert model.objective_ - model.gap_ <= best.objective_ * (1 + 1e-9)


def test_many_features_have_a_metric_of_one_unit_each():
    """A diagonal metric, and features that are zero in all of the first documents."""
    X, y, qid = problem(8, 600)
    X[:20, 3] = 0.0
    scale = StandardScaler().fit(X).scale_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SGDRankSVM(scale="standard", max_iter=3).fit(X, y, qid=qid)
        other = SGDRankSVM(max_iter=3).fit(X / scale, y, qid=qid)
    assert_same_scores(model, X, other, X / scale, qid)


@pytest.mark.parametrize("name", ["standard", "range", "query"])
def test_a_stream_is_scaled_as_data_in_memory(tmp_path, name):
    X, y, qid = make_ranking(60, (2, 9), 5, random_state=1)
    X = X * [1e-3, 1.0, 1e3, 10.0, 1.0] + [0.0, 1e3, 0.0, 0.0, 0.0]
    path = tmp_path / "data.txt"
    dump_letor(RankingData(X, y, qid), path)
    whole = find_scale(load_letor(path), name)
    model = SGDRankSVM(scale=name, max_iter=2, tol=0.1).fit(
        path, read_options={"chunk_documents": 50}
    )
    np.testing.assert_allclose(model.scale_, whole.values, rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", ["standard", "range", "query"])
def test_chunks_may_lack_the_last_features(name, layout):
    """What text does not mention is zero; a chunk is as wide as what it mentions."""
    X, y, qid = problem()
    order = np.argsort(qid, kind="stable")
    X, y, qid = X[order], y[order], qid[order]
    cuts = np.searchsorted(qid, [0, 8, 20, 30])
    widths = [5, 6, 4]
    search = ScaleSearch(name)
    for first, last, width in zip(cuts[:-1], cuts[1:], widths, strict=True):
        X[first:last, width:] = 0.0
        part = slice(first, last)
        search.add(RankingData(layout(X[part, :width]), y[part], qid[part]))
    whole = find_scale(RankingData(X, y, qid), name)
    np.testing.assert_allclose(search.found().values, whole.values, rtol=1e-13)


def test_learning_on_needs_a_scale_that_is_known():
    X, y, qid = problem()
    with pytest.raises(ParameterError, match=r"scale='standard'.*partial_fit"):
        SGDRankSVM(scale="standard").partial_fit(X, y, qid=qid)
    scale = StandardScaler().fit(X).scale_
    given = SGDRankSVM(scale=scale).partial_fit(X, y, qid=qid)
    other = SGDRankSVM().partial_fit(X / scale, y, qid=qid)
    assert_same_scores(given, X, other, X / scale, qid)
    np.testing.assert_array_equal(given.scale_, scale)


def test_learning_goes_on_with_the_scale_of_a_fit(tmp_path):
    X, y, qid = problem()
    scale = StandardScaler().fit(X).scale_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SGDRankSVM(scale="standard", max_iter=2).fit(X, y, qid=qid)
        other = SGDRankSVM(max_iter=2).fit(X / scale, y, qid=qid)
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    more = X[:100], y[:100]
    model.partial_fit(*more, qid=qid[:100])
    other.partial_fit(X[:100] / scale, y[:100], qid=qid[:100])
    assert_same_scores(model, X, other, X / scale, qid)
    loaded.partial_fit(*more, qid=qid[:100])
    np.testing.assert_array_equal(loaded.scale_, model.scale_)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("scale", [None, "standard", "query"])
@pytest.mark.parametrize("size", [1e12, -1e20, 1e100])
def test_a_huge_constant_feature_changes_nothing(size, scale, layout):
    """The rounding of sums over it hid the gradients of all other features."""
    X, y, qid = make_ranking(20, 10, 3, random_state=0)
    alone = RankSVM(scale=scale).fit(layout(X), y, qid=qid)
    beside = np.column_stack([X, np.where(qid == qid[0], size, size / 2)])
    model = RankSVM(scale=scale)
    with pytest.warns(UserWarning, match="Features without effect"):
        model.fit(layout(beside), y, qid=qid)
    assert model.stop_reason_.converged
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    np.testing.assert_allclose(model.coef_[:3], alone.coef_, rtol=1e-3)
    assert abs(model.coef_[3] * size) < 1e-3
