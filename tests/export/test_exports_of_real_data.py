"""Every export against `predict`, on public data with raw features of more than 1e8."""

import warnings

import numpy as np
import pytest
from exports import EVERY_TARGET, assert_scores, scores_of

from marginrank import RankSVM, metrics

SETS = {
    "MQ2008": ("MQ2008/S1.txt.gz", "MQ2008/S5.txt.gz"),
    "OHSUMED": ("OHSUMED/S1.txt.gz", "OHSUMED/S5.txt.gz"),
    "MSLR": ("MSLR-sample/train.txt.gz", "MSLR-sample/test.txt.gz"),
}
N_DOCUMENTS = 1_000


@pytest.fixture(scope="module")
def ranked(real_data):
    """Return a function from the name of a set to a model and documents it has not seen."""
    models = {}

    def ranked(name):
        if name not in models:
            (X, y, qid), test = map(real_data, SETS[name])
            with warnings.catch_warnings(action="ignore"):  # constant features
                model = RankSVM(C=1e-3, scale="standard").fit(X, y, qid=qid)
            width = min(X.shape[1], test[0].shape[1])
            documents = np.zeros((len(test[0]), X.shape[1]))
            documents[:, :width] = test[0][:, :width]
            judged = [part[:N_DOCUMENTS] for part in (documents, *test[1:])]
            models[name] = model, *judged
        return models[name]

    return ranked


@pytest.mark.parametrize("target", EVERY_TARGET)
@pytest.mark.parametrize("name", SETS)
def test_scores_and_ndcg_are_those_of_predict(ranked, name, target):
    model, X, y, qid = ranked(name)
    expected = model.predict(X)
    scores = scores_of(model.to_linear_model(), target, X)
    assert_scores(target, scores, expected)
    before, after = (metrics.ndcg(y, s, qid=qid, k=10) for s in (expected, scores))
    assert after == pytest.approx(before, abs=1e-4)
