"""Pipelines folded into one linear model: the same order, the same scores up to a constant."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from helpers.tables import each
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from marginrank import (
    KernelRankSVM,
    QueryScaler,
    RankSVM,
    RankSVMCV,
    SelectKBestRanking,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    as_linear_model,
    load_model,
    make_ranking,
)
from marginrank.models import read_model, write_model

N_FEATURES = 7
NAMES = [f"feature {k}" for k in range(N_FEATURES)]


def documents(seed, *, sparse=False):
    """Return data with features of sizes from 1e-3 to 1e6, one of them constant."""
    rng = np.random.default_rng(seed)
    X, y, qid = make_ranking(8, 6, N_FEATURES, random_state=seed)
    X = X * 10.0 ** rng.integers(-3, 6, N_FEATURES) + rng.normal(size=N_FEATURES)
    if sparse:
        X[rng.random(X.shape) < 0.5] = 0
    X[:, rng.integers(N_FEATURES)] = 3.0
    return (sp.csr_array(X) if sparse else X), y, qid


def fitted(pipeline, X, y, qid):
    with sklearn.config_context(enable_metadata_routing=True):
        return pipeline.fit(X, y, qid=qid)


def assert_folds(pipeline, X):
    """Compare with predict, up to a constant, in units of the spread of the scores."""
    expected = pipeline.predict(X)
    model = as_linear_model(pipeline)
    values = X.to_numpy() if isinstance(X, pd.DataFrame) else X
    scores = values @ model.coef
    difference = scores - expected
    size = (
        np.abs(values * 1.0) @ np.abs(model.coef)
        if not sp.issparse(X)
        else abs(X) @ np.abs(model.coef)
    )
    digits = 1e-13 * (1 + size.max() + np.abs(expected).max())
    assert np.ptp(difference) <= digits
    near = np.abs(np.subtract.outer(expected, expected)) <= 2 * digits
    same = np.sign(np.subtract.outer(scores, scores)) == np.sign(
        np.subtract.outer(expected, expected)
    )
    assert (same | near).all()
    return model


def scaler(rng, sparse):
    kinds = [
        StandardScaler(with_mean=not sparse, with_std=bool(rng.integers(2))),
        MaxAbsScaler(),
        RobustScaler(with_centering=not sparse, with_scaling=bool(rng.integers(4))),
        FunctionTransformer(accept_sparse=True),
        "passthrough",
    ]
    if not sparse:
        kinds += [MinMaxScaler((-1, 2)), StandardScaler(), MinMaxScaler()]
    return kinds[rng.integers(len(kinds))]


def selector(rng):
    kinds = [
        VarianceThreshold(),
        SelectKBest(f_regression, k=int(rng.integers(2, 5))),
        SelectKBestRanking(k=int(rng.integers(2, 5))),
        SelectFromModel(Ridge(), max_features=2, threshold=-np.inf),
    ]
    return kinds[rng.integers(len(kinds))]


def by_columns(rng, sparse):
    """Return transformers of columns that may overlap."""
    groups = [rng.permutation(N_FEATURES)[: rng.integers(1, 4)].tolist() for _ in range(3)]
    inner = [scaler(rng, sparse), make_pipeline(scaler(rng, sparse), scaler(rng, sparse)), "drop"]
    return ColumnTransformer(
        [
            (f"t{k}", step, columns)
            for k, (step, columns) in enumerate(zip(inner, groups, strict=True))
        ],
        remainder=["drop", "passthrough", MaxAbsScaler()][rng.integers(3)],
        transformer_weights=[None, {"t0": 2.5}][rng.integers(2)],
    )


def random_pipeline(rng, sparse):
    steps = []
    if rng.integers(2):
        steps.append(by_columns(rng, sparse))
    steps += [scaler(rng, sparse) for _ in range(rng.integers(3))]
    if rng.integers(2) and not any(isinstance(step, ColumnTransformer) for step in steps):
        steps.append(selector(rng))
        steps.append(scaler(rng, sparse))
    return make_pipeline(*steps, RankSVM(C=0.1, tol=1e-3))


@each("sparse", [False, True])
@each("block", range(15))
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_random_pipelines(block, sparse):
    for seed in range(10 * block, 10 * (block + 1)):
        rng = np.random.default_rng(seed)
        X, y, qid = documents(seed, sparse=sparse)
        pipeline = fitted(random_pipeline(rng, sparse), X, y, qid)
        assert_folds(pipeline, X)


@pytest.mark.parametrize(
    "ranker",
    [
        RankSVM(scale="standard"),
        RankSVMCV(Cs=[0.1, 1.0], cv=2),
        SparseRankSVM(),
        SparseRankSVMCV(cv=2),
        SGDRankSVM(max_iter=3, tol=0.0),
    ],
    ids=lambda ranker: type(ranker).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_linear_ranker(ranker):
    X, y, qid = make_ranking(20, 8, 5, random_state=0)
    pipeline = fitted(make_pipeline(StandardScaler(), ranker), X, y, qid)
    model = assert_folds(pipeline, X)
    assert model.scale is None
    assert model.report is not None


def test_names_of_features_are_kept_and_files_hold_the_model(tmp_path):
    X, y, qid = documents(1)
    frame = pd.DataFrame(X, columns=NAMES)
    columns = ColumnTransformer(
        [
            ("some", StandardScaler(), NAMES[:3]),
            ("last", MinMaxScaler(), slice(NAMES[4], NAMES[5])),
        ],
        remainder="passthrough",
    )
    pipeline = fitted(Pipeline([("columns", columns), ("rank", RankSVM())]), frame, y, qid)
    model = assert_folds(pipeline, frame)
    assert model.feature_names == NAMES
    write_model(model, tmp_path / "model.json")
    np.testing.assert_array_equal(read_model(tmp_path / "model.json").coef, model.coef)
    loaded = load_model(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.predict(frame), X @ model.coef, rtol=1e-12)


@pytest.mark.parametrize(
    "columns",
    [[0, 2], slice(0, 3), [True, False, True, False, False, False, True], lambda X: [1], [-1]],
    ids=["integers", "slice", "mask", "function", "from the end"],
)
def test_columns_in_any_spelling(columns):
    X, y, qid = documents(2)
    step = ColumnTransformer([("some", StandardScaler(), columns)], remainder=RobustScaler())
    assert_folds(fitted(make_pipeline(step, RankSVM()), X, y, qid), X)


def test_columns_that_select_none():
    X, y, qid = documents(3)
    frame = pd.DataFrame(X, columns=NAMES)
    words = make_column_selector(dtype_include=object)
    step = ColumnTransformer([("words", StandardScaler(), words)], remainder=MinMaxScaler())
    assert_folds(fitted(make_pipeline(step, RankSVM()), frame, y, qid), frame)


def test_features_that_no_step_kept_weigh_nothing():
    X, y, qid = documents(4)
    pipeline = fitted(make_pipeline(SelectKBestRanking(k=2), RankSVM()), X, y, qid)
    coef = as_linear_model(pipeline).coef
    kept = pipeline[0].get_support()
    assert coef.size == N_FEATURES
    assert (coef[~kept] == 0).all()
    np.testing.assert_array_equal(coef[kept], pipeline[-1].coef_)


def test_a_ranker_alone_is_its_own_record():
    X, y, qid = documents(5)
    model = RankSVM().fit(X, y, qid=qid)
    np.testing.assert_array_equal(as_linear_model(model).coef, model.coef_)
    pipeline = Pipeline([("none", "passthrough"), ("rank", model)])
    np.testing.assert_array_equal(as_linear_model(pipeline).coef, model.coef_)


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (PolynomialFeatures(), "step (PolynomialFeatures: not known to be linear)"),
        (QuantileTransformer(n_quantiles=5), "step (QuantileTransformer: not known"),
        (PCA(2), "step (PCA: not known to be linear)"),
        (FunctionTransformer(np.log1p), "step (FunctionTransformer: arbitrary function)"),
        (MinMaxScaler(clip=True), "step (MinMaxScaler: clip=True bounds the features)"),
        (QueryScaler(), "step (QueryScaler: depends on the other documents"),
        (FeatureUnion([("a", StandardScaler())]), "step (FeatureUnion: not known"),
        (
            ColumnTransformer(
                [("deep", make_pipeline(PCA(1)), [0])], remainder=PolynomialFeatures()
            ),
            "step.deep.pca (PCA: not known to be linear), step.remainder (Polyn",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_steps_that_are_not_linear_are_named(step, named):
    X, y, qid = make_ranking(8, 6, 3, random_state=0)
    pipeline = fitted(Pipeline([("step", step), ("rank", RankSVM())]), abs(X), y, qid)
    with pytest.raises(ValueError, match="not linear") as error:
        as_linear_model(pipeline)
    assert named in str(error.value)


def test_other_rankers_and_other_objects_are_refused():
    X, y, qid = make_ranking(8, 6, 3, random_state=0)
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", KernelRankSVM())])
    with pytest.raises(ValueError, match=r"rank \(KernelRankSVM: "):
        as_linear_model(fitted(pipeline, X, y, qid))
    with pytest.raises(ValueError, match=r"model is a Ridge.*Pipeline"):
        as_linear_model(Ridge())
    with pytest.raises(NotFittedError):
        as_linear_model(make_pipeline(StandardScaler(), RankSVM()))


def test_a_pipeline_may_end_in_a_pipeline():
    X, y, qid = documents(5)
    inner = Pipeline([("smallest", MinMaxScaler()), ("ranker", RankSVM())])
    assert_folds(fitted(Pipeline([("scale", StandardScaler()), ("rest", inner)]), X, y, qid), X)
    inner = Pipeline([("turn", PCA()), ("ranker", KernelRankSVM())])
    with pytest.raises(ValueError, match=r"rest\.turn \(PCA: .*, rest\.ranker \(KernelRankSVM: "):
        as_linear_model(fitted(Pipeline([("rest", inner)]), X, y, qid))


def test_transformers_without_columns_are_in_nobodys_way():
    X, y, qid = documents(6)
    frame = pd.DataFrame(X, columns=NAMES)
    text = make_column_selector(dtype_include=object)
    columns = ColumnTransformer([("text", PCA(), text)], remainder=StandardScaler())
    assert_folds(fitted(make_pipeline(columns, RankSVM()), frame, y, qid), frame)


def test_a_scaler_that_does_more_is_not_taken_for_one():
    class Bounded(StandardScaler):
        def transform(self, X, copy=None):
            return np.tanh(super().transform(X, copy))

    X, y, qid = documents(7)
    with pytest.raises(ValueError, match=r"Bounded: .*StandardScaler"):
        as_linear_model(fitted(make_pipeline(Bounded(), RankSVM()), X, y, qid))
