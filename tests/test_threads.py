"""Threads: how many, who may use them, and what a fork leaves."""

import multiprocessing

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from marginrank import RankSVM, make_ranking
from marginrank._threads import serial_blas


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_blas_is_restored_when_the_last_of_overlapping_fits_ends():
    before = blas_threads()
    first, second = serial_blas(), serial_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def fit_coef(_):
    X, y, qid = make_ranking(30, 20, 5, random_state=0)
    return RankSVM(n_jobs=2).fit(sp.csr_array(X), y, qid=qid).coef_


def test_a_forked_process_can_fit():
    expected = fit_coef(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        result = pool.map_async(fit_coef, [0]).get(timeout=60)[0]
    np.testing.assert_array_equal(result, expected)
