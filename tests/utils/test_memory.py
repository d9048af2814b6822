"""How much memory there can be."""

import subprocess
import sys

import pytest

from marginrank._utils import memory


def test_there_is_memory_and_not_without_end():
    assert 10**8 < memory.available_memory() < 10**15


@pytest.mark.parametrize("content", ["123\n", "max\n"])
def test_a_control_group_limits_it(tmp_path, monkeypatch, content):
    (tmp_path / "memory.max").write_text(content)
    before = memory.available_memory()
    monkeypatch.setattr(memory, "CONTROL_GROUPS", (str(tmp_path / "memory.max"),))
    limited = memory.available_memory()
    assert limited == 123 if content == "123\n" else limited > before / 2


def test_the_limit_of_the_process_counts_less_what_it_has():
    """The process limits itself, as it may need terabytes to start: a sanitizer maps them."""
    script = """
import resource
from marginrank._utils import memory
mapped = 1024 * next(int(l.split()[1]) for l in open("/proc/self/status") if "VmSize" in l)
resource.setrlimit(resource.RLIMIT_AS, 2 * (mapped + 10**9,))
print(memory.available_memory())
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 9 * 10**8 < int(run.stdout) <= 10**9, run.stderr


RESERVES = """
import mmap
from marginrank._utils import memory
used, reserved = memory.private_memory(), memory.reserved_memory()
addresses = mmap.mmap(-1, 3 * 10**8, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
print(memory.private_memory() - used, memory.reserved_memory() - reserved)
for page in range(0, 3 * 10**8, mmap.PAGESIZE):
    addresses[page] = 1
print(memory.private_memory() - used, memory.reserved_memory() - reserved)
"""


def test_reserved_addresses_are_not_in_use_until_they_are_written():
    run = subprocess.run([sys.executable, "-c", RESERVES], capture_output=True, text=True)
    untouched, written = [list(map(int, line.split())) for line in run.stdout.splitlines()]
    assert untouched[0] < 10**7 < untouched[1]
    assert written[0] == pytest.approx(3 * 10**8, rel=0.05)
    assert written[1] == pytest.approx(3 * 10**8, rel=0.05)


def test_a_system_that_does_not_tell_has_its_physical_memory(monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    assert 10**8 < memory.available_memory() < 10**15
    assert 10**6 < memory.private_memory() < 10**15
    assert 10**6 < memory.reserved_memory() < 10**15


def test_what_is_too_much_is_said_with_both_numbers(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * 10**9)
    memory.require_memory(2 * 10**9, "this", "try less")
    message = r"this needs 2.5 GB of memory, but this process can have at most 2.0 GB; try less\."
    with pytest.raises(ValueError, match=message):
        memory.require_memory(25 * 10**8, "this", "try less")
