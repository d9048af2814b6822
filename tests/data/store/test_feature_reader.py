"""Sweeps over X on disk: the same rows, known memory, no page cache, no thread left behind."""

import ctypes
import errno
import gc
import mmap
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
import zlib
from concurrent.futures import Future
from dataclasses import astuple
from multiprocessing import get_context

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank.data.store import feature_reader
from marginrank.data.store.feature_reader import BUFFERS, FeatureReader
from marginrank.data.store.packed import smallest_types
from marginrank.data.store.stored_features import StoredFeatures, StoredFile

ROWS, WIDTH = 60, 7
BOUNDS = np.array([0, 10, 10, 11, 30, 40, 50, 60])  # one block has no rows, one has most
N_BLOCKS = BOUNDS.size - 1
PATIENCE = 300  # seconds; what takes longer hangs, even on a busy machine


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(feature_reader, "PIECE", 100)


def stored_file(path, array):
    np.save(path, array)
    content = path.read_bytes()
    return StoredFile(str(path), len(content) - array.nbytes, len(content), zlib.crc32(content))


def dense(folder, dtype=np.float32, n_rows=ROWS):
    X = np.random.default_rng(0).normal(size=(n_rows, WIDTH)).astype(dtype)
    files = (stored_file(folder / "X.npy", X),)
    return StoredFeatures(str(folder), X.shape, X.dtype, files), X


def csr(folder, dtype=np.float32, index=np.int32):
    X = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(dtype)
    X[X < 0.5] = 0
    X[40:50] = X[3] = 0  # a block without entries, and a row
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    files = tuple(stored_file(folder / f"{n}.npy", getattr(X, n)) for n in ("data", "indices"))
    return StoredFeatures(str(folder), X.shape, X.dtype, files, X.indptr), X


def packed(folder, dtype=np.float32):
    X = np.random.default_rng(0).integers(0, 300, size=(ROWS, WIDTH)).astype(dtype)
    X[:, 1] %= 7
    X[:, 2] += 0.1
    columns = smallest_types([X], WIDTH, dtype)
    files = (stored_file(folder / "packed.npy", columns.pack(X)),)
    return StoredFeatures(str(folder), X.shape, X.dtype, files, packed=columns), X


def reader(features, bounds=BOUNDS, pinned_bytes=0, **options):
    return FeatureReader(features, bounds, pinned_bytes=pinned_bytes, threads=2, **options)


def size(features, *blocks):
    """Return the bytes on disk of some blocks."""
    return sum(features.n_bytes(BOUNDS[block], BOUNDS[block + 1]) for block in blocks)


def as_array(X):
    return X.toarray() if sp.issparse(X) else np.array(X)


def assert_rows(swept, X, order, bounds=BOUNDS):
    X = as_array(X)
    for (block, rows), expected in zip(swept, order, strict=True):
        assert block == expected
        assert rows.dtype == X.dtype
        np.testing.assert_array_equal(as_array(rows), X[bounds[block] : bounds[block + 1]])


def reader_threads():
    return [t for t in threading.enumerate() if t.name.startswith("marginrank-reader")]


@pytest.fixture(autouse=True)
def no_thread_left():
    yield
    assert not reader_threads()


ORDERS = [range(N_BLOCKS), [5], [], [6, 0, 0, 3, 3, 1, 0], [0, 2, 4, 6], [*range(N_BLOCKS)] * 2]


@pytest.mark.parametrize("pinned_bytes", [0, 600, 10**6])
@pytest.mark.parametrize("make", [dense, csr, packed])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_those_of_x_in_any_order(tmp_path, make, dtype, pinned_bytes):
    features, X = make(tmp_path, dtype)
    with reader(features, pinned_bytes=pinned_bytes) as blocks:
        for order in ORDERS:
            assert_rows(blocks.sweep(order), X, order)


def test_64_bit_indices(tmp_path):
    features, X = csr(tmp_path, index=np.int64)
    with reader(features) as blocks:
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))


@pytest.mark.parametrize("bounds", [[0, ROWS], [0, 0, ROWS, ROWS], [5, 9, 33], [0, 0]])
@pytest.mark.parametrize("make", [dense, csr, packed])
def test_any_bounds(tmp_path, make, bounds):
    features, X = make(tmp_path)
    order = range(len(bounds) - 1)
    with reader(features, np.array(bounds)) as blocks:
        for _ in range(2):
            assert_rows(blocks.sweep(order), X, order, bounds)


def test_blocks_that_do_not_exist_are_refused(tmp_path):
    features, _ = dense(tmp_path)
    with reader(features) as blocks, pytest.raises(IndexError):
        next(blocks.sweep([N_BLOCKS]))


@pytest.mark.parametrize("make", [dense, csr, packed])
def test_rows_are_read_only(tmp_path, make):
    features, _ = make(tmp_path)
    with reader(features, pinned_bytes=600) as blocks:
        for _, X in blocks.sweep(range(N_BLOCKS)):
            assert not (X.data if sp.issparse(X) else X).flags.writeable


def test_a_few_buffers_of_the_largest_block_are_used_again(tmp_path):
    features, _ = dense(tmp_path, n_rows=200)
    bounds = np.arange(0, 201, 10)
    with reader(features, bounds) as blocks:
        for _ in range(2):
            addresses = {X.ctypes.data for _, X in blocks.sweep(range(20))}
            assert len(addresses) <= BUFFERS
        assert blocks.buffer_bytes == FeatureReader.memory_needed(features, bounds)
        largest = features.n_bytes(0, 10)
        assert BUFFERS * largest <= blocks.buffer_bytes < BUFFERS * (largest + 64)


def test_a_block_is_valid_until_the_next_one_is_asked_for(tmp_path):
    features, X = dense(tmp_path, n_rows=200)
    bounds = np.arange(0, 201, 10)
    read = []  # the thread has filled all other buffers when it waits for this one
    with reader(features, bounds) as blocks:
        for block, rows in blocks.sweep(range(20)):
            while blocks.bytes_read < min(block + BUFFERS, 20) * features.n_bytes(0, 10):
                pass
            np.testing.assert_array_equal(rows, X[bounds[block] : bounds[block + 1]])
            read.append(blocks.bytes_read // features.n_bytes(0, 10))
    assert read == [min(block + BUFFERS, 20) for block in range(20)]


def test_blocks_that_are_pinned_need_no_buffers(tmp_path):
    features, _ = dense(tmp_path)
    with reader(features, pinned_bytes=10**6) as blocks:
        assert blocks.buffer_bytes == 0
        assert blocks.pinned.n_blocks == N_BLOCKS
        assert blocks.pinned.unpinned_bytes == 0
    with reader(features, pinned_bytes=0) as blocks:
        assert blocks.pinned == (0, 0, size(features, *range(N_BLOCKS)))


@pytest.mark.parametrize("make", [dense, csr, packed])
def test_pinned_blocks_are_the_first_that_fit_and_read_once(tmp_path, make):
    features, X = make(tmp_path)
    order = range(N_BLOCKS)
    with reader(features, pinned_bytes=10**6) as blocks:
        everything = blocks.pinned.n_bytes
    assert everything >= size(features, *order)
    with reader(features, pinned_bytes=everything - 1) as blocks:
        assert blocks.pinned.n_blocks == N_BLOCKS - 1
        assert blocks.pinned.n_bytes < everything
        assert blocks.pinned.unpinned_bytes == size(features, N_BLOCKS - 1)
        list(blocks.sweep([3, 3, 1]))  # 3 is pinned, so that it is read once
        assert blocks.bytes_read == size(features, 3)
        list(blocks.sweep(order))
        assert blocks.bytes_read == size(features, *order)
        for sweep in range(1, 4):
            assert_rows(blocks.sweep(order), X, order)
            assert blocks.bytes_read == size(features, *order) + sweep * size(features, 6)


def test_packed_rows_are_unpacked_into_one_place(tmp_path):
    features, _ = packed(tmp_path)
    with reader(features) as blocks:
        assert len({X.ctypes.data for _, X in blocks.sweep([0, 3, 4, 5, 6])}) == 1
        assert blocks.buffer_bytes == FeatureReader.memory_needed(features, BOUNDS)
        largest = np.diff(BOUNDS).max()
        row = features.packed.row_bytes
        assert row < 4 * WIDTH
        least = largest * (BUFFERS * row + 4 * WIDTH)
        assert least <= blocks.buffer_bytes < least + 64 * (BUFFERS + 1)


def test_blocks_read_in_vain_are_read_again(tmp_path):
    features, X = dense(tmp_path)
    with reader(features, pinned_bytes=10**6) as blocks:
        next(blocks.sweep(range(N_BLOCKS)))  # the thread was ahead
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))
        read = blocks.bytes_read
        list(blocks.sweep(range(N_BLOCKS)))
        assert blocks.bytes_read == read


def test_what_was_read_is_told_after_each_block(tmp_path):
    features, _ = dense(tmp_path)
    told = []
    with reader(features, pinned_bytes=600, on_read=lambda *n: told.append(n)) as blocks:
        assert blocks.pinned.n_blocks == 3
        for block, _ in blocks.sweep(range(N_BLOCKS)):
            assert len(told) == block
        rows = np.diff(BOUNDS)
        assert told == [(n, 4 * WIDTH * n) for n in rows]
        told.clear()
        list(blocks.sweep(range(N_BLOCKS)))
        assert told == [(n, 4 * WIDTH * n * (block >= 3)) for block, n in enumerate(rows)]


def memory_of(X):
    """Return the map that an array is part of."""
    while not isinstance(X, mmap.mmap):
        X = X.obj if isinstance(X, memoryview) else X.base
    return X


def error_of(sweep):
    """Return the message of a sweep's error, and keep no other part of that."""
    try:
        list(sweep)
    except OSError as error:
        return str(error)


@pytest.mark.parametrize("pinned_bytes", [0, 10**6])
@pytest.mark.parametrize("ending", ["end", "abandoned", "cut"])
def test_memory_goes_back_when_the_reader_is_closed(tmp_path, pinned_bytes, ending):
    features, _ = dense(tmp_path)
    gc.collect()
    gc.disable()
    try:
        blocks = reader(features, pinned_bytes=pinned_bytes)
        sweep = blocks.sweep([0] if ending == "end" else [0, *range(N_BLOCKS)] * 2)
        memory = weakref.ref(memory_of(next(sweep)[1]))
        if ending == "cut":
            os.truncate(features.files[0].path, 200)
            assert "ended" in error_of(blocks.sweep([5, 6]))
        list(sweep) if ending == "end" else sweep.close()
        assert memory() is not None
        blocks.close()
        assert memory() is None
    finally:
        gc.enable()


def test_rows_that_are_still_held_outlive_the_reader(tmp_path):
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        (_, rows), *_ = blocks.sweep([5])
    np.testing.assert_array_equal(rows, X[40:50])


def test_memory_that_cannot_be_had(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    features, _ = dense(tmp_path)
    monkeypatch.setattr(feature_reader.mmap, "mmap", refused)
    with pytest.raises(MemoryError, match=r"\d+ bytes for blocks of X"):
        reader(features)


def test_a_closed_reader_says_so(tmp_path):
    features, _ = dense(tmp_path)
    blocks = reader(features)
    blocks.close()
    blocks.close()
    with pytest.raises(ValueError, match="is closed"):
        next(blocks.sweep([0]))


# What ends a sweep


def test_a_sweep_that_is_abandoned_ends_its_thread(tmp_path):
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        for _ in blocks.sweep(range(N_BLOCKS)):
            assert len(reader_threads()) == 1
            break
        assert not reader_threads()
        sweep = blocks.sweep([*range(N_BLOCKS)] * 10)
        next(sweep)
        del sweep
        assert not reader_threads()
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))


@pytest.mark.parametrize("error", [ArithmeticError, KeyboardInterrupt])
def test_an_error_of_the_consumer_ends_the_thread(tmp_path, error):
    def fail(*_):
        raise error

    features, _ = dense(tmp_path)
    with reader(features, on_read=fail) as blocks:
        with pytest.raises(error):
            list(blocks.sweep(range(N_BLOCKS)))
        assert not reader_threads()


def test_an_interrupt_while_the_consumer_waits(tmp_path, monkeypatch):
    def interrupt(*_):
        if not disk.is_set():
            disk.set()
            raise KeyboardInterrupt

    def waits(frame):
        codes = threading.Condition.wait.__code__, Future.result.__code__
        return (frame.f_code, frame.f_back.f_code) == codes

    def wait_for_the_disk(*args):
        while not waits(sys._current_frames()[consumer]):
            pass
        while not disk.wait(0.1):  # a signal just before the consumer waits does not wake it
            signal.pthread_kill(consumer, signal.SIGALRM)
        return preadv(*args)

    features, X = dense(tmp_path)
    consumer, disk, preadv = threading.get_ident(), threading.Event(), os.preadv
    handler = signal.signal(signal.SIGALRM, interrupt)
    try:
        with reader(features) as blocks:
            monkeypatch.setattr(os, "preadv", wait_for_the_disk)
            with pytest.raises(KeyboardInterrupt):
                next(blocks.sweep([0]))
            assert not reader_threads()
            monkeypatch.setattr(os, "preadv", preadv)
            assert_rows(blocks.sweep([0]), X, [0])
    finally:
        signal.signal(signal.SIGALRM, handler)


def test_a_sweep_ends_the_one_before(tmp_path):
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        before = blocks.sweep([0, 3, 4, 5, 6])
        next(before)
        now = blocks.sweep(range(N_BLOCKS))
        next(now)
        assert len(reader_threads()) == 1
        with pytest.raises(RuntimeError, match="started a new pass"):
            next(before)
        assert_rows(now, X, range(1, N_BLOCKS))


def test_close_ends_a_sweep(tmp_path):
    features, _ = dense(tmp_path)
    with reader(features) as blocks:
        sweep = blocks.sweep(range(N_BLOCKS))
        next(sweep)
    assert not reader_threads()
    with pytest.raises(RuntimeError, match="reader was closed"):
        next(sweep)


def test_the_interpreter_ends_in_mid_sweep(tmp_path):
    features, _ = dense(tmp_path)
    script = f"""
import numpy as np
from marginrank.data.store.feature_reader import FeatureReader
from marginrank.data.store.stored_features import StoredFeatures, StoredFile
features = StoredFeatures({features.folder!r}, {features.shape}, np.dtype("float32"),
                          (StoredFile(*{astuple(features.files[0])!r}),))
reader = FeatureReader(features, np.arange(0, 61, 10), pinned_bytes=0, threads=1)
sweep = reader.sweep(range(6))
keep = sys.modules["kept"] = next(sweep), sweep
"""
    subprocess.run([sys.executable, "-c", f"import sys{script}"], check=True, timeout=PATIENCE)


def test_a_forked_process_is_told_and_can_begin_anew(tmp_path):
    def in_the_child():
        with pytest.raises(RuntimeError, match="after fork"):
            next(sweep)
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))
        blocks.close()

    features, X = dense(tmp_path)
    with reader(features, pinned_bytes=600) as blocks:
        sweep = blocks.sweep([*range(N_BLOCKS)] * 2)
        assert_rows((next(sweep) for _ in range(4)), X, range(4))
        child = get_context("fork").Process(target=in_the_child)
        child.start()
        child.join(PATIENCE)
        assert child.exitcode == 0
        assert_rows(sweep, X, [4, 5, 6, *range(N_BLOCKS)])


# Files that are not what they were


@pytest.mark.parametrize("pinned_bytes", [0, 600])
@pytest.mark.parametrize("which", [0, 1])
def test_a_file_that_is_cut_while_it_is_read(tmp_path, which, pinned_bytes):
    def cut(*_):
        os.truncate(path, 250)

    features, _ = csr(tmp_path)
    path, n_bytes = features.files[which].path, features.files[which].n_bytes
    with reader(features, pinned_bytes=pinned_bytes, on_read=cut) as blocks:
        # More blocks than can be ahead.
        told = f"{path} ended at byte 250 of {n_bytes} while it was read; restore the store"
        with pytest.raises(OSError, match=re.escape(told)):
            list(blocks.sweep([6] * (BUFFERS + 2)))
        assert not reader_threads()


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ESTALE, "Stale file handle")

    features, _ = dense(tmp_path)
    with reader(features) as blocks:
        monkeypatch.setattr(os, "preadv", fail)
        with pytest.raises(OSError, match=r"X\.npy cannot be read at byte \d+: Stale .*; restore"):
            list(blocks.sweep([0]))


def test_a_file_that_is_missing(tmp_path):
    features, _ = csr(tmp_path)
    os.unlink(features.files[1].path)
    with pytest.raises(FileNotFoundError, match=r"indices\.npy cannot be opened: No such file"):
        reader(features)


def test_a_file_of_another_size(tmp_path):
    features, _ = dense(tmp_path)
    os.truncate(features.files[0].path, 1000)
    with pytest.raises(ValueError, match=r"X\.npy is damaged: it has 1000 bytes instead of"):
        reader(features)


def test_a_file_that_is_removed_is_read_to_the_end(tmp_path):
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        os.unlink(features.files[0].path)
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))


def test_short_reads_are_continued(tmp_path, monkeypatch):
    preadv = os.preadv
    monkeypatch.setattr(os, "preadv", lambda fd, views, at: preadv(fd, [views[0][:7]], at))
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))
        assert blocks.bytes_read == size(features, *range(N_BLOCKS))


def damage(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("pinned_bytes", [0, 600, 10**6])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("at", [20, 200, -1])  # in the header, in the array, at its end
def test_a_damaged_file_is_noticed_in_the_first_whole_sweep(tmp_path, which, at, pinned_bytes):
    features, _ = csr(tmp_path)
    stored = features.files[which]
    damage(stored.path, at % stored.n_bytes)
    with reader(features, pinned_bytes=pinned_bytes) as blocks:
        list(blocks.sweep(range(N_BLOCKS - 1)))
        for _ in range(2):
            with pytest.raises(ValueError, match="is damaged: its checksum") as told:
                list(blocks.sweep(range(N_BLOCKS)))
            assert stored.path in str(told.value)
        list(blocks.sweep(range(N_BLOCKS - 1)))


def test_damage_is_noticed_when_all_blocks_were_read_in_order(tmp_path):
    features, _ = dense(tmp_path)
    damage(features.files[0].path, 300)
    with reader(features, pinned_bytes=600) as blocks:
        list(blocks.sweep([0, 5, 1, 1, 2]))
        list(blocks.sweep([2, 3, 4, 6]))
        with pytest.raises(ValueError, match="checksum"):
            list(blocks.sweep([5, 6]))


def test_rows_that_are_not_all_are_not_compared(tmp_path):
    features, _ = dense(tmp_path)
    damage(features.files[0].path, 300)
    with reader(features, np.array([0, 30, 59])) as blocks:
        list(blocks.sweep([0, 1]))


def test_checksums_are_computed_once(tmp_path, monkeypatch):
    features, _ = dense(tmp_path)
    with reader(features) as blocks:
        list(blocks.sweep(range(N_BLOCKS)))
        monkeypatch.setattr(feature_reader, "zlib", None)
        list(blocks.sweep(range(N_BLOCKS)))


# The page cache


def cached_bytes(path):
    """Return how much of a file is in the page cache."""
    page = mmap.PAGESIZE
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        view = np.frombuffer(pages, dtype=np.uint8)
        resident = np.empty(-(-view.size // page), dtype=np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        failed = libc.mincore(
            ctypes.c_void_p(view.ctypes.data),
            ctypes.c_size_t(view.size),
            ctypes.c_void_p(resident.ctypes.data),
        )
        del view
    assert not failed, os.strerror(ctypes.get_errno())
    return page * int(np.count_nonzero(resident & 1))


@pytest.fixture
def large(tmp_path, monkeypatch):
    """Return X of 300 MB, on the disk and in the page cache."""
    monkeypatch.undo()  # pieces of their usual size
    X = np.broadcast_to(np.arange(75, dtype=np.float32), (1_000_000, 75))
    path = tmp_path / "X.npy"
    np.save(path, X)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    n_bytes = path.stat().st_size
    stored = StoredFile(str(path), n_bytes - X.nbytes, n_bytes, zlib.crc32(path.read_bytes()))
    yield StoredFeatures(str(tmp_path), X.shape, X.dtype, (stored,))
    path.unlink()


@pytest.mark.parametrize("step", [1, 3])
def test_little_of_x_is_in_the_page_cache(large, step):
    path = large.files[0].path
    assert cached_bytes(path) > 256e6
    bounds = np.arange(0, 1_000_001, 20_000)  # 6 MB, at odd places in the file
    order = range(0, 50, step)
    with reader(large, bounds, pinned_bytes=30_000_000) as blocks:
        if cached_bytes(path) > 1e6:
            pytest.skip("the file system is in memory itself")
        for _ in range(2):
            most = max(cached_bytes(path) for _ in blocks.sweep(order))
            assert most < 100e6
            assert cached_bytes(path) == 0


def test_systems_without_advice_are_read_as_well(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise")
    features, X = dense(tmp_path)
    with reader(features) as blocks:
        assert_rows(blocks.sweep(range(N_BLOCKS)), X, range(N_BLOCKS))
