"""Rows of features, found by the ids of queries and documents."""

import tracemalloc

import numpy as np

from marginrank import RankingData
from marginrank.clicks.features import FeatureIndex


def test_one_long_query_id_does_not_lengthen_the_others():
    qid = np.repeat(np.arange(500), 4).astype(str).astype(object)
    qid[0:4] = "long " * 2000
    data = RankingData(
        np.ones((2000, 1)), np.zeros(2000), qid=qid, comments=["a", "b", "c", "d"] * 500
    )
    tracemalloc.start()
    index = FeatureIndex(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert index.find("499", "d") == 1999
    assert index.find(qid[0], "c") == 2
    assert peak < 2 << 20  # as an array of text, the ids take 20 MB or more
