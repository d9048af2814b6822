"""KernelRankSVM: equal to RankSVM where it must be, and better where lines do not rank."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from helpers.plain_defaults import plain_kernel
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import chi2_kernel, pairwise_kernels, rbf_kernel
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import KernelRankSVM, RankSVM, StopReason, load_model, make_ranking
from marginrank.estimators import kernel_rank_svm
from marginrank.fit import kernel as maps
from marginrank.models import kernels

X, Y, QID = make_ranking(30, (5, 15), 6, random_state=0)
NEW = make_ranking(10, 12, 6, random_state=1)[0]


def rings(n, seed):
    """Queries whose documents are the better the nearer they are to the circle of radius 1."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    levels = np.digitize(np.abs(np.hypot(*points.T) - 1), [0.15, 0.4, 0.8])
    return points, 3.0 - levels, np.arange(n) // 25


@parametrize_with_checks([plain_kernel()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


def test_it_has_the_parameters_of_the_linear_machine():
    linear, kernel = RankSVM().get_params(), plain_kernel().get_params()
    linear.pop("warm_start")  # the coordinates of another fit mean nothing
    assert linear.items() <= kernel.items()


# The linear kernel


@pytest.mark.parametrize("n_components", [None, len(Y), 10 * len(Y)])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_the_linear_kernel_is_the_linear_machine(n_components, loss, layout):
    parameters = {"C": 0.1, "loss": loss, "tol": 1e-13}
    linear = RankSVM(**parameters).fit(X, Y, qid=QID)
    kernel = plain_kernel(kernel="linear", n_components=n_components, **parameters)
    kernel.fit(layout(X), Y, qid=QID)
    assert kernel.linear_.coef_.size == 6
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-10)
    assert kernel.n_pairs_ == linear.n_pairs_
    expected = linear.predict(NEW)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(kernel.predict(layout(NEW)), expected, atol=1e-6 * scale)
    np.testing.assert_array_equal(kernel.rank(NEW), linear.rank(NEW))
    assert kernel.score(X, Y, qid=QID) == linear.score(X, Y, qid=QID)


def test_few_landmarks_span_the_linear_kernel():
    """Six documents in general position span six features: nothing is lost."""
    linear = RankSVM(tol=1e-12).fit(X, Y, qid=QID)
    kernel = plain_kernel(kernel="linear", n_components=6, tol=1e-12).fit(X, Y, qid=QID)
    assert kernel.dual_coef_.shape == (6,)
    np.testing.assert_allclose(kernel.predict(NEW), linear.predict(NEW), rtol=1e-4, atol=1e-6)


def test_weights_and_groups_reach_the_linear_machine():
    weight = np.random.default_rng(0).uniform(size=len(Y))
    query_weight = np.random.default_rng(1).uniform(size=30)
    given = {"group": np.bincount(QID), "sample_weight": weight, "query_weight": query_weight}
    parameters = {"tol": 1e-12, "normalization": "query", "pair_selection": "adjacent"}
    linear = RankSVM(**parameters).fit(X, Y, **given)
    kernel = plain_kernel(kernel="linear", **parameters).fit(X, Y, **given)
    assert kernel.objective_ == pytest.approx(linear.objective_, rel=1e-9)
    np.testing.assert_allclose(kernel.predict(NEW), linear.predict(NEW), atol=1e-5)


# What kernels are for


def test_a_ring_is_learned_that_no_line_ranks():
    points, labels, qid = rings(800, 0)
    new, new_labels, new_qid = rings(800, 1)
    linear = RankSVM().fit(points, labels, qid=qid).score(new, new_labels, qid=new_qid)
    exact = plain_kernel(gamma=1.0).fit(points, labels, qid=qid)
    sampled = plain_kernel(gamma=1.0, n_components=60).fit(points, labels, qid=qid)
    assert linear < 0.6
    assert exact.score(new, new_labels, qid=new_qid) > 0.95
    assert sampled.score(new, new_labels, qid=new_qid) > 0.95
    assert sampled.landmarks_.shape == (60, 2)


def test_the_objective_is_that_of_the_space_of_functions():
    """½ βᵀKβ + C Σ ℓ over explicit pairs."""
    model = plain_kernel(C=0.3, gamma=0.2).fit(X, Y, qid=QID)
    K = rbf_kernel(X, gamma=0.2)
    scores = K @ model.dual_coef_
    np.testing.assert_allclose(model.predict(X), scores, atol=1e-9)
    i, j = np.nonzero((QID[:, None] == QID) & (Y[:, None] > Y))
    loss = (np.maximum(0, 1 - (scores[i] - scores[j])) ** 2).sum()
    objective = model.dual_coef_ @ scores / 2 + 0.3 * loss
    assert model.objective_ == pytest.approx(objective, rel=1e-6)


def test_the_optimum_is_stationary_in_the_space_of_functions():
    """β = −C Σ ℓ′ (e_i − e_j): no kernel matrix with a null space is in the way for rbf."""
    model = plain_kernel(C=0.1, gamma=2.0, tol=1e-12).fit(X, Y, qid=QID)
    scores = model.predict(X)
    i, j = np.nonzero((QID[:, None] == QID) & (Y[:, None] > Y))
    slope = 0.2 * np.maximum(0, 1 - (scores[i] - scores[j]))
    beta = np.bincount(i, slope, len(Y)) - np.bincount(j, slope, len(Y))
    np.testing.assert_allclose(model.dual_coef_, beta, atol=1e-4 * np.abs(beta).max())


# Kernels


KERNELS = ["linear", "poly", "rbf", "laplacian", "cosine"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_components", [None, 40])
def test_sparse_and_dense_features_give_the_same(kernel, n_components):
    thin = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.5, X, 0)
    model = plain_kernel(kernel=kernel, n_components=n_components, C=0.1, tol=1e-10)
    dense = clone(model).fit(thin, Y, qid=QID).predict(NEW)
    sparse = clone(model).fit(sp.csr_array(thin), Y, qid=QID)
    assert sp.issparse(sparse.landmarks_)
    scale = 1e-4 * np.abs(dense).max()
    np.testing.assert_allclose(sparse.predict(sp.csc_matrix(NEW)), dense, atol=scale)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_components", [None, 40])
def test_a_precomputed_kernel_gives_the_same(kernel, n_components):
    parameters = {"gamma": 0.3, "degree": 2, "coef0": 0.5}
    given = {"metric": kernel, "filter_params": True, **parameters}
    model = plain_kernel(kernel=kernel, n_components=n_components, C=0.1, tol=1e-10, **parameters)
    expected = model.fit(X, Y, qid=QID).predict(NEW)
    model.set_params(kernel="precomputed").fit(pairwise_kernels(X, **given), Y, qid=QID)
    assert model.landmarks_ is None
    between = pairwise_kernels(NEW, X, **given)
    scale = 1e-4 * np.abs(expected).max()
    for values in (between, sp.csr_array(between)):
        np.testing.assert_allclose(model.predict(values), expected, atol=scale)


def test_a_function_of_two_matrices():
    named = plain_kernel(kernel="chi2", gamma=0.5).fit(np.abs(X), Y, qid=QID)
    function = plain_kernel(kernel=lambda a, b: chi2_kernel(a, b, gamma=0.5))
    function.fit(np.abs(X), Y, qid=QID)
    np.testing.assert_allclose(function.predict(np.abs(NEW)), named.predict(np.abs(NEW)), atol=1e-8)


def test_repeated_documents_and_null_spaces_do_no_harm():
    twice = np.concatenate([X, X])
    labels, qid = np.concatenate([Y, Y]), np.concatenate([QID, QID + 30])
    once = plain_kernel(C=0.2, tol=1e-12).fit(X, Y, qid=QID)
    both = plain_kernel(C=0.1, tol=1e-12).fit(twice, labels, qid=qid)
    assert both.linear_.coef_.size <= len(Y)
    assert both.objective_ == pytest.approx(once.objective_, rel=1e-8)
    np.testing.assert_allclose(both.predict(NEW), once.predict(NEW), atol=1e-5)


def test_a_kernel_that_is_no_inner_product_warns():
    model = plain_kernel(kernel="sigmoid", gamma=0.5)
    with pytest.warns(UserWarning, match=r"\d+ of \d+ eigenvalues") as caught:
        model.fit(X, Y, qid=QID)
    assert caught[0].filename == __file__
    values = np.linalg.eigvalsh(pairwise_kernels(X, metric="sigmoid", gamma=0.5, coef0=1))
    assert values[0] < -0.01 * values[-1]
    assert model.linear_.coef_.size <= np.count_nonzero(values > 0)
    assert model.score(X, Y, qid=QID) > 0.6


@pytest.mark.parametrize(
    ("parameters", "features", "message"),
    [
        ({"kernel": "rfb"}, X, r"kernel='rfb' must be one of .*'rbf'"),
        ({"kernel": None}, X, r"kernel=None must be one of"),
        ({"gamma": 0.0}, X, r"gamma=0\.0 must be"),
        ({"gamma": "scale"}, X, r"gamma='scale' must be"),
        ({"degree": -1}, X, r"degree=-1 must be"),
        ({"coef0": np.nan}, X, r"coef0=nan must be"),
        ({"n_components": 0}, X, r"n_components=0 must be"),
        ({"C": -1.0}, X, r"C=-1\.0 must be"),
        ({"random_state": "seed"}, X, "random_state='seed' must be"),
        ({"kernel": "precomputed"}, X, r"X has shape \(\d+, 6\).*square"),
        ({"kernel": "linear"}, 0 * X, "no positive eigenvalue"),
        ({"kernel": "poly", "degree": 300}, 1e10 * X, "the kernel is NaN or infinite"),
        ({"kernel": lambda a, b: a[:, :1]}, X, r"kernel returned shape \(\d+, 1\)"),
        ({"kernel": lambda a, b: a[:, :1] - 2 * b[:, 0]}, X, "kernel is not symmetric"),
        ({}, np.where(np.eye(len(Y), 6) > 0, np.nan, X), r"X\[0, 0\] is NaN"),
    ],
)
def test_what_is_refused(parameters, features, message):
    model = plain_kernel(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(features, Y, qid=QID)
    assert not hasattr(model, "linear_")


def test_wrong_labels_are_refused_before_the_work(monkeypatch):
    monkeypatch.setattr(maps, "eigh", None)
    with pytest.raises(ValueError, match="qid has 3 entries"):
        plain_kernel().fit(X, Y, qid=[1, 2, 3])
    with pytest.raises(ValueError, match="solver='sgd'"):
        plain_kernel(solver="sgd").fit(X, Y)


def test_predict_checks_its_documents():
    with pytest.raises(NotFittedError):
        plain_kernel().predict(X)
    model = plain_kernel().fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"5 features.*6 features"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match=r"X\[2, 1\] is infinity"):
        model.predict(np.where(np.arange(12).reshape(2, 6).repeat(2, 0) == 7, np.inf, X[:4]))


# Size, threads, seeds


def test_landmarks_by_number_of_documents(monkeypatch):
    monkeypatch.setattr(maps, "EXACT_DOCUMENTS", 100)
    monkeypatch.setattr(maps, "DEFAULT_LANDMARKS", 30)
    model = plain_kernel().fit(X, Y, qid=QID)
    assert len(model.landmark_rows_) == 30
    np.testing.assert_array_equal(model.landmarks_, X[model.landmark_rows_])
    other = plain_kernel(random_state=1).fit(X, Y, qid=QID)
    assert set(other.landmark_rows_) != set(model.landmark_rows_)
    few = plain_kernel().fit(X[:100], Y[:100], qid=QID[:100])
    np.testing.assert_array_equal(few.landmark_rows_, np.arange(100))


@pytest.mark.parametrize("n_components", [None, 50])
def test_any_number_of_threads_gives_bitwise_the_same(monkeypatch, n_components):
    monkeypatch.setattr(kernels, "BLOCK_BYTES", 8 * 50 * 16)
    one, other = (
        plain_kernel(n_components=n_components, n_jobs=n_jobs).fit(X, Y, qid=QID).predict(NEW)
        for n_jobs in (1, 3)
    )
    assert one.tobytes() == other.tobytes()


def test_memory_of_predictions_is_bounded(monkeypatch):
    largest = []
    original = pairwise_kernels

    def spy(A, B, **options):
        largest.append(len(A) * len(B) * 8)
        return original(A, B, **options)

    model = plain_kernel(n_jobs=1).fit(X, Y, qid=QID)
    monkeypatch.setattr(kernels, "pairwise_kernels", spy)
    whole = model.predict(NEW)
    assert len(largest) == 1
    monkeypatch.setattr(kernels, "BLOCK_BYTES", 10 * 8 * len(Y))
    largest.clear()
    np.testing.assert_allclose(model.predict(NEW), whole, rtol=1e-10)
    assert len(largest) == 12
    assert max(largest) <= 10 * 8 * len(Y)


def test_float32_stays_float32_and_is_close(monkeypatch):
    kinds = []
    fit = maps.fit_linear

    def spy(data, *args, **options):
        kinds.append(data.X.dtype)
        return fit(data, *args, **options)

    monkeypatch.setattr(maps, "fit_linear", spy)
    for n_components in (None, 50):
        model = plain_kernel(C=0.1, n_components=n_components)
        single = clone(model).fit(X.astype(np.float32), Y, qid=QID).predict(NEW)
        np.testing.assert_allclose(single, model.fit(X, Y, qid=QID).predict(NEW), atol=1e-2)
    assert kinds == [np.float32, np.float64] * 2


def test_inputs_are_not_modified():
    values = rbf_kernel(X)
    before = values.copy()
    values.flags.writeable = False
    plain_kernel(kernel="precomputed").fit(values, Y, qid=QID).predict(values)
    np.testing.assert_array_equal(values, before)


# scikit-learn


def test_column_names_of_frames():
    table = pd.DataFrame(X, columns=list("abcdef"))
    model = plain_kernel().fit(table, Y, qid=QID)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_allclose(
        model.predict(table), plain_kernel().fit(X, Y, qid=QID).predict(X), rtol=1e-6
    )


def test_cross_validation_cuts_a_precomputed_kernel_both_ways():
    values = rbf_kernel(X)
    with sklearn.config_context(enable_metadata_routing=True):
        cv = GroupKFold(3).set_split_request(groups=True)
        params = {"qid": QID, "groups": QID}
        model = plain_kernel(kernel="precomputed")
        scores = cross_val_score(model, values, Y, cv=cv, params=params)
        expected = cross_val_score(plain_kernel(), X, Y, cv=cv, params=params)
    np.testing.assert_allclose(scores, expected, atol=1e-3)


def test_an_interrupt_stores_the_best_model_and_is_raised(monkeypatch):
    def interrupt(line):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernel_rank_svm, "print_iteration", interrupt)
    model = plain_kernel(tol=1e-12, verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, qid=QID)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert model.score(X, Y, qid=QID) > 0.6


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_components", [None, 50])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_scale_is_the_same_as_a_scaler_first(layout, n_components, kernel):
    sizes = 10.0 ** np.arange(-3, 3)
    parameters = {"kernel": kernel, "n_components": n_components, "tol": 1e-12}
    scaler = StandardScaler().fit(X * sizes)
    model = plain_kernel(scale="standard", **parameters).fit(layout(X * sizes), Y, qid=QID)
    other = plain_kernel(**parameters).fit(scaler.transform(X * sizes), Y, qid=QID)
    np.testing.assert_allclose(model.scale_, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(
        model.predict(layout(NEW * sizes)), other.predict(scaler.transform(NEW * sizes)), atol=1e-6
    )
    kept = model.landmarks_
    kept = kept.toarray() if sp.issparse(kept) else kept
    np.testing.assert_array_equal(kept, (X * sizes)[model.landmark_rows_])


@pytest.mark.parametrize("n_components", [None, 50])
@pytest.mark.parametrize("offset", [1e5, 1.7e8])
def test_large_offsets_of_features_drop_out_of_distances(n_components, offset):
    """Squared norms of 1e16 would leave nothing of distances of 1."""
    moved = X + offset
    scaler = StandardScaler().fit(moved)
    model = KernelRankSVM(scale="standard", n_components=n_components, tol=1e-12)
    model.fit(moved, Y, qid=QID)
    plain = KernelRankSVM(n_components=n_components, tol=1e-12)
    expected = clone(plain).fit(scaler.transform(moved), Y, qid=QID)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    scores = expected.predict(scaler.transform(NEW + offset))
    np.testing.assert_allclose(model.predict(NEW + offset), scores, atol=1e-6)
    np.testing.assert_allclose(model.predict(sp.csr_array(NEW + offset)), scores, atol=1e-6)
    expected = clone(plain).fit(moved - moved.mean(axis=0), Y, qid=QID)
    assert plain.fit(moved, Y, qid=QID).objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_a_precomputed_kernel_has_nothing_to_scale():
    with pytest.raises(ValueError, match=r"scale.*precomputed"):
        plain_kernel(kernel="precomputed", scale="standard").fit(X @ X.T, Y, qid=QID)


def test_a_wrong_scale_is_refused():
    with pytest.raises(ValueError, match="scale='minmax'"):
        plain_kernel(scale="minmax").fit(X, Y, qid=QID)


def test_defaults_do_not_depend_on_the_units_of_features(tmp_path):
    X, y, qid = make_ranking(10, 10, 4, random_state=0)
    model = KernelRankSVM().fit(X, y, qid=qid)
    assert model.gamma_ == 0.1 / 4
    other = KernelRankSVM().fit(X * [1e3, 1.0, 1e-3, 1.0], y, qid=qid)
    expected = model.predict(X)
    np.testing.assert_allclose(other.predict(X * [1e3, 1.0, 1e-3, 1.0]), expected, rtol=1e-5)
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert loaded.gamma_ == loaded.gamma == 0.1 / 4
    np.testing.assert_array_equal(loaded.predict(X), expected)
    assert KernelRankSVM(kernel="poly").fit(X, y, qid=qid).gamma_ is None
