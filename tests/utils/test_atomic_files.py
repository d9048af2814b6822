"""Files that appear complete or not at all."""

import fcntl
import gzip
import os
import resource
import signal
import stat

import pytest

from marginrank._utils import atomic_files
from marginrank._utils.atomic_files import FolderReplaced, atomic_folder, atomic_write, open_folder


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "f"
    with atomic_write(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failing_block_leaves_what_was_there(tmp_path, error):
    def fail(path):
        with atomic_write(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        fail(tmp_path / "f")
    assert not list(tmp_path.iterdir())
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(error):
        fail(str(tmp_path / "f"))
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failing_system_leaves_what_was_there(tmp_path, monkeypatch, function):
    def fail(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "f").write_bytes(b"old")
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="No space left"), atomic_write(tmp_path / "f") as file:
        file.write(b"half")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_permissions(tmp_path):
    with atomic_write(tmp_path / "f"):
        pass
    usual = tmp_path / "usual"
    usual.touch()
    assert (tmp_path / "f").stat().st_mode == usual.stat().st_mode
    (tmp_path / "f").chmod(0o640)
    with atomic_write(tmp_path / "f"):
        pass
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/f")
    for content in (b"1", b"2"):
        with atomic_write(tmp_path / "link") as file:
            file.write(content)
        assert (tmp_path / "there" / "f").read_bytes() == content
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "there") == ["f"]


def test_pipes_are_written_as_they_are(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with atomic_write(tmp_path / "pipe") as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    with atomic_write("/dev/null") as file:
        file.write(b"away")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_errors_name_the_path_that_was_asked_for(tmp_path):
    for path, error in ((tmp_path / "no" / "f", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as info, atomic_write(path):
            pass
        assert info.value.filename == str(path)


def test_temporary_names_do_not_get_into_gzip_files(tmp_path):
    for name in ("a", "b"):
        with atomic_write(tmp_path / name) as file, gzip.open(file, "wb") as out:
            out.write(b"text")
    assert b".tmp" not in (tmp_path / "a").read_bytes()


def test_a_folder_appears_when_the_block_ends(tmp_path):
    target = tmp_path / "d"
    with atomic_folder(target) as folder:
        with open(os.path.join(folder, "f"), "w") as file:
            file.write("new")
        assert not target.exists()
    assert (target / "f").read_text() == "new"
    assert os.listdir(tmp_path) == ["d"]


def test_a_folder_takes_the_place_of_another(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "old").touch()
    with atomic_folder(tmp_path / "d") as folder:
        os.mkdir(os.path.join(folder, "new"))
    assert os.listdir(tmp_path / "d") == ["new"]
    assert os.listdir(tmp_path) == ["d"]


def leftovers(folder):
    return [name for name in os.listdir(folder) if name.startswith(".marginrank-")]


def abandon(path, maker):
    """Leave what a process that is killed would leave."""
    name, descriptor = atomic_files._create(str(path), maker)
    os.close(descriptor)
    return name


@pytest.mark.parametrize("maker", [atomic_files._new_file, atomic_files._new_folder])
def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path, maker):
    abandon(tmp_path / "f", maker)
    other = abandon(tmp_path / "g", maker)
    with atomic_write(tmp_path / "f"):
        pass
    assert leftovers(tmp_path) == [os.path.basename(other)]
    with atomic_folder(tmp_path / "g"):
        pass
    assert not leftovers(tmp_path)


def test_what_another_process_is_writing_is_left_alone(tmp_path):
    with atomic_write(tmp_path / "f") as slow:
        slow.write(b"slow")
        with atomic_write(tmp_path / "f") as quick:
            quick.write(b"quick")
        assert (tmp_path / "f").read_bytes() == b"quick"
    assert (tmp_path / "f").read_bytes() == b"slow"
    with atomic_folder(tmp_path / "d") as slow:
        with atomic_folder(tmp_path / "d") as quick:
            os.mkdir(os.path.join(quick, "quick"))
        os.mkdir(os.path.join(slow, "slow"))
    assert os.listdir(tmp_path / "d") == ["slow"]
    assert not leftovers(tmp_path)


def test_a_name_that_is_taken_for_a_leftover_is_given_up(tmp_path, monkeypatch):
    lock, names = fcntl.flock, []

    def removed_before_it_is_locked(descriptor, how):
        if not names:
            names.extend(leftovers(tmp_path))
            os.unlink(tmp_path / names[0])
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", removed_before_it_is_locked)
    with atomic_write(tmp_path / "f") as file:
        file.write(b"new")
    assert names
    assert (tmp_path / "f").read_bytes() == b"new"


def test_a_file_system_without_locks_is_written_but_not_cleared(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    abandon(tmp_path / "f", atomic_files._new_file)
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with atomic_write(tmp_path / "f") as file:
        file.write(b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert len(leftovers(tmp_path)) == 1


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_that_is_open_stays_what_it_was(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    for name in ("old", "new"):
        with atomic_folder(tmp_path / "d") as folder:
            os.mkdir(os.path.join(folder, name))
        if name == "old":
            opened = open_folder(tmp_path / "d")
            descriptor = opened.__enter__()
            assert os.listdir(descriptor) == ["old"]
    assert os.listdir(descriptor) == []
    error = OSError("a file is missing")
    with pytest.raises(FolderReplaced):
        opened.__exit__(OSError, error, None)
    with pytest.raises(OSError, match="missing"), open_folder(tmp_path / "d"):
        raise error


def test_long_names_have_temporary_names_too(tmp_path):
    path = tmp_path / ("n" * 255)
    with atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_keeps_its_permissions(tmp_path, monkeypatch, exchange):
    """And files keep theirs, by name; nobody else can read the new folder while it is filled."""
    if not exchange:
        monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    target = tmp_path / "d"
    target.mkdir(mode=0o750)
    (target / "f").touch(mode=0o600)
    with atomic_folder(target) as folder:
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in "fg":
            with open(os.path.join(folder, name), "w") as file:
                file.write("new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o750
    assert stat.S_IMODE((target / "f").stat().st_mode) == 0o600
    assert (target / "g").read_text() == (target / "f").read_text() == "new"
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("write", [atomic_write, atomic_folder])
def test_a_pipe_with_a_temporary_name_does_not_block(tmp_path, write):
    """Nor is it removed, or a link: they are not files that a killed process left."""
    pipe, link = (atomic_files._hidden_name(str(tmp_path / "f"), "tmp") for _ in range(2))
    os.mkfifo(pipe)
    os.symlink(pipe, link)
    signal.alarm(300)  # ends the process if a call blocks
    with write(tmp_path / "f"):
        pass
    signal.alarm(0)
    assert sorted(leftovers(tmp_path)) == sorted(map(os.path.basename, (pipe, link)))


def test_a_disk_that_is_full_is_told_with_the_name_of_the_file(tmp_path):
    """Whether the block notices it or the end of the block, and by a device, too."""
    with (
        pytest.raises(OSError, match="No space left on device") as error,
        atomic_write("/dev/full") as file,
    ):
        file.write(b"short")
    assert error.value.filename == "/dev/full"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        for size in (2000, 2_000_000):
            with (
                pytest.raises(OSError, match="File too large") as error,
                atomic_write(tmp_path / "f") as file,
            ):
                file.write(bytes(size))
            assert error.value.filename == str(tmp_path / "f")
        with (
            pytest.raises(OSError, match="File too large") as error,
            atomic_folder(tmp_path / "d") as folder,
            open(f"{folder}/f", "wb") as file,
        ):
            file.write(bytes(2000))
        assert error.value.filename == str(tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []
