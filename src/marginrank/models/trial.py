"""Model files of other libraries, tried in a process of their own before they are read here.

LightGBM, XGBoost and scikit-learn's trees trust their files: one that is damaged can end the whole
process, run for ever or take all memory. So a child process reads it first, within limits of time
and memory, and scores a few documents. It takes a second or two, most of it for imports.

A file that was made to do harm may still come through: a tree can be wrong at a place where none of
these documents comes by.
"""

import json
import os
import subprocess
import sys

import numpy as np

from marginrank.models.foreign import ForeignModel
from marginrank.models.foreign_files import library_of, load_foreign

SECONDS = 60.0  # for a small file; a large one has more time,
BYTES_A_SECOND = 1 << 20
# Bytes of address space beyond what Python has taken, most of it never used; a large file has more,
MEMORY = 4 << 30
MEMORY_A_BYTE = 32

# The child finds modules where this process does, and nowhere else: not in the current folder.
CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from marginrank.models.trial import run
run(sys.argv[2])
"""
REFUSED = 3  # exit code of a child that wrote down why


def read_foreign(path: str) -> ForeignModel:
    """Read a model file of another library, after a child process has survived that.

    Raises
    ------
    ValueError
        If it is damaged, or holds types that are not known to be harmless.
    ImportError
        If the library is not installed.
    """
    library_of(path)  # without it, a child would fail in vain
    try_in_child(path)
    return load_foreign(path)


def try_in_child(path: str) -> None:
    """Read a model file in a child process, and refuse it if the child does not survive that.

    Raises
    ------
    ValueError
        If the file is damaged or takes too much time or memory.
    """
    seconds = SECONDS + os.path.getsize(path) / BYTES_A_SECOND
    try:
        child = subprocess.run(
            [sys.executable, "-IB", "-c", CHILD, json.dumps(sys.path), os.path.abspath(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise _damaged(path, f"reading it does not end within {seconds:.0f} seconds") from error
    if child.returncode == REFUSED:
        raise ValueError(
            child.stdout.decode("utf-8", "replace").replace(os.path.abspath(path), path)
        )
    if child.returncode != 0:
        raise _damaged(path, f"a process that read it was ended by {_cause(child.returncode)}")


def run(path: str) -> None:
    """Read a model file and score a few documents; the child's part."""
    _limit_memory(MEMORY + MEMORY_A_BYTE * os.path.getsize(path))
    try:
        model = load_foreign(path)
        n_features = model.n_features
        if n_features is not None:
            _score(model, n_features)
    except (ValueError, MemoryError) as error:
        reason = str(error) if isinstance(error, ValueError) else str(_too_large(path))
        os.write(1, reason.encode("utf-8", "replace"))
        os._exit(REFUSED)  # what a damaged file left behind may not survive being cleaned up
    os._exit(0)


def _score(model: ForeignModel, n_features: int) -> None:
    """Score documents at the middle and at both ends; what Python complains of is no danger."""
    documents = np.zeros((3, n_features))
    documents[1], documents[2] = 1e9, -1e9
    try:
        model.scores(documents)
    except MemoryError:
        raise
    except Exception:
        return


def _limit_memory(size: int) -> None:
    """Let this process map so many bytes more than it has: a sanitizer alone maps terabytes."""
    try:
        import resource  # not on every system
    except ImportError:
        return
    from marginrank._utils.memory import mapped_memory

    _, most = resource.getrlimit(resource.RLIMIT_AS)
    size += mapped_memory()
    size = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (size, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _cause(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"its library, with exit code {code}"


def _too_large(path: str) -> ValueError:
    return _damaged(path, "it asks for far more memory than it is long")


def _damaged(path: str, what: str) -> ValueError:
    return ValueError(f"{path} is damaged: {what}; save the model again.")
