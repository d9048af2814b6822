"""Communication with a Dask cluster: submit tasks, fetch results, distribute data to workers.

If workers or the scheduler are gone, the functions raise ClusterError instead of waiting forever.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as FutureAnswer
from contextlib import contextmanager
from typing import Any, NamedTuple

from dask import delayed
from distributed import Client, Future, get_client
from distributed.scheduler import KilledWorker

SLICE = 5.0  # seconds between checks of the cluster while it computes
PATIENCE = 30.0  # seconds without a worker or an answer before ClusterError
MANY = 1 << 30  # assumed number of threads of an unknown worker, so its bundles are not moved
SLACK = 1.1  # factor by which a bundle may exceed its share before parts go to another bundle


class ClusterError(ConnectionError):
    """Raised if a Dask cluster cannot finish a computation, for example without workers."""


def find_client(client: Client | None) -> Client:
    """Return `client`, or the current Dask client of this process if `client` is None.

    Raise ValueError if there is no client, TypeError if it is asynchronous, and ClusterError if it
    is closed.
    """
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "No Dask client found. Create one, such as distributed.Client(), or pass client."
            ) from None
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(f"client={client!r} must be a synchronous distributed.Client.")
    _require_running(client)
    return client


def map_tasks(client: Client, task: Any, *arguments: Sequence[Any], **common: Any) -> list[Future]:
    """Submit the Dask tasks task(a[k], b[k], …, **common) for all k, and return their futures.

    `arguments` are the sequences a, b, …. Every call makes new Dask keys, so concurrent fits do not
    share futures.
    """
    with _connected(client):
        return list(client.map(task, *arguments, **common, pure=False))


def map_and_report(
    client: Client, task: Any, report: Any, *arguments: Sequence[Any], **common: Any
) -> tuple[list[Future], list[Future]]:
    """Submit Dask tasks, and the small task `report(result)` for each of their results.

    Return the futures of the results, which stay on the workers, and the futures of the reports.
    The arguments are the same as for :func:`map_tasks`.
    """
    # Tasks and reports are one graph, because a client sends a message every ten milliseconds only.
    with _connected(client):
        call, answer = delayed(task, pure=False), delayed(report, pure=False)
        results = [call(*some, **common) for some in zip(*arguments, strict=True)]
        reports = [answer(result) for result in results]
        futures = list(client.compute([*results, *reports], optimize_graph=False))
    return futures[: len(results)], futures[len(results) :]


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Raise ClusterError if the Dask client is closed before or during the with block."""
    _require_running(client)
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        if client.status == "running":
            raise
        # A closed client raises unclear errors about missing attributes and connections.
        raise ClusterError(_why_cancelled(client)) from error


def fetch(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for Dask futures; return their results in order, and raise errors of tasks unchanged.

    Raise ClusterError if there is no worker for `PATIENCE` seconds, or if the scheduler or the
    client is gone.
    """
    with _connected(client):
        return _gathered(client, futures)


def _gathered(client: Client, futures: Sequence[Future]) -> list[Any]:
    coming = _begin(client, lambda: client.gather(list(futures), asynchronous=True))
    alone_since: float | None = None
    try:
        while True:
            try:
                return list(coming.result(timeout=SLICE))
            except TimeoutError:
                if coming.done():
                    raise  # the error of a task
            alone_since = _alone_since(client, alone_since)
    except KilledWorker as error:
        raise ClusterError(
            f"{error.allowed_failures + 1} workers died while computing on the same part of X, the "
            f"last one at {error.last_worker.address}, possibly for lack of memory. Give workers "
            "more memory, or make smaller partitions."
        ) from error
    except CancelledError as error:
        raise ClusterError(_why_cancelled(client)) from error
    except Exception:
        # The client keeps the error of a future, and its traceback keeps the data of the fit.
        for future in futures:
            future.release()
        raise
    finally:
        coming.cancel()


def threads_by_worker(client: Client) -> dict[str, int]:
    """Return the number of threads of each worker of a Dask cluster, by worker address."""
    return dict(_ask(client, lambda: client.scheduler.ncores()))


def count_workers(client: Client) -> int:
    """Return the number of workers of a Dask cluster, or 0 if the scheduler does not answer."""
    try:
        return len(threads_by_worker(client))
    except OSError:
        return 0


def homes_of(client: Client, futures: Sequence[Future]) -> list[str]:
    """Return, for each Dask future, the address of a worker that has its result, or ""."""
    keys = [future.key for future in futures]
    holders = _ask(client, lambda: client.scheduler.who_has(keys=keys))
    return [next(iter(holders.get(future.key, ())), "") for future in futures]


def _ask(client: Client, question: Callable[[], Awaitable[Any]]) -> Any:
    """Return the scheduler's answer to a request; raise ClusterError if it does not answer."""
    with _connected(client):
        try:
            return _begin(client, question).result(timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterError(
                f"The Dask scheduler has not answered for {PATIENCE:.0f} seconds; check that it "
                "is running, then fit again."
            ) from error


def _begin(client: Client, question: Callable[[], Awaitable[Any]]) -> FutureAnswer[Any]:
    """Start a coroutine on the event loop of the Dask client, and return a future of its result."""

    async def answer() -> Any:
        return await question()

    return asyncio.run_coroutine_threadsafe(answer(), client.loop.asyncio_loop)


def _alone_since(client: Client, since: float | None) -> float | None:
    """Return the time at which the cluster lost its last worker, or None if it has workers.

    `since` is the result of the previous call. Raise ClusterError after PATIENCE seconds without a
    worker.
    """
    if client.status not in ("running", "connecting"):
        raise ClusterError(_why_cancelled(client))
    now = time.monotonic()
    if count_workers(client):  # 0 if the scheduler does not answer
        return None
    since = now if since is None else since
    if time.monotonic() - since >= PATIENCE:
        raise ClusterError(
            f"The Dask cluster has had no workers for {PATIENCE:.0f} seconds. Start workers, and "
            "fit again."
        )
    return since


def _require_running(client: Client) -> None:
    if client.status != "running":
        raise ClusterError(_why_cancelled(client))


def _why_cancelled(client: Client) -> str:
    if client.status == "running":
        return (
            "The results of the fit were cancelled, perhaps by a restart of the cluster; fit again."
        )
    return f"the Dask client is {client.status}: it or its scheduler was closed; create a new one."


class Bundling(NamedTuple):
    """A division of the parts of X into bundles (lists of parts), with one Dask task per bundle."""

    members: list[list[int]]
    tasks_per_worker: int  # largest number of bundles on one worker


def bundle_parts(client: Client, parts: Sequence[Future], sizes: Sequence[int]) -> Bundling:
    """Return a division of the parts of X into about one bundle per thread of the Dask cluster.

    A bundle is a list of parts on the same worker, unless bundles would differ too much in size.
    `sizes` are the sizes of the parts. Results of fits do not depend on the division.
    """
    threads = threads_by_worker(client)
    n_bundles = max(min(sum(threads.values()), len(parts)), 1)
    home = dict(enumerate(homes_of(client, parts)))
    slots = [worker for worker, n in threads.items() for _ in range(n)][:n_bundles] or [""]
    return Bundling(_assign(slots, home, sizes), max(map(slots.count, slots)))


def spread_bundles(client: Client, bundles: Sequence[Future]) -> list[Future]:
    """Move bundles from overloaded workers to idle workers; return the futures of all bundles.

    A bundle is a list of parts of X that one task computes. A worker is overloaded if it has more
    bundles than threads. This happens after a worker is lost, because the others compute its
    bundles; a worker that joins later would be idle.
    """
    threads = threads_by_worker(client)
    homes = homes_of(client, bundles)
    spread = list(bundles)
    for idle in [worker for worker in threads if worker not in homes]:
        crowded = [k for k, home in enumerate(homes) if homes.count(home) > threads.get(home, MANY)]
        for k in crowded[: threads[idle]]:
            homes[k] = idle
            there = {"workers": [idle], "allow_other_workers": True}  # if the idle worker is lost
            spread[k] = map_tasks(client, identity, [bundles[k]], **there)[0]
    return spread


def identity(value: Any) -> Any:
    """Dask task: return the argument, to store a value on a worker."""
    return value


def _assign(slots: list[str], home: dict[int, str], sizes: Sequence[int]) -> list[list[int]]:
    """Return the part indices of each bundle, for a division of X into bundles of similar size.

    `slots` has the worker of each bundle and `home` the worker of each part. A part goes to a
    bundle on its worker if that bundle has room.
    """
    share = SLACK * sum(sizes) / len(slots)
    filled = [0] * len(slots)
    members: list[list[int]] = [[] for _ in slots]
    for k in sorted(home, key=lambda k: -sizes[k]):
        emptiest = min(range(len(slots)), key=lambda slot: filled[slot])
        local = [slot for slot, worker in enumerate(slots) if worker == home[k]]
        slot = min(local, key=lambda slot: filled[slot], default=emptiest)
        if filled[slot] and filled[slot] + sizes[k] > share:
            slot = emptiest
        members[slot].append(k)
        filled[slot] += sizes[k]
    return [sorted(bundle) for bundle in members if bundle]
