"""Clients of Dask clusters, of which --dask says where they are."""

import logging
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from marginrank._utils.optional import require
from marginrank._utils.parameters import Mention, ParameterError, given

if TYPE_CHECKING:
    from distributed import Client

LOCAL = re.compile(r"local\[(\d{1,4})\]", re.ASCII)
ADDRESS = re.compile(r"(\w+://)?[^/\s]+:\d{1,5}", re.ASCII)
PATIENCE = "30s"  # for an answer of the scheduler


def check_cluster(name: str, where: str) -> None:
    """Raise ValueError for what is neither local workers nor the address of a scheduler."""
    if local_workers(where) == 0 or not (LOCAL.fullmatch(where) or ADDRESS.fullmatch(where)):
        raise ParameterError(
            given(name, where),
            " must be the address of a scheduler, such as tcp://host:8786, or local[N] for N "
            "workers on this machine.",
        )


def local_workers(where: str) -> int | None:
    """Return how many workers to start on this machine; None if there is a cluster."""
    local = LOCAL.fullmatch(where)
    return None if local is None else int(local[1])


@contextmanager
def connecting(where: str) -> "Iterator[Client]":
    """Yield a client of the cluster, which is started if it is local, and then ended as well."""
    distributed = require("distributed", "dask")
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # Dask leaves tasks behind at Ctrl-C
    n_workers = local_workers(where)
    with ExitStack() as stack:
        if n_workers is not None:
            with _deaf_children():
                cluster: Any = stack.enter_context(_start(distributed, n_workers))
        else:
            cluster = where
        try:
            client = stack.enter_context(distributed.Client(cluster, timeout=PATIENCE))
        except (OSError, ValueError) as error:
            raise ParameterError(
                Mention("dask", where),
                ": no scheduler answers there; start one with: dask scheduler, and workers with: "
                "dask worker ADDRESS.",
            ) from error
        yield client


def _start(distributed: Any, n_workers: int) -> Any:
    """Start workers on this machine."""
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes that are started ignore Ctrl-C, which a terminal sends to them as well."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
