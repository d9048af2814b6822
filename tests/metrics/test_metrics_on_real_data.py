"""Known figures of real data; MARGINRANK_DATA names the folder that holds it."""

import numpy as np
import pytest

from marginrank import RankSVM, metrics


def fold(real_data, name, f):
    """Return training and test data of fold f = 1 … 5."""
    parts = [f"{name}/S{(f + i - 1) % 5 + 1}.txt.gz" for i in range(5)]
    return real_data(*parts[:3]), real_data(parts[4])


def test_mq2008(real_data):
    """As LIBLINEAR-ranksvm prints them at the optimum of C = 1."""
    (X, y, qid), (X_test, y_test, qid_test) = fold(real_data, "MQ2008", 1)
    scores = RankSVM(C=1.0, tol=1e-9).fit(X, y, qid=qid).predict(X_test)
    accuracy = metrics.pairwise_accuracy(y_test, scores, qid=qid_test)
    assert 100 * accuracy == pytest.approx(82.7171, abs=5e-5)
    assert metrics.letor_mean_ndcg(y_test, scores, qid=qid_test) == pytest.approx(
        0.460417, abs=5e-7
    )


def test_ohsumed(real_data):
    """Paper 2 prints 0.454."""
    values = []
    for f in (1, 2, 3, 4, 5):
        (X, y, qid), (X_test, y_test, qid_test) = fold(real_data, "OHSUMED", f)
        scores = RankSVM(C=1e-4, tol=1e-9).fit(X, y, qid=qid).predict(X_test)
        values.append(metrics.ndcg(y_test, scores, qid=qid_test, k=10, discount="letor"))
    assert np.mean(values) == pytest.approx(0.4536, abs=5e-4)
