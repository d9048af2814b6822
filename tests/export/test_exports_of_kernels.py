"""Exports of kernel models: ONNX scores as `predict` does, and other targets say so."""

import json

import numpy as np
import onnxruntime
import pytest
import scipy.sparse as sp
from helpers.exports import EVERY_TARGET, HOSTILE_NAMES, assert_scores, random_documents, scores_of

from marginrank import KernelRankSVM, make_ranking
from marginrank.export.exporting import export_files
from marginrank.export.registry import TARGETS
from marginrank.export.sums import KERNELS
from marginrank.models import KernelModel

TAKERS = [name for name, target in TARGETS.items() if "kernel" in target.takes]
every_taker = pytest.mark.parametrize("target", TAKERS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def random_kernel_model(kernel, n_features=5, n_landmarks=30, seed=0, names=None, **parameters):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-2, 3, n_features)
    return KernelModel(
        parameters={"kernel": kernel, **parameters},
        dual_coef=rng.normal(size=n_landmarks) * (np.arange(n_landmarks) % 7 != 3),
        landmark_rows=np.arange(n_landmarks),
        landmarks=rng.normal(size=(n_landmarks, n_features)) * scale,
        n_features=n_features,
        feature_names=names,
        report=None,
        scale=scale,
    )


def random_features(n_documents, model, seed=1):
    """Return documents as large as the scale of a model."""
    X = np.random.default_rng(seed).normal(size=(n_documents, model.n_features))
    return X if model.scale is None else X * model.scale


def without(model, **changes):
    return KernelModel(**(vars(model) | changes))


def test_who_takes_kernels():
    assert TAKERS == ["onnx", "onnx-float32"]


@every_taker
@every_kernel
@pytest.mark.parametrize("n_features", [1, 5])
def test_every_kernel(target, kernel, n_features):
    model = random_kernel_model(kernel, n_features)
    X = random_features(40, model)
    assert_scores(target, scores_of(model, target, X), model.scores(X))


@every_kernel
def test_parameters_of_kernels(kernel):
    model = random_kernel_model(kernel, gamma=0.37, degree=2.0, coef0=-0.6)
    X = random_features(40, model)
    assert_scores("onnx", scores_of(model, "onnx", X), model.scores(X))


@every_taker
@every_kernel
def test_models_without_a_scale_of_sparse_landmarks(target, kernel):
    model = random_kernel_model(kernel)
    dense = model.landmarks / model.scale
    sparse = sp.csr_array(np.where(dense > 0, dense, 0.0))
    model = without(model, scale=None, landmarks=sparse)
    X = random_features(20, model)
    assert_scores(target, scores_of(model, target, X), model.scores(X))


@every_taker
@every_kernel
def test_missing_features_count_as_zero(target, kernel):
    """Those of a document of nothing else, too, which has no direction."""
    model = random_kernel_model(kernel, 8)
    X = random_documents(30, 8) * model.scale
    X[0] = np.nan
    expected = model.scores(np.where(np.isnan(X), 0.0, X))
    assert_scores(target, scores_of(model, target, X), expected)


def test_large_offsets_of_features():
    model = random_kernel_model("rbf")
    offset = 1e8 * model.scale
    model = without(model, landmarks=model.landmarks + offset)
    X = random_features(40, model) + offset
    X[0, 2] = 0.0
    expected = model.scores(X)
    X[0, 2] = np.nan
    assert_scores("onnx", scores_of(model, "onnx", X), expected)


@every_taker
def test_more_documents_than_are_run_at_a_time(target):
    model = random_kernel_model("rbf")
    X = random_features(2_500, model)
    assert_scores(target, scores_of(model, target, X), model.scores(X))


@every_taker
def test_names_and_offsets(target):
    model = random_kernel_model("rbf", len(HOSTILE_NAMES), names=HOSTILE_NAMES)
    X = random_features(9, model)
    scores = scores_of(model, target, X, offset=2.5)
    assert_scores(target, scores, model.scores(X) + 2.5)
    scores = scores_of(model, target, X, names={"plain": "other"})
    assert_scores(target, scores, model.scores(X))


def test_features_are_named_in_the_graph_and_landmarks_without_weights_left_out():
    onnx = pytest.importorskip("onnx")
    model = random_kernel_model("rbf", 2, names=["a", "b"])
    made = onnx.load_from_string(export_files(model, "onnx")[""])
    assert json.loads(made.metadata_props[0].value) == ["a", "b"]
    shapes = {each.name: tuple(each.dims) for each in made.graph.initializer}
    n_kept = np.count_nonzero(model.dual_coef)
    assert (shapes["landmarks"], shapes["weights"]) == ((2, n_kept), (n_kept,))
    assert n_kept < model.dual_coef.size


@every_taker
@every_kernel
def test_models_without_weights_are_not_exported(target, kernel):
    model = random_kernel_model(kernel)
    model = without(model, dual_coef=np.zeros_like(model.dual_coef))
    with pytest.raises(ValueError, match="all landmarks of the model are zero"):
        export_files(model, target)


def not_a_product(X, Z):
    return np.abs(X[:, :1] - Z[:, 0])


@every_taker
@pytest.mark.parametrize(
    ("kernel", "called"),
    [
        ("laplacian", "'laplacian'"),
        ("chi2", "'chi2'"),
        ("additive_chi2", "'additive_chi2'"),
        ("precomputed", "'precomputed'"),
        (not_a_product, "a function"),
    ],
)
def test_other_kernels_are_refused_by_name(target, kernel, called):
    message = rf"the kernel {called} .*; score with .* train with one of 'linear', 'poly'"
    with pytest.raises(ValueError, match=message):
        export_files(random_kernel_model(kernel), target)


@pytest.mark.parametrize("target", [name for name in EVERY_TARGET if name not in TAKERS])
def test_other_targets_name_those_that_take_kernels(target):
    message = rf"{target} does not support kernel .*; export it to onnx or onnx-float32, or train"
    with pytest.raises(ValueError, match=message):
        export_files(random_kernel_model("rbf"), target)


def test_weights_that_are_not_finite_are_refused():
    model = random_kernel_model("rbf")
    with pytest.raises(ValueError, match=r"dual_coef_.*NaN or infinity"):
        export_files(without(model, dual_coef=model.dual_coef * np.nan), "onnx")


def test_graphs_that_no_file_holds_are_refused(monkeypatch):
    monkeypatch.setattr("marginrank.export.targets._onnx.LARGEST_FILE", 1_000)
    with pytest.raises(ValueError, match=r"bytes of numbers, .* 2 GiB"):
        export_files(random_kernel_model("rbf"), "onnx")


def test_the_estimator_exports_what_it_predicts(tmp_path):
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    model = KernelRankSVM(n_components=15).fit(X, y, qid=qid)
    (path,) = model.export(tmp_path / "kernel.onnx", "onnx")
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    (scores,) = session.run(None, {given.name: X})
    np.testing.assert_allclose(scores.ravel(), model.predict(X), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="onnx"):
        model.export(tmp_path / "kernel.sql", "sqlite")
