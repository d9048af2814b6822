"""Tables of results: data frames, HTML and reprs."""

import sys

import numpy as np
import pytest

from marginrank import (
    AdditiveRankSVM,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    cross_validate_ranking,
    learning_curve_ranking,
    linear_path,
    make_ranking,
    rank_features,
    sparse_path,
)
from marginrank._utils.tables import MOST_ROWS, ResultTable
from marginrank.metrics import compare

X, Y, QID = make_ranking(30, 10, 200, random_state=0)
VALIDATION = (X, Y, QID)


def of_a_search():
    search = RankSVMCV(n_points=3, cv=2, scale=["none", "standard"], normalization="none")
    return search.fit(X, Y, qid=QID).search_


RESULTS = {
    "linear_path": lambda: linear_path(X, Y, qid=QID, n_points=4, validation=VALIDATION),
    "linear_path without scores": lambda: linear_path(X, Y, qid=QID, n_points=4),
    "sparse_path": lambda: sparse_path(X, Y, qid=QID, n_points=4, validation=VALIDATION),
    "cross_validate_ranking": lambda: cross_validate_ranking(
        RankSVM(), X, Y, qid=QID, cv=3, scoring=["ndcg@10", "auc"], return_estimator=True
    ),
    "compare": lambda: compare(Y, X[:, 0], X[:, 1], qid=QID),
    "search": of_a_search,
    "learning_curve_ranking": lambda: learning_curve_ranking(X, Y, qid=QID, cv=2),
    "rank_features": lambda: rank_features(X, Y, qid=QID),
}
ROWS = {
    "linear_path": 4,
    "linear_path without scores": 4,
    "sparse_path": 4,
    "cross_validate_ranking": 3,
    "compare": 1,
    "search": 6,
    "learning_curve_ranking": 4,
    "rank_features": 200,
}


@pytest.fixture(scope="module", params=RESULTS)
def named_result(request):
    return request.param, RESULTS[request.param]()


def test_every_result_has_a_frame_a_table_and_a_short_repr(named_result):
    name, result = named_result
    frame = result.to_frame()
    assert len(frame) == ROWS[name]
    html = result._repr_html_()
    assert html.count("<th>") == frame.shape[1]
    assert html.count("<tr>") == 1 + min(len(frame), MOST_ROWS)
    assert len(repr(result)) < 200
    assert "array" not in repr(result)


def test_frames_hold_the_numbers_of_the_result():
    path = linear_path(X, Y, qid=QID, n_points=4, validation=VALIDATION)
    frame = path.to_frame()
    np.testing.assert_array_equal(frame["C"], path.values)
    np.testing.assert_array_equal(frame["score"], path.scores)
    assert frame["stop_reason"].tolist() == [stop.name for stop in path.stop_reasons]
    assert f"at C={path.values[path.best_index]:.4g}" in repr(path)

    selection = of_a_search()
    frame = selection.to_frame()
    np.testing.assert_array_equal(frame[["fold1", "fold2"]], selection.scores)
    assert frame["scale"].tolist() == ["none"] * 3 + ["standard"] * 3
    assert f"C={selection.parameters.C:.4g}" in repr(selection)

    comparison = compare(Y, X[:, 0], X[:, 1], qid=QID)
    assert comparison.to_frame().loc[0, ["low", "high"]].tolist() == list(comparison.interval)


def test_a_path_whose_scores_are_undefined_has_a_repr():
    nothing = (X, np.zeros(len(X)), QID)
    path = linear_path(X, Y, qid=QID, n_points=2, validation=nothing, metric="kendall_tau")
    assert np.isnan(path.scores).all()
    assert "best" not in repr(path)


def test_cross_validation_is_still_a_dictionary():
    result = RESULTS["cross_validate_ranking"]()
    frame = result.to_frame()
    assert frame["fold"].tolist() == [1, 2, 3]
    np.testing.assert_array_equal(frame["test_auc"], result["test_auc"])
    assert "estimator" in result
    assert "estimator" not in frame


def test_all_text_of_a_table_is_escaped():
    names = ["<script>alert(1)</script>", *(f"f{j}" for j in range(199))]
    ranking = rank_features(np.repeat(X[:, :1], 200, axis=1), Y, qid=QID, feature_names=names)
    html = ranking._repr_html_()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 2  # in the caption and in the first row
    assert f"first {MOST_ROWS} of 200 rows" in html


class Named(ResultTable):
    def _columns(self):
        return {"<b>": ["<i>"]}

    def _summary(self):
        return "<u>"


def test_names_of_columns_are_escaped():
    html = Named()._repr_html_()
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in html
        assert tag.replace("<", "&lt;").replace(">", "&gt;") in html


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = RESULTS["compare"]()
    with pytest.raises(ImportError, match="pandas is not installed; get it with: pip install pand"):
        result.to_frame()
    assert result._repr_html_().startswith("<table>")


def test_models_have_a_short_repr():
    few = X[:, :5]
    models = [
        RankSVM().fit(X, Y, qid=QID).to_linear_model(),
        AdditiveRankSVM(C=0.01).fit(few, Y, qid=QID).to_additive_model(),
        KernelRankSVM(C=0.01).fit(few, Y, qid=QID)._plain_model(),
    ]
    assert [repr(model) for model in models] == [
        "LinearModel(RankSVM, 200 features)",
        "AdditiveModel(5 curves, 0 interactions)",
        "KernelModel(300 landmarks, 5 features)",
    ]
