"""Files and folders that appear complete or not at all."""

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
    """Open a file for writing that takes the place of `path` only when the block ends well.

    It is written under a temporary name in the same folder, made durable and renamed. If the block
    raises, the temporary file is removed and `path` is what it was; if the process is killed, the
    next write to `path` removes it. Links are followed and the permissions of an existing file
    kept; a device or a pipe, such as /dev/stdout, is written as it is.

    Parameters
    ----------
    path : str or path
        The file.

    Yields
    ------
    binary file object
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
    """Make a folder that takes the place of `path` only when the block ends well.

    The block fills a temporary folder beside `path`. It changes names with a folder that is already
    there, in one step where the system can, and the old one is removed. The new folder has the
    permissions of the old one, and so have files of the same names. What a killed process left is
    removed by the next call.

    Parameters
    ----------
    path : str or path
        The folder.

    Yields
    ------
    str
        The temporary folder.
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
        if replaces:
            _keep_permissions(target, temporary)
        _sync(temporary)
        _move_folder(temporary, target)
        _sync(os.path.dirname(target))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


def _keep_permissions(old: str, new: str) -> None:
    """Give a folder, and the files in it, the permissions of another one and its files."""
    for name in (*os.listdir(new), ""):
        with suppress(FileNotFoundError):
            mode = os.stat(os.path.join(old, name)).st_mode
            os.chmod(os.path.join(new, name), stat.S_IMODE(mode))


class FolderReplaced(Exception):
    """Another folder took the place of one while that was being read."""


@contextmanager
def open_folder(path: Path) -> Iterator[int]:
    """Open a folder for reading: what is opened below it belongs together, whatever gets its name.

    Parameters
    ----------
    path : str or path
        The folder.

    Yields
    ------
    int
        A descriptor, for the parameter `dir_fd` of :func:`os.open`.

    Raises
    ------
    FolderReplaced
        If the folder is being replaced, instead of the error that this causes in the block.
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
    """Whether there is something at `path` that is no file; raise if it is a folder."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    return not stat.S_ISREG(mode)


def _move_folder(temporary: str, target: str) -> None:
    """Give a folder its name; a folder that had it is then at `temporary`, or gone."""
    if not os.path.lexists(target):
        os.rename(temporary, target)
    elif not _exchange(temporary, target):  # two renames: for a moment, there is none
        old = _hidden_name(target, "old")
        os.rename(target, old)
        try:
            os.rename(temporary, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: str, other: str) -> bool:
    """Exchange two names in one step; return False where that cannot be done."""
    import ctypes  # takes longer to import than most files to write

    libc = ctypes.CDLL(None)
    a, b = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2"):
        return bool(libc.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0)
    if hasattr(libc, "renamex_np"):
        return bool(libc.renamex_np(a, b, RENAME_SWAP) == 0)
    return False


def _create(target: str, make: Callable[[str], int]) -> tuple[str, int]:
    """Make something under a hidden name; return the name and a descriptor that holds its lock."""
    while True:
        name = _hidden_name(target, "tmp")
        descriptor = make(name)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.path.lexists(name):
            return name, descriptor
        os.close(descriptor)  # another process took it for a leftover before it was locked


def _new_file(name: str) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _new_folder(name: str) -> int:
    os.mkdir(name)
    return os.open(name, os.O_RDONLY)


def _hidden_name(target: str, ending: str) -> str:
    """Return a new name in the same folder, by which a later process knows what it was for."""
    return f"{_hidden_prefix(target)}{secrets.token_hex(6)}.{ending}"


def _hidden_prefix(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".marginrank-{zlib.crc32(os.fsencode(name)):08x}-")


def _hidden(target: str, ending: str) -> list[str]:
    """Return what there is under such names."""
    folder, prefix = os.path.split(_hidden_prefix(target))
    with suppress(OSError):
        names = [n for n in os.listdir(folder) if n.startswith(prefix) and n.endswith(ending)]
        return [os.path.join(folder, name) for name in sorted(names)]
    return []


def _remove_leftovers(target: str) -> None:
    """Remove what processes that were killed have left of earlier attempts to write `target`."""
    for ending in ("tmp", "old") if os.path.lexists(target) else ("tmp",):
        for leftover in _hidden(target, ending):
            with _locked(leftover) as abandoned:
                if abandoned and os.path.isdir(leftover):
                    shutil.rmtree(leftover, ignore_errors=True)
                elif abandoned:
                    with suppress(OSError):
                        os.unlink(leftover)


@contextmanager
def _locked(path: str) -> Iterator[bool]:
    """Yield whether no process is at work on a file or folder, and let none begin.

    A process at work holds a lock, which the system takes from it however it ends.
    """
    try:  # a pipe, which would block, or a link is none of ours
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:  # gone, or somebody else's
        yield False
        return
    try:
        mode = os.fstat(descriptor).st_mode
        yield (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or the file system has no locks
        return False
    return True


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors name what the user asked for, not the temporary name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _naming_writes(path: Path) -> Iterator[None]:
    """Let errors of writing, which know no name, name the file."""
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
