"""X in parts that are small enough for tests, on the worker processes of a cluster."""

from itertools import pairwise

import numpy as np
from distributed import Client

from helpers.parts_backend import MemoryParts
from marginrank import RankingData
from marginrank.dask.executor import DaskExecutor
from marginrank.dask.problems import Problem


class DaskParts(MemoryParts):
    """X of any data, whose parts are dealt out to two bundles."""

    device = None

    def _make(self, pairs, threads):
        rows = pairwise(self._plan.rows)
        parts = self.split(pairs)
        problems = [
            Problem(
                RankingData(self._X[first:last], np.zeros(last - first)),
                part,
                None,
                device=self.device,
            )
            for part, (first, last) in zip(parts, rows, strict=True)
        ]
        numbers = range(len(parts))
        members = [bundle for bundle in (numbers[::2], numbers[1::2]) if bundle]
        client = Client.current()
        bundles = [client.submit(list, [problems[k] for k in b], pure=False) for b in members]
        bounds = np.cumsum([0, *(part.n_documents for part in parts)])
        return DaskExecutor(client, bundles, members, bounds)


class TorchParts(DaskParts):
    """The same with PyTorch on the workers."""

    device = "cpu"
