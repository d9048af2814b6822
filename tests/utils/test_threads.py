"""Threads: how many, who may use them, and what a fork leaves."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from marginrank import KernelRankSVM, RankSVM, make_ranking
from marginrank._utils import threads
from marginrank._utils.threads import available_threads, effective_threads, serial_blas

PATIENCE = 300  # seconds; what takes longer hangs, even on a busy machine with a sanitizer


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.fixture
def three_blas_threads(monkeypatch):
    """Let BLAS have three threads, which the session limits to one, and the main thread own it."""
    monkeypatch.setattr(threads, "_shared_limit", threads._SharedLimit())
    with threadpool_limits(3, "blas"):
        yield


def serial_blas_threads():
    with serial_blas():
        return blas_threads()


def fit_coef(_=None):
    X, y, qid = make_ranking(30, 20, 5, random_state=0)
    return RankSVM(n_jobs=2).fit(sp.csr_array(X), y, qid=qid).coef_


def passes_in_a_fork(check):
    """Return whether check() is true in a forked child that ends."""
    until_it_ends, held = os.pipe()  # the child holds the other end as long as it lives
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if check() else 2
        finally:
            os._exit(status)
    os.close(held)
    if not select.select([until_it_ends], [], [], PATIENCE)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(until_it_ends)
    return os.waitpid(child, 0)[1] == 0


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


@pytest.mark.usefixtures("three_blas_threads")
def test_blas_is_restored_when_the_last_of_overlapping_fits_ends():
    first, second = serial_blas(), serial_blas()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("three_blas_threads")
def test_blas_is_limited_in_any_thread():
    assert set(serial_blas_threads()) == {1}
    with ThreadPoolExecutor(1) as pool:
        for _ in range(2):
            assert set(pool.submit(serial_blas_threads).result()) == {1}
            assert set(blas_threads()) == {3}
    assert set(serial_blas_threads()) == {1}
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("three_blas_threads")
def test_the_thread_that_ends_last_restores_blas():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with serial_blas():
            entered.set()
            leave.wait()
        return blas_threads()

    with ThreadPoolExecutor(1) as pool:
        with serial_blas():
            held = pool.submit(hold)
            entered.wait()
        assert set(blas_threads()) == {1}
        leave.set()
        assert set(held.result()) == {3}
    with threadpool_limits(2, "blas"):  # as others do, who must not be ignored afterwards
        assert set(blas_threads()) == {2}


@pytest.mark.usefixtures("three_blas_threads")
@pytest.mark.parametrize("parameters", [{}, {"loss": "hinge", "tol": 1e-3}], ids=str)
def test_a_fit_in_another_thread_gives_the_same_bits(parameters):
    X, y, qid = make_ranking(200, 40, 136, random_state=0)
    model = RankSVM(n_jobs=1, **parameters)
    expected = model.fit(X, y, qid=qid).coef_
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(model.fit, X, y, qid=qid).result().coef_
    np.testing.assert_array_equal(found, expected)


def test_the_bits_of_a_kernel_do_not_depend_on_the_threads_of_blas(three_blas_threads):
    X, y, qid = make_ranking(20, 40, 20, random_state=0)
    expected = KernelRankSVM(n_jobs=1).fit(X, y, qid=qid).dual_coef_
    with threadpool_limits(1, "blas"):
        found = KernelRankSVM(n_jobs=1).fit(X, y, qid=qid).dual_coef_
    np.testing.assert_array_equal(found, expected)


class LocalLibrary(threading.local):
    """A BLAS library with one number of threads per calling thread, such as MKL."""

    num_threads = 4

    def set_num_threads(self, number):
        self.num_threads = number


def test_each_thread_limits_libraries_that_count_by_thread(monkeypatch):
    library = LocalLibrary()
    monkeypatch.setattr(threads, "_libraries", lambda: threads._Libraries([], [library]))

    def in_and_after():
        with serial_blas(), serial_blas():
            inside = library.num_threads
        return inside, library.num_threads

    with serial_blas(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_and_after).result() == (1, 4)
        assert library.num_threads == 1
    assert library.num_threads == 4


@pytest.mark.usefixtures("three_blas_threads")
def test_blas_is_restored_in_a_child_whose_parent_was_fitting():
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with serial_blas():
            entered.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait()
    try:
        assert passes_in_a_fork(lambda: set(blas_threads()) == {3})
        assert set(blas_threads()) == {1}
    finally:
        leave.set()
        thread.join()
    assert set(blas_threads()) == {3}


@pytest.mark.usefixtures("three_blas_threads")
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
