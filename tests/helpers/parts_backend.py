"""X in parts that are small enough for tests, of rows in memory that are read in blocks."""

from dataclasses import replace

import numpy as np

from marginrank.operators.parts import streaming
from marginrank.operators.parts.matrix import PartsMatrix
from marginrank.operators.parts.streaming import StreamingExecutor

PART_ROWS = 8  # so that some queries are longer than a block


class MemoryBlocks:
    """Rows in memory; those of a block are gone when the next one comes."""

    def __init__(self, X, bounds):
        self.X, self.bounds = X, bounds
        self.n_read = 0

    def sweep(self, blocks):
        for block in blocks:
            rows = self.X[self.bounds[block] : self.bounds[block + 1]].copy()
            self.n_read += rows.shape[0]
            yield block, rows
            getattr(rows, "data" if hasattr(rows, "indptr") else "flat")[:] = np.nan


class MemoryParts(PartsMatrix):
    """X of any data, its rows brought into the order of the queries."""

    def __init__(self, data):
        super().__init__()
        self._place = np.arange(data.n_documents)
        X = data.X
        if data.queries.rows is not None:
            self._place[data.queries.rows] = np.arange(data.n_documents)
            X = X[data.queries.rows]
        self._X = X
        self.offsets = data.queries.offsets
        part_bytes, streaming.PART_BYTES = streaming.PART_BYTES, PART_ROWS
        try:
            self._plan = streaming.make_plan(self.offsets, lambda rows: rows)
        finally:
            streaming.PART_BYTES = part_bytes
        self.blocks = MemoryBlocks(X, self._plan.block_rows)
        self._executors = {}

    shape = property(lambda self: self._X.shape)
    n_entries = property(lambda self: self._X.size)
    memory_bytes = property(lambda self: 8 * self._X.size)

    def magnitudes(self, threads):
        if self._magnitudes is None:
            return np.abs(self._X).max(axis=0)
        return self._magnitudes

    def executor(self, pairs, threads):
        if id(pairs) not in self._executors:
            self._executors[id(pairs)] = pairs, self._make(pairs, threads)
        return self._executors[id(pairs)][1]

    def _make(self, pairs, threads):
        parts = self.split(pairs)
        return StreamingExecutor(self.blocks, self._plan, parts, self.n_features, threads)

    def split(self, pairs):
        """Return the pairs of each part."""
        regrouped = self._regrouped(pairs)
        first_rows = regrouped.documents.offsets[:-1]
        rows = regrouped.documents.rows
        first_rows = first_rows if rows is None else rows[first_rows]
        bounds = np.append(np.searchsorted(first_rows, self._plan.rows[:-1]), first_rows.size)
        return regrouped.split(bounds, self._plan.rows)

    def _regrouped(self, pairs):
        """Return the pairs with the rows where they are here."""
        documents = pairs.documents
        if documents.rows is None:
            return pairs
        name = "grouped" if hasattr(pairs, "grouped") else "queries"
        return replace(pairs, **{name: replace(documents, rows=self._place[documents.rows])})
