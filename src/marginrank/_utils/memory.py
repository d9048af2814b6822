"""What memory a process can have, so that absurd sizes are refused before they are asked for."""

import numbers
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from marginrank._utils.parameters import ParameterError, given

CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
IS_MAC = sys.platform == "darwin"
UNITS = {"": 1, "B": 1} | {
    f"{prefix}{binary}B": (1024 if binary else 1000) ** power
    for power, prefix in enumerate("KMGT", 1)
    for binary in ("", "I")
}
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:e\d+)?"
SIZE = re.compile(rf"({NUMBER})\s*({'|'.join(UNITS)})", re.IGNORECASE)
FIT_VECTORS = 8  # of an entry a feature, that any fit needs at once


def require_memory(n_bytes: int, what: str, fix: str) -> None:
    """Raise ValueError for what needs more memory than there can be."""
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{what} needs {gigabytes(n_bytes)} GB of memory, but this process can have at most "
            f"{gigabytes(available)} GB; {fix}."
        )


def require_vectors(n_features: int) -> None:
    """Raise ValueError for so many features that the vectors of a fit cannot be had."""
    require_memory(
        8 * FIT_VECTORS * n_features,
        f"X has {n_features} features, and a fit to them",
        "check the largest index; if indices are hashes or ids, map them to fewer columns",
    )


def gigabytes(n_bytes: int) -> str:
    """Return a size for people."""
    return f"{n_bytes / 1e9:,.1f}"


def readable(n_bytes: int) -> str:
    """Return a size with its unit."""
    if n_bytes >= 1_000_000_000:
        return f"{gigabytes(n_bytes)} GB"
    return f"{n_bytes / 1e6:,.0f} MB"


def available_memory() -> int:
    """Return the least of what the system, the control group and the limits leave, in bytes."""
    return min(_limits())


def _limits() -> Iterator[int]:
    yield _system_memory()
    for path in CONTROL_GROUPS:
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            yield int(file.read())  # "max" if there is none
    for kind, used in (
        (resource.RLIMIT_AS, mapped_memory),
        (resource.RLIMIT_DATA, reserved_memory),
    ):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield max(limit - used(), 0)


def _system_memory() -> int:
    """Return what is free or can be freed, or all there is where the system does not tell."""
    fields = {}
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    if "MemAvailable" in fields:
        names = ("MemAvailable", "SwapFree")
        return 1024 * sum(int(fields[name].split()[0]) for name in names if name in fields)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def private_memory() -> int:
    """Return the memory in use by this process alone, in bytes: pages in memory and in swap.

    Files, and addresses that are reserved without being used, do not count.
    """
    fields = _process_fields()
    if "RssAnon" in fields:
        return fields["RssAnon"] + fields.get("VmSwap", 0)
    return _peak_memory()


def reserved_memory() -> int:
    """Return the bytes of private addresses, used or not, which a limit on data counts."""
    return _process_fields().get("VmData", _peak_memory())


def _process_fields() -> dict[str, int]:
    """Return the sizes that the system reports for this process, in bytes."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as file:
        lines = [line.split() for line in file]
        return {line[0].rstrip(":"): 1024 * int(line[1]) for line in lines if line[-1] == "kB"}
    return {}


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if IS_MAC else 1024)


def parse_bytes(name: str, value: Any) -> int:
    """Return a number of bytes, given as one or as text such as "2GB" or "512 MiB"."""
    match = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    number, unit = value, 1
    if match is not None:
        number, unit = float(match[1]), UNITS[match[2].upper()]
    elif not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise _no_size(name, value)
    if not 0 < number * unit < 2**63:
        raise _no_size(name, value)
    return int(number * unit)


def _no_size(name: str, value: object) -> ParameterError:
    return ParameterError(
        given(name, value), " must be a number of bytes, or a size such as '2GB' or '512MB'."
    )


def mapped_memory() -> int:
    """Return the address space this process has taken, in bytes; 0 if the system does not tell."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0
