"""Which parts are computed with in one task: about as many bundles as the cluster has threads."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from distributed import Client, Future

from marginrank.dask.clusters import homes_of, map_tasks, threads_by_worker

MANY = 1 << 30  # bundles, that are on their way
SLACK = 1.1  # by which a bundle may be larger than its share, before parts move to another


class Bundling(NamedTuple):
    """Parts in bundles.

    Attributes
    ----------
    members : list of list of int
        Numbers of the parts in each bundle, ascending.
    tasks_per_worker : int
        How many bundles a worker has, at most.
    """

    members: list[list[int]]
    tasks_per_worker: int


def bundle_parts(client: Client, parts: Sequence[Future], sizes: Sequence[int]) -> Bundling:
    """Put parts into bundles where they are, moving some where bundles would be uneven.

    Results do not depend on it.

    Parameters
    ----------
    client : Client
        The cluster.
    parts : sequence of Future
        Parts, in the memory of workers.
    sizes : sequence of int
        Numbers of their documents.
    """
    threads = threads_by_worker(client)
    n_bundles = max(min(sum(threads.values()), len(parts)), 1)
    home = dict(enumerate(homes_of(client, parts)))
    slots = [worker for worker, n in threads.items() for _ in range(n)][:n_bundles] or [""]
    return Bundling(_assign(slots, home, sizes), max(map(slots.count, slots)))


def spread_bundles(client: Client, bundles: Sequence[Future]) -> list[Future]:
    """Return the same bundles, some of them sent to workers that have none while others have many.

    After a worker was lost, the others have its bundles; then a new one comes and has nothing to
    do. Where a bundle is sent is a wish: if that worker is lost too, any other will do.
    """
    threads = threads_by_worker(client)
    homes = homes_of(client, bundles)
    spread = list(bundles)
    for idle in [worker for worker in threads if worker not in homes]:
        crowded = [k for k, home in enumerate(homes) if homes.count(home) > threads.get(home, MANY)]
        for k in crowded[: threads[idle]]:
            homes[k] = idle
            there = {"workers": [idle], "allow_other_workers": True}
            spread[k] = map_tasks(client, _same_bundle, [bundles[k]], **there)[0]
    return spread


def _same_bundle(bundle: Any) -> Any:
    return bundle


def _assign(slots: list[str], home: dict[int, str], sizes: Sequence[int]) -> list[list[int]]:
    """Give each part, largest first, to a bundle of its worker, unless that is full."""
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
