"""Atomic writes of files and folders: the new content replaces the old completely or not at all."""

import errno
import fcntl
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

Path = str | os.PathLike[str]

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # Linux
RENAME_SWAP = 2  # macOS
CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing in binary mode; replace the file only if the with block succeeds.

    The file is written under a temporary name in the same folder, synced and renamed. If the block
    raises an error, the temporary file is removed. If the process is killed, the next write to
    `path` removes it. Symbolic links are followed, and an existing file keeps its permissions. A
    device or a pipe, such as /dev/stdout, is written directly.
    """
    if _is_special(path):
        with _naming_writes(path), open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    _remove_leftovers(target)
    with _naming(path):
        temporary, descriptor = _create(target, _new_file)
    try:
        with _naming_writes(path), os.fdopen(descriptor, "wb") as file:
            if os.path.exists(target):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
            yield file
            with _naming(path):
                file.flush()
                os.fsync(descriptor)
                os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync(os.path.dirname(target))


@contextmanager
def atomic_folder(path: Path) -> Iterator[str]:
    """Yield a temporary folder, which replaces `path` only if the with block succeeds.

    If the system can exchange two folders in one step, no reader ever finds `path` missing. The old
    folder is removed. The new folder, and files with the same names as old ones, get the old
    permissions. Temporary folders of a killed process are removed by the next call.
    """
    target = os.path.realpath(path)
    _remove_leftovers(target)
    with _naming(path):
        temporary, descriptor = _create(target, _new_folder)
    try:
        replaces = os.path.isdir(target)
        if replaces:
            os.fchmod(descriptor, stat.S_IRWXU)
        with _naming_writes(path):
            yield temporary
        for name in os.listdir(temporary):
            _sync(os.path.join(temporary, name))
        for name in (*os.listdir(temporary), "") if replaces else ():
            with suppress(FileNotFoundError):
                mode = os.stat(os.path.join(target, name)).st_mode
                os.chmod(os.path.join(temporary, name), stat.S_IMODE(mode))
        _sync(temporary)
        _move_folder(temporary, target)
        _sync(os.path.dirname(target))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


class FolderReplaced(Exception):
    """Raised by :func:`open_folder` if another process replaced the folder while it was open."""


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder for reading; yield its file descriptor, for `dir_fd` of :func:`os.open`.

    All files opened with this descriptor come from the same folder, even if another process
    replaces the folder. If the with block raises OSError or ValueError and the folder was replaced,
    FolderReplaced is raised instead.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    except (OSError, ValueError) as error:
        if _is_at(path, descriptor):
            raise
        raise FolderReplaced from error
    finally:
        os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _is_special(path: Path) -> bool:
    """Return True if `path` is a device or a pipe; raise IsADirectoryError if it is a folder."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    return not stat.S_ISREG(mode)


def _move_folder(temporary: str, target: str) -> None:
    """Rename a folder; an existing `target` is moved to `temporary`, or removed."""
    if not os.path.lexists(target):
        os.rename(temporary, target)
    elif not _exchange(temporary, target):  # two renames: for a moment, there is no target
        old = _hidden_name(target, "old")
        os.rename(target, old)
        try:
            os.rename(temporary, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: str, other: str) -> bool:
    """Exchange the names of two folders in one step; return False if the system cannot do that."""
    import ctypes  # takes longer to import than most files to write

    libc = ctypes.CDLL(None)
    a, b = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2"):
        return bool(libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0)
    if hasattr(libc, "renamex_np"):
        return bool(libc.renamex_np(a, b, RENAME_SWAP) == 0)
    return False


def _create(target: str, make: Callable[[str], int]) -> tuple[str, int]:
    """Create a hidden temporary file or folder; return its name and a descriptor that locks it."""
    while True:
        name = _hidden_name(target, "tmp")
        descriptor = make(name)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.lexists(name):
            return name, descriptor
        os.close(descriptor)  # another process removed it as a leftover before it was locked


def _new_file(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _new_folder(name: str) -> int:
    os.mkdir(name)
    return os.open(name, os.O_RDONLY)


def _hidden_name(target: str, ending: str) -> str:
    """Return a new random name in the same folder, whose prefix is specific to `target`."""
    return f"{_hidden_prefix(target)}{secrets.token_hex(6)}.{ending}"


def _hidden_prefix(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".marginrank-{zlib.crc32(os.fsencode(name)):08x}-")


def _remove_leftovers(target: str) -> None:
    """Remove the temporary files of killed processes that were writing `target`."""
    folder, prefix = os.path.split(_hidden_prefix(target))
    # Without a target, an "old" folder is the only copy.
    endings = ("tmp", "old") if os.path.lexists(target) else ("tmp",)
    names: list[str] = []
    with suppress(OSError):
        names = sorted(os.listdir(folder))
    for name in names:
        if not (name.startswith(prefix) and name.endswith(endings)):
            continue
        leftover = os.path.join(folder, name)
        with _locked(leftover) as abandoned:
            if abandoned and os.path.isdir(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
            elif abandoned:
                with suppress(OSError):
                    os.unlink(leftover)


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Lock a file or folder and yield True; yield False if another process may be writing it."""
    # A writing process holds a lock, which the system releases even if the process is killed.
    try:  # do not open pipes, which would block, or links: they are not temporary files of ours
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:  # the file is gone, or belongs to another user
        yield False
        return
    try:
        mode = os.fstat(descriptor).st_mode
        is_free = stat.S_ISREG(mode) or stat.S_ISDIR(mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another process holds the lock, or the file system has no locks
            is_free = False
        yield is_free
    finally:
        os.close(descriptor)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Replace the temporary name by `path` in any OSError that the with block raises."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _naming_writes(path: Path) -> Iterator[None]:
    """Add `path` to errors of writes in the with block, which do not name a file."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in CANNOT_WRITE:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
