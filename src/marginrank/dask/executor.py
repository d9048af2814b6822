"""The executor of parts on a Dask cluster: every task is a pure function of plain futures.

Parts are put into bundles, one for each thread of the cluster, as a task costs milliseconds. What
is kept of a bundle stays where it was made; what is told comes back part by part, and is added up
in the order of the parts: bundles and workers do not show in the result.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from marginrank._utils.alignment import aligned
from marginrank._utils.threads import serial_blas
from marginrank._utils.types import Integers
from marginrank.dask.bundles import spread_bundles
from marginrank.dask.clusters import fetch, map_and_tell, map_tasks
from marginrank.dask.problems import Problem, restrict_problems
from marginrank.dask.sweep_watch import SweepWatch
from marginrank.objective.losses import Loss
from marginrank.operators.parts.matrix import OnRead
from marginrank.operators.parts.tasks import ByPart, Executor, Report, Task

LOOK_EVERY = 2.0  # seconds, at workers that have nothing to do
SMALL = 1 << 20  # bytes of an argument that travels inside each task


class Kept(NamedTuple):
    """What a task has left on a worker: by part of the bundle, what was kept and what was told."""

    kept: list[tuple[Any, ...]]
    told: list[Any]


def call_task(
    problems: Sequence[Problem],
    *own: Kept | None,
    called: Task,
    loss: Loss | None,
    items: Sequence[int],
    common: Sequence[Any],
) -> Kept:
    """Call a function for the parts of a bundle."""
    found = []
    common = [aligned(value) for value in common]
    with serial_blas():
        for k, problem in enumerate(problems):
            each = [
                None if some is None else aligned(some.kept[k][item])
                for some, item in zip(own, items, strict=True)
            ]
            found.append(called(problem.kernels(loss), *each, *common))
    return Kept([kept for kept, _ in found], [told for _, told in found])


def tell_client(kept: Kept) -> list[Any]:
    """Return what the client asked for, without what stays."""
    return kept.told


def _as_kept(values: Sequence[Any]) -> Kept:
    return Kept([(value,) for value in values], [])


def _same(value: Any) -> Any:
    return value


def in_order(members: Sequence[Sequence[int]], of_bundles: Sequence[Sequence[Any]]) -> list[Any]:
    """Bring what there is of each part of each bundle into the order of the parts."""
    by_part: dict[int, Any] = {}
    for numbers, values in zip(members, of_bundles, strict=True):
        by_part.update(zip(numbers, values, strict=True))
    return [by_part[k] for k in range(len(by_part))]


class DaskExecutor(Executor):
    """Calls functions of the parts on workers.

    Parameters
    ----------
    client : Client
        The cluster.
    bundles : sequence of Future
        Lists of problems.
    members : sequence of sequence of int
        The numbers of the parts in each bundle.
    bounds : ndarray of int64
        Where the documents of the parts begin.
    on_read : callable, optional
        Called in a sweep with the rows of each part that is done, and 0: the bytes read from disk.
    far : bool
        Whether tasks take longer to call than they do, as X is small.
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
        """Where the documents of the parts begin."""
        return self._bounds

    @property
    def far(self) -> bool:
        """Whether calling a task costs more than most tasks do."""
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
        """Call a task for every part."""
        self._look_for_idle_workers()
        nothing = [None] * len(self._bundles)
        own = [nothing if some is None else some.handles for some in each]
        arguments = self._bundles, *own
        options = {
            "called": task,
            "loss": loss,
            "items": [0 if some is None else some.item for some in each],
            "common": [self._travelling(value) for value in common],
        }
        if report is None:
            return tuple(map_tasks(self._client, call_task, *arguments, **options))
        kept, told = map_and_tell(self._client, call_task, tell_client, *arguments, **options)
        with self._watching(kept if sweep else ()):
            for of_part in in_order(self._members, fetch(self._client, told)):
                report(of_part)
        return tuple(kept)

    def place(self, values: Sequence[Any]) -> ByPart:
        """Give every part a value, which travels with the tasks that need it if it is a number."""
        of_bundles = [[values[k] for k in members] for members in self._members]
        if all(isinstance(value, int) for value in values):
            return ByPart(tuple(map(_as_kept, of_bundles)))
        return ByPart(tuple(map_tasks(self._client, _as_kept, of_bundles)))

    def restrict(self, columns: Integers) -> "DaskExecutor":
        """Return the same parts with some columns of X alone, which workers copy."""
        restricted = map_tasks(self._client, restrict_problems, self._bundles, columns=columns)
        return DaskExecutor(
            self._client,
            restricted,
            self._members,
            self._bounds,
            self._on_read,
            far=self._far,
        )

    def _look_for_idle_workers(self) -> None:
        """Let workers that came later take part, now and then."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            with suppress(OSError):  # a scheduler that does not answer is for fetch to wait for
                self._bundles = spread_bundles(self._client, self._bundles)
            self._looked = time.monotonic()

    @contextmanager
    def _watching(self, futures: Sequence[Future]) -> Iterator[None]:
        """Tell of parts as they are done."""
        if self._on_read is None or not futures:
            yield
            return
        sizes = np.diff(self._bounds).tolist()
        watch = SweepWatch(self._on_read, [[sizes[k] for k in some] for some in self._members])
        watch.follow(futures)
        yield
        watch.end()

    def _travelling(self, value: Any) -> Any:
        """Return an argument to put into each task, or where to get it if it is large."""
        if isinstance(value, np.ndarray) and value.nbytes > SMALL:
            return map_tasks(self._client, _same, [value])[0]
        return value
