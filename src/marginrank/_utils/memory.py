"""Memory that this process can still allocate, and checks before large allocations."""

import math
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
FIT_VECTORS = 8  # least number of vectors with one entry per feature in a fit


def require_memory(n_bytes: int, what: str, fix: str) -> None:
    """Raise ValueError if `n_bytes` exceeds the memory that this process can still allocate.

    The message names the thing that needs the memory (`what`) and says what the user can do
    (`fix`).
    """
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{what} needs {gigabytes(n_bytes)} GB of memory, but this process can have at most "
            f"{gigabytes(available)} GB; {fix}."
        )


def require_vectors(n_features: int) -> None:
    """Raise ValueError if memory is too small for a fit with `n_features` features."""
    require_memory(
        8 * FIT_VECTORS * n_features,
        f"a fit to the {n_features} features of X",
        "check the largest index; if indices are hashes or ids, map them to fewer columns",
    )


def gigabytes(n_bytes: int) -> str:
    """Return a number of bytes as text in gigabytes, without the unit: "1.5"."""
    return f"{n_bytes / 1e9:,.1f}"


def readable(n_bytes: int) -> str:
    """Return a number of bytes as text with a unit: "1.5 GB" or "20 MB"."""
    return f"{gigabytes(n_bytes)} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.0f} MB"


def available_memory() -> int:
    """Return the number of bytes that this process can still allocate.

    It is the minimum of the free memory of the system and the limits set by control groups and
    ulimit.
    """
    return min(_limits())


def _limits() -> Iterator[int]:
    yield _system_memory()
    for path in CONTROL_GROUPS:
        with suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            yield int(file.read())  # "max" if there is no limit
    limits = (resource.RLIMIT_AS, _mapped_memory), (resource.RLIMIT_DATA, reserved_memory)
    for kind, used in limits:
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            yield max(limit - used(), 0)


def _system_memory() -> int:
    """Return the free and reclaimable memory in bytes; if it is unknown, the physical memory."""
    fields = {}
    with suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    if "MemAvailable" in fields:
        names = ("MemAvailable", "SwapFree")
        return 1024 * sum(int(fields[name].split()[0]) for name in names if name in fields)
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def private_memory() -> int:
    """Return the number of bytes of memory in use by this process, without memory-mapped files."""
    fields = _process_fields()
    return fields.get("RssAnon", _peak_memory()) + fields.get("VmSwap", 0)


def reserved_memory() -> int:
    """Return the number of bytes of private memory that this process has reserved, used or not.

    The limit RLIMIT_DATA (``ulimit -d``) applies to this number.
    """
    return _process_fields().get("VmData", _peak_memory())


def _process_fields() -> dict[str, int]:
    """Return the memory sizes in /proc/self/status in bytes, by the name of the field."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as file:
        lines = [line.split() for line in file]
        return {line[0].rstrip(":"): 1024 * int(line[1]) for line in lines if line[-1] == "kB"}
    return {}


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if IS_MAC else 1024)


def _mapped_memory() -> int:
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def parse_bytes(name: str, value: Any) -> int:
    """Return a memory size in bytes; `value` is a number of bytes or text such as "512 MiB".

    Raise ParameterError for an invalid size; its message names the parameter `name`.
    """
    match = SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    number: Any = math.nan
    if match is not None:
        number = float(match[1]) * UNITS[match[2].upper()]
    elif isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = value
    if not 0 < number < 2**63:
        raise ParameterError(
            given(name, value), " must be a number of bytes, or a size such as '2GB' or '512MB'."
        )
    return int(number)
