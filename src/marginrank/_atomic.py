"""Files and folders that appear complete or not at all."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

Path = str | os.PathLike[str]


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes the place of `path` only when the block ends well.

    It is written under a temporary name in the same folder, made durable and renamed. If the block
    raises, the temporary file is removed and `path` is what it was. Links are followed and the
    permissions of an existing file kept; a device or a pipe, such as /dev/stdout, is written as it
    is.

    Parameters
    ----------
    path : str or path
        The file.

    Yields
    ------
    binary file object
    """
    if _is_special(path):
        with open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    temporary = _temporary_name(target)
    with _naming(path):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if os.path.exists(target):
                os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))
            yield file
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

    The block fills a temporary folder beside `path`. A folder that is already there is moved aside,
    and removed once the new one has its name.

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
    temporary = _temporary_name(target)
    with _naming(path):
        os.mkdir(temporary)
    try:
        yield temporary
        for name in os.listdir(temporary):
            _sync(os.path.join(temporary, name))
        _sync(temporary)
        _move_folder(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync(os.path.dirname(target))


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
    if not os.path.lexists(target):
        os.rename(temporary, target)
        return
    old = _temporary_name(target)
    try:
        os.rename(target, old)
        os.rename(temporary, target)
    finally:
        if os.path.lexists(target):
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, target)


def _temporary_name(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".marginrank-{secrets.token_hex(6)}.tmp")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors name what the user asked for, not the temporary name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
