"""A client of a Dask cluster that answers or says why not: it never waits for good."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import Future as FutureAnswer
from contextlib import contextmanager
from typing import Any

from dask import delayed
from distributed import Client, Future, get_client
from distributed.scheduler import KilledWorker

SLICE = 5.0  # seconds between looks at the cluster while it computes
PATIENCE = 30.0  # seconds without a worker or an answer, until nobody waits any longer


class ClusterError(ConnectionError):
    """A cluster that no longer computes."""


def find_client(client: Client | None) -> Client:
    """Return the client to use: what is given, or the one of this process."""
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "there is no Dask client; make one, such as distributed.Client(), or give client=."
            ) from None
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            f"client={client!r} must be a distributed.Client, and not an asynchronous one."
        )
    _require_running(client)
    return client


def map_tasks(client: Client, task: Any, *arguments: Sequence[Any], **common: Any) -> list[Future]:
    """Call a task on the cluster for each of some arguments; nobody waits.

    It is named anew in every call, so that fits that run at once do not meet.
    """
    with _connected(client):
        return list(client.map(task, *arguments, **common, pure=False))


def map_and_tell(
    client: Client, task: Any, tell: Any, *arguments: Sequence[Any], **common: Any
) -> tuple[list[Future], list[Future]]:
    """Do the same, and call `tell` with each result; both go in one message.

    A client sends a message every ten milliseconds at most.
    """
    with _connected(client):
        call, answer = delayed(task, pure=False), delayed(tell, pure=False)
        results = [call(*some, **common) for some in zip(*arguments, strict=True)]
        told = [answer(result) for result in results]
        futures = list(client.compute([*results, *told], optimize_graph=False))
    return futures[: len(results)], futures[len(results) :]


@contextmanager
def _connected(client: Client) -> Iterator[None]:
    """Raise ClusterError if the client is closed, or closes meanwhile.

    Its other errors then are those of attributes and connections that are gone.
    """
    _require_running(client)
    try:
        yield
    except ClusterError:
        raise
    except Exception as error:
        if client.status == "running":
            raise
        raise ClusterError(_why_cancelled(client)) from error


def fetch(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Return the results of some futures, in order; an error of a task is raised as it is.

    Waiting ends with an error when the cluster has no workers for half a minute, when its scheduler
    is gone or the client is closed.
    """
    with _connected(client):
        return _gathered(client, futures)


def _gathered(client: Client, futures: Sequence[Future]) -> list[Any]:
    coming = _begin(client, lambda: client.gather(list(futures), asynchronous=True))
    lonely_since: float | None = None
    try:
        while True:
            try:
                return list(coming.result(timeout=SLICE))
            except TimeoutError:
                if coming.done():
                    raise  # it is that of a task
            lonely_since = _lonely_since(client, lonely_since)
    except KilledWorker as error:
        raise ClusterError(
            f"{error.allowed_failures + 1} workers died one after the other while they computed "
            f"with one part, the last one at {error.last_worker.address}, perhaps for lack of "
            "memory; give workers more of it, or make smaller partitions."
        ) from error
    except CancelledError as error:
        raise ClusterError(_why_cancelled(client)) from error
    except Exception:
        # The client keeps the error of a future, and with its traceback all that the fit has.
        for future in futures:
            future.release()
        raise
    finally:
        coming.cancel()


def threads_by_worker(client: Client) -> dict[str, int]:
    """Return the address of each worker, and how many threads it has."""
    return dict(_ask(client, lambda: client.scheduler.ncores()))


def count_workers(client: Client) -> int:
    """Return the number of workers, 0 if the scheduler does not answer."""
    try:
        return len(threads_by_worker(client))
    except OSError:
        return 0


def homes_of(client: Client, futures: Sequence[Future]) -> list[str]:
    """Return the address of a worker that has each of some futures; "" where none has."""
    keys = [future.key for future in futures]
    holders = _ask(client, lambda: client.scheduler.who_has(keys=keys))
    return [next(iter(holders.get(future.key, ())), "") for future in futures]


def _ask(client: Client, question: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the scheduler answers; raise ClusterError if it does not."""
    with _connected(client):
        try:
            return _begin(client, question).result(timeout=PATIENCE)
        except TimeoutError as error:
            raise ClusterError(
                f"the Dask scheduler has not answered for {PATIENCE:.0f} seconds; fit again."
            ) from error


def _begin(client: Client, question: Callable[[], Awaitable[Any]]) -> FutureAnswer[Any]:
    """Ask something; the answer goes on coming while others wait for it in slices."""

    async def answer() -> Any:
        return await question()

    return asyncio.run_coroutine_threadsafe(answer(), client.loop.asyncio_loop)


def _lonely_since(client: Client, since: float | None) -> float | None:
    """Return since when there has been no worker, None while there are some."""
    if client.status not in ("running", "connecting"):
        raise ClusterError(_why_cancelled(client))
    now = time.monotonic()
    if count_workers(client):  # a scheduler that does not answer has none either
        return None
    since = now if since is None else since
    if time.monotonic() - since >= PATIENCE:
        raise ClusterError(
            f"the Dask cluster has had no workers for {PATIENCE:.0f} seconds; start some and fit "
            "again."
        )
    return since


def _require_running(client: Client) -> None:
    if client.status != "running":
        raise ClusterError(f"the Dask client is {client.status}; make a new one.")


def _why_cancelled(client: Client) -> str:
    if client.status == "running":
        return "what the fit had computed was cancelled, as by a restart of the cluster; fit again."
    return f"the Dask client is {client.status}: it or its scheduler was closed; make a new one."
