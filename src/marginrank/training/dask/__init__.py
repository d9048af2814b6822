"""Fits on a Dask cluster: what they need beside an objective over parts, without scikit-learn.

Every task is a pure function of plain futures, so that whatever is lost with a worker is computed
again, bit by bit. Nothing is pinned to a worker, scattered from the client or kept in an actor.
"""
