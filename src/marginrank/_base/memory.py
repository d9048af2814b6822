"""What memory a process can have, so that absurd sizes are refused before they are asked for."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress

CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
FIT_VECTORS = 8  # of an entry a feature, that any fit needs at once


def require_memory(n_bytes: int, what: str, fix: str) -> None:
    """Refuse what needs more memory than there can be."""
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{what} needs {gigabytes(n_bytes)} GB of memory, but this process can have at most "
            f"{gigabytes(available)} GB; {fix}."
        )


def require_vectors(n_features: int) -> None:
    """Refuse so many features that the vectors of a fit cannot be had."""
    require_memory(
        8 * FIT_VECTORS * n_features,
        f"X has {n_features} features, and a fit to them",
        "check the largest index; if indices are hashes or ids, map them to fewer columns",
    )


def gigabytes(n_bytes: int) -> str:
    """Return a size for people."""
    return f"{n_bytes / 1e9:,.1f}"


def available_memory() -> int:
    """Return the least of what the system, the control group and the limits leave, in bytes."""
    return min(_limits())


def _limits() -> Iterator[int]:
    yield _system_memory()
    for path in CONTROL_GROUPS:
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            yield int(file.read())  # "max" if there is none
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        yield max(limit - mapped_memory(), 0)


def _system_memory() -> int:
    """Return what is free or can be freed, or all there is where the system does not tell."""
    fields = {}
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    if "MemAvailable" in fields:
        names = ("MemAvailable", "SwapFree")
        return 1024 * sum(int(fields[name].split()[0]) for name in names if name in fields)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def mapped_memory() -> int:
    """Return the address space this process has taken, in bytes; 0 if the system does not tell."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0
