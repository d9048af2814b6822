"""Threads: how many, who may use them, and what a fork leaves."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from marginrank import RankSVM, make_ranking
from marginrank._base.threads import available_threads, effective_threads, serial_blas

PATIENCE = 300  # seconds; what takes longer hangs, even on a busy machine with a sanitizer


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def fit_coef(_=None):
    X, y, qid = make_ranking(30, 20, 5, random_state=0)
    return RankSVM(n_jobs=2).fit(sp.csr_array(X), y, qid=qid).coef_


def passes_in_a_fork(check):
    """Return whether check() is true in a forked child that ends in time."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    for _ in range(PATIENCE * 100):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@contextmanager
def another_thread(action):
    """Call action() again and again beside the test."""
    stop = threading.Event()

    def repeat():
        while not stop.is_set():
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_blas_is_restored_when_the_last_of_overlapping_fits_ends():
    before = blas_threads()
    first, second = serial_blas(), serial_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_blas_is_restored_in_a_child_whose_parent_was_fitting():
    before = blas_threads()
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with serial_blas():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    try:
        assert passes_in_a_fork(lambda: blas_threads() == before)
        assert set(blas_threads()) == {1}
    finally:
        leave.set()
        thread.join()
    assert blas_threads() == before


def test_blas_stays_limited_in_a_fit_that_forks():
    with serial_blas():
        assert passes_in_a_fork(lambda: set(blas_threads()) == {1})
        assert set(blas_threads()) == {1}


def test_a_forked_process_can_fit():
    expected = fit_coef()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        result = pool.map_async(fit_coef, [0]).get(timeout=PATIENCE)[0]
    np.testing.assert_array_equal(result, expected)


def test_a_process_forked_while_another_thread_fits_can_fit():
    expected = fit_coef()
    with another_thread(fit_coef):
        for _ in range(40):
            assert passes_in_a_fork(lambda: np.array_equal(fit_coef(), expected))


def test_fits_in_many_threads_give_the_same_bits():
    expected = fit_coef()
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(fit_coef, range(32)):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(("value", "threads"), [("3", 3), ("5,2", 5), (" 2 ", 2)])
def test_omp_num_threads_is_honoured(monkeypatch, value, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert effective_threads(None) == threads
    assert effective_threads(-1) == threads
    assert effective_threads(-2) == threads - 1


@pytest.mark.parametrize("value", ["", "0", "-1", "many", "1.5"])
def test_without_a_usable_omp_num_threads_the_cores_count(monkeypatch, value):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert available_threads() == len(os.sched_getaffinity(0))


def test_affinity_is_honoured(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def held_to_one_core():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        return available_threads() == 1

    assert passes_in_a_fork(held_to_one_core)


SETTING = """
from marginrank import RankSVM, make_ranking
X, y, qid = make_ranking(200, 50, 20)
"""


def run_python(program):
    """Run a program in a fresh process; it must end by itself and in peace."""
    setting = (
        "from marginrank import RankSVM, make_ranking\nX, y, qid = make_ranking(200, 50, 20)\n"
    )
    subprocess.run([sys.executable, "-c", setting + program], check=True, timeout=PATIENCE)


def test_signals_do_not_come_to_the_helpers():
    run_python("""
import os, signal
def tasks():
    return set(os.listdir("/proc/self/task"))
def blocks(task, number):
    with open(f"/proc/self/task/{task}/status") as status:
        mask = next(line for line in status if line.startswith("SigBlk"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)
RankSVM(n_jobs=1).fit(X, y, qid=qid)
before = tasks()
RankSVM(n_jobs=3).fit(X, y, qid=qid)
helpers = tasks() - before
assert len(helpers) == 2, helpers
assert all(blocks(task, signal.SIGINT) and blocks(task, signal.SIGTERM) for task in helpers)
assert not any(blocks(task, signal.SIGSEGV) for task in helpers)
""")


def test_the_interpreter_ends_while_threads_fit():
    run_python("""
import threading
begun = threading.Event()
def fit_for_ever():
    while True:
        RankSVM(n_jobs=2).fit(X, y, qid=qid)
        begun.set()
for _ in range(4):
    threading.Thread(target=fit_for_ever, daemon=True).start()
begun.wait()
""")
