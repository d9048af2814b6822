"""Every export against `predict`, on public data with raw features of more than 1e8."""

import warnings

import numpy as np
import pytest
from helpers.exports import EVERY_TARGET, assert_scores, scores_of
from helpers.plain_defaults import plain_curves

from marginrank import AdditiveRankSVM, RankSVM, metrics
from marginrank.export.exporting import export_files

SETS = {
    "MQ2008": ("MQ2008/S1.txt.gz", "MQ2008/S5.txt.gz"),
    "OHSUMED": ("OHSUMED/S1.txt.gz", "OHSUMED/S5.txt.gz"),
    "MSLR": ("MSLR-sample/train.txt.gz", "MSLR-sample/test.txt.gz"),
}
N_DOCUMENTS = 1_000


@pytest.fixture(scope="module")
def ranked(real_data):
    """Return a function from a set and a learner to a model and documents it has not seen."""
    models = {}

    def ranked(name, learner, precision="float64"):
        key = name, learner, precision
        if key not in models:
            (X, y, qid), test = map(real_data, SETS[name])
            X = X.astype(precision)
            with warnings.catch_warnings(action="ignore"):  # constant features
                model = learner(C=1e-3, scale="standard", tol=1e-3).fit(X, y, qid=qid)
            width = min(X.shape[1], test[0].shape[1])
            documents = np.zeros((len(test[0]), X.shape[1]))
            documents[:, :width] = test[0][:, :width].astype(precision)
            judged = [part[:N_DOCUMENTS] for part in (documents, *test[1:])]
            models[key] = model, *judged
        return models[key]

    return ranked


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("name", SETS)
def test_scores_and_ndcg_are_those_of_predict(ranked, name, target):
    model, X, y, qid = ranked(name, RankSVM)
    expected = model.predict(X)
    scores = scores_of(model.to_linear_model(), target, X)
    assert_scores(target, scores, expected)
    before, after = (metrics.ndcg(y, s, qid=qid, k=10) for s in (expected, scores))
    assert after == pytest.approx(before, abs=1e-4)


@pytest.mark.parametrize("target", ["onnx", "onnx-float32", "pmml"])
@pytest.mark.parametrize("name", SETS)
def test_graphs_of_curves_score_as_predict(ranked, name, target):
    """PyPMML takes a line as slope · x + constant, which costs digits where a bin is narrow."""
    precision = "float32" if target == "onnx-float32" else "float64"
    model, X, _, _ = ranked(name, AdditiveRankSVM, precision)
    expected = model.predict(X)
    scores = scores_of(model.to_additive_model(), target, X)
    if target == "pmml":
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    else:
        assert_scores(target, scores, expected)


def test_float32_refuses_curves_of_float64_with_steps_that_it_would_blur(ranked):
    """OHSUMED has values such as 0.499999 and 0.5, and a knot at each of them."""
    model, *_ = ranked("OHSUMED", plain_curves)
    with pytest.raises(ValueError, match="knots that float32 cannot hold or distinguish"):
        export_files(model.to_additive_model(), "onnx-float32")
