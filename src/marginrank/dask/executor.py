"""Computation on the parts of X on the workers of a Dask cluster.

A part holds some queries with all their documents. A computation is one function, called on each
part; see :mod:`marginrank.operators.parts.tasks`. Its large results stay on the worker. Small
results are sent to the client and summed in the order of the parts, so sums do not depend on the
number of workers. A Dask task has an overhead of milliseconds, so one Dask task computes a
*bundle*: a list of parts on one worker. There is about one bundle per thread of the cluster.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from marginrank._utils.alignment import aligned
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Integers
from marginrank.dask.clusters import fetch, identity, map_and_report, map_tasks, spread_bundles
from marginrank.dask.problems import Problem, restrict_problems
from marginrank.objective.losses import Loss
from marginrank.operators.parts.matrix import OnRead
from marginrank.operators.parts.tasks import ByPart, Executor, Report, Task

LOOK_EVERY = 2.0  # seconds between checks for idle workers
SMALL = 1 << 20  # bytes up to which an argument is copied into each task


class BundleResult(NamedTuple):
    """Results of one function, for each part of X in a list of parts.

    `kept` are large results, which stay on the worker; `reported` are small results for the client.
    """

    kept: list[tuple[Any, ...]]
    reported: list[Any]


def call_task(
    problems: Sequence[Problem],
    *own: BundleResult | None,
    called: Task,
    loss: Loss | None,
    items: Sequence[int],
    common: Sequence[Any],
) -> BundleResult:
    """Dask task: call the function `called` on each part of X in `problems`; return its results.

    `own` are arguments with one value per part, each given as the result of an earlier task;
    `items` says which of its kept results to use. `common` are arguments that are the same for all
    parts.
    """
    found = []
    common = [aligned(value) for value in common]
    with serial_blas():
        for k, problem in enumerate(problems):
            each = [
                None if some is None else aligned(some.kept[k][item])
                for some, item in zip(own, items, strict=True)
            ]
            found.append(called(problem.kernels(loss), *each, *common))
    return BundleResult([kept for kept, _ in found], [reported for _, reported in found])


def _as_kept(values: Sequence[Any]) -> BundleResult:
    return BundleResult([(value,) for value in values], [])


def in_order(members: Sequence[Sequence[int]], of_bundles: Sequence[Sequence[Any]]) -> list[Any]:
    """Return a list of one value per part of X, in the order of the parts.

    One Dask task computes the values of several parts, a bundle: of_bundles[b] are the values of
    bundle b, and members[b] are the indices of its parts.
    """
    by_part: dict[int, Any] = {}
    for numbers, values in zip(members, of_bundles, strict=True):
        by_part.update(zip(numbers, values, strict=True))
    return [by_part[k] for k in range(len(by_part))]


class SweepWatch:
    """Reporter of the progress of a pass over X on a cluster: calls `on_read` for finished parts.

    `on_read` is called with the number of rows of the part, and 0 because no bytes are read from
    disk; never by two threads at once. `rows[k]` are the numbers of rows of the parts that task k
    computes.
    """

    def __init__(self, on_read: OnRead, rows: Sequence[Sequence[int]]) -> None:
        self._on_read = on_read
        self._left = dict(enumerate(rows))
        self._lock = Lock()

    def follow(self, futures: Sequence[Future]) -> None:
        """Call `on_read` to report progress whenever a Dask task is done; futures[k] is task k."""
        for bundle, future in enumerate(futures):
            future.add_done_callback(partial(self._done, bundle))

    def end(self) -> None:
        """Call `on_read` for all remaining parts, because callbacks of Dask futures may be lost."""
        for bundle in list(self._left):
            self._done(bundle)

    def _done(self, bundle: int, _: Future | None = None) -> None:
        with self._lock:
            for n_rows in self._left.pop(bundle, ()):
                self._on_read(n_rows, 0)


class DaskExecutor(Executor):
    """Calls functions on the parts of X on the workers of a Dask cluster.

    Parameters
    ----------
    client : Client
        The Dask client of the cluster.
    bundles : sequence of Future
        The data of the parts, as lists of parts that one Dask task computes.
    members : sequence of sequence of int
        The part indices of each list in `bundles`.
    bounds, far
        As in :class:`~marginrank.operators.parts.tasks.Executor`.
    on_read : callable, optional
        Called with the number of rows of each part that is done, and 0 bytes, during a pass over X.
    """

    def __init__(
        self,
        client: Client,
        bundles: Sequence[Future],
        members: Sequence[Sequence[int]],
        bounds: Integers,
        on_read: OnRead | None = None,
        *,
        far: bool = False,
    ) -> None:
        self._client = client
        self._bundles = bundles
        self._members = members
        self._bounds = bounds
        self._on_read = on_read
        self._far = far
        self._looked = time.monotonic()

    @property
    def bounds(self) -> Integers:
        return self._bounds

    @property
    def far(self) -> bool:
        return self._far

    def run(
        self,
        task: Task,
        loss: Loss | None,
        each: Sequence[ByPart | None],
        common: Sequence[Any],
        *,
        report: Report | None = None,
        sweep: bool = False,
    ) -> tuple[Any, ...]:
        self._use_idle_workers()
        nothing = [None] * len(self._bundles)
        own = [nothing if some is None else some.handles for some in each]
        arguments = self._bundles, *own
        options = {
            "called": task,
            "loss": loss,
            "items": [0 if some is None else some.item for some in each],
            "common": [self._sent(value) for value in common],
        }
        if report is None:
            return tuple(map_tasks(self._client, call_task, *arguments, **options))
        kept, reported = map_and_report(
            self._client, call_task, attrgetter("reported"), *arguments, **options
        )
        with self._watching(kept if sweep else ()):
            for of_part in in_order(self._members, fetch(self._client, reported)):
                report(of_part)
        return tuple(kept)

    def place(self, values: Sequence[Any]) -> ByPart:
        """Store values[k] on the cluster for part k of X; return a reference to all values.

        Integers are not stored on workers but sent with each task.
        """
        of_bundles = [[values[k] for k in members] for members in self._members]
        if all(isinstance(value, int) for value in values):
            return ByPart(tuple(map(_as_kept, of_bundles)))
        return ByPart(tuple(map_tasks(self._client, _as_kept, of_bundles)))

    def restrict(self, columns: Integers) -> "DaskExecutor":
        """Return an executor whose X has only the given columns, copied."""
        restricted = map_tasks(self._client, restrict_problems, self._bundles, columns=columns)
        shared = (self._members, self._bounds, self._on_read)
        return DaskExecutor(self._client, restricted, *shared, far=self._far)

    def _use_idle_workers(self) -> None:
        """Move bundles to idle workers, if the last check was more than LOOK_EVERY seconds ago."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            with suppress(OSError):  # if the scheduler does not answer, the next fetch waits for it
                self._bundles = spread_bundles(self._client, self._bundles)
            self._looked = time.monotonic()

    @contextmanager
    def _watching(self, futures: Sequence[Future]) -> Iterator[None]:
        """Inside the with block, report progress whenever one of the futures is done."""
        if self._on_read is None or not futures:
            yield
            return
        sizes = np.diff(self._bounds).tolist()
        watch = SweepWatch(self._on_read, [[sizes[k] for k in some] for some in self._members])
        watch.follow(futures)
        yield
        watch.end()

    def _sent(self, value: Any) -> Any:
        """Return an argument of a task; a large array is sent to a worker once, as a future."""
        if isinstance(value, np.ndarray) and value.nbytes > SMALL:
            return map_tasks(self._client, identity, [value])[0]
        return value
