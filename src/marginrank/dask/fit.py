"""Fits of linear and sparse models on a Dask cluster, for the estimators and the command line."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from distributed import Client
from numpy.typing import NDArray

from marginrank._utils.memory import require_vectors
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Floats
from marginrank.dask.clusters import bundle_parts, count_workers, fetch, map_tasks
from marginrank.dask.executor import DaskExecutor, in_order
from marginrank.dask.loading import LoadedParts
from marginrank.dask.parts import Part
from marginrank.dask.problems import PairFacts, facts_of_pairs, make_problems, weigh_problems
from marginrank.fit.inputs import no_pairs, no_weight
from marginrank.fit.linear import Parameters, check_not_ndcg, check_start, minimize
from marginrank.fit.scaling import Scale, ScaleSearch, blaming_features, values_of
from marginrank.fit.sparse import SparseParameters, with_default_C
from marginrank.fit.stream_progress import StreamProgress
from marginrank.models.linear_model import LinearModel
from marginrank.models.parameters import no_scale, recorded_parameters, takes_two_labels
from marginrank.objective.objective import Objective
from marginrank.objective.pair_sets import PairCounts, check_C
from marginrank.objective.pair_weights import MOST_LABELS
from marginrank.operators.parts.matrix import OnRead, PartsMatrix
from marginrank.solvers.result import Callback

AnyParameters = Parameters | SparseParameters

SMALL_BYTES = 1 << 32  # up to this size of X, the overhead of Dask tasks dominates a pass


class DaskPairs(PairCounts):
    """Numbers of documents, queries and pairs of data on the workers of a Dask cluster."""

    def __init__(self, loaded: LoadedParts, facts: list[PairFacts]) -> None:
        self._loaded = loaded
        self._facts = facts

    @property
    def n_documents(self) -> int:
        return self._loaded.n_documents

    @property
    def n_queries(self) -> int:
        return self._loaded.n_queries

    @property
    def n_active_documents(self) -> int:
        return sum(fact.n_active_documents for fact in self._facts)

    @property
    def n_pairs(self) -> int:
        return sum(fact.n_pairs for fact in self._facts)

    @property
    def has_weight(self) -> bool:
        return any(fact.weight > 0 for fact in self._facts)


class DaskMatrix(PartsMatrix):
    """The feature matrix X on the workers of a Dask cluster, in parts of whole queries."""

    def __init__(self, loaded: LoadedParts, executor: DaskExecutor) -> None:
        super().__init__()
        self._loaded = loaded
        self._executor = executor

    @property
    def shape(self) -> tuple[int, int]:
        return self._loaded.n_documents, self._loaded.n_features

    @property
    def n_entries(self) -> int:
        return sum(fact.n_entries for fact in self._loaded.facts)

    @property
    def memory_bytes(self) -> int:
        return self._loaded.n_bytes

    def executor(self, pairs: PairCounts, threads: int) -> DaskExecutor:
        return self._executor


def fit_on_dask(
    client: Client,
    loaded: LoadedParts,
    parameters: AnyParameters,
    *,
    seed: int = 0,
    w0: Floats | None = None,
    callback: Callback | None = None,
    on_read: OnRead | None = None,
) -> LinearModel:
    """Fit a linear or sparse RankSVM to documents on the workers of a Dask cluster.

    The documents in `loaded` are released. `on_read` reports progress: it is called with the number
    of rows of each processed part of X, and 0 because no bytes are read from disk. The other
    parameters are the same as in :func:`~marginrank.fit.linear.fit_linear`.
    """
    check_for_dask(parameters)
    check_start(w0)
    require_vectors(loaded.n_features)
    scale = _find_scale(client, loaded, parameters.scale)
    objective = dask_objective(client, loaded, parameters, on_read)
    chosen = parameters
    if isinstance(parameters, SparseParameters) and parameters.chooses_C:
        with blaming_features(C=None):
            chosen = with_default_C(parameters, objective, scale)
            objective = dask_objective(client, loaded, chosen, on_read)
    loaded.release()
    objective.matrix.survey(objective.pairs, objective.threads)
    w, report = minimize(objective, chosen, scale=scale, seed=seed, w0=w0, callback=callback)
    estimator = "RankSVM"
    if isinstance(chosen, SparseParameters):
        estimator, report = "SparseRankSVM", replace(report, C=chosen.C)
    return LinearModel(
        coef=w,
        parameters=recorded_parameters(estimator, parameters),
        feature_names=loaded.feature_names,
        report=report,
        estimator=estimator,
        scale=values_of(scale),
    )


def check_for_dask(parameters: AnyParameters) -> None:
    """Raise ValueError if Dask clusters do not support the value of the parameter `objective`."""
    check_not_ndcg(parameters.objective, "dask")


def progress_on_dask(client: Client, loaded: LoadedParts, tol: float) -> StreamProgress:
    """Return a progress reporter for a fit on a Dask cluster: it shows rows, parts and workers."""
    count = partial(count_workers, client)
    return StreamProgress(loaded.n_documents, tol, n_parts=len(loaded.facts), count_workers=count)


def dask_objective(
    client: Client, loaded: LoadedParts, parameters: AnyParameters, on_read: OnRead | None = None
) -> Objective:
    """Return the objective function of a fit whose feature matrix and pairs are on Dask workers.

    The features are not scaled.
    """
    labels = None
    if _needs_labels(parameters):
        labels = np.unique(np.concatenate(fetch(client, map_tasks(client, _labels, loaded.parts))))
    sizes = [fact.n_documents for fact in loaded.facts]
    bundling = bundle_parts(client, loaded.parts, sizes)
    bundled = [[loaded.parts[k] for k in members] for members in bundling.members]
    bundles = map_tasks(client, make_problems, bundled, parameters=parameters, labels=labels)
    found = fetch(client, map_tasks(client, facts_of_pairs, bundles))
    facts = in_order(bundling.members, found)
    pairs = DaskPairs(loaded, facts)
    if pairs.n_pairs == 0:
        raise no_pairs(pairs.n_documents, pairs.n_queries)
    if not pairs.has_weight:
        raise no_weight()
    weighed = map_tasks(
        client,
        weigh_problems,
        bundles,
        factor=_factor(parameters, facts),
        averaged=parameters.normalization == "query",
        n_tasks=bundling.tasks_per_worker,
    )
    bounds = np.cumsum([0, *sizes])
    far = loaded.n_bytes <= SMALL_BYTES
    executor = DaskExecutor(client, weighed, bundling.members, bounds, on_read, far=far)
    threads = effective_threads(parameters.n_jobs)  # threads of the client, for samples
    return Objective(
        design=DaskMatrix(loaded, executor).design(pairs, threads),
        loss=facts[0].loss,
        ridge=0.0 if isinstance(parameters, SparseParameters) else 1.0,
    )


def _factor(parameters: AnyParameters, facts: list[PairFacts]) -> float:
    """Return the factor for query weights that the parameters C and `normalization` imply."""
    C = parameters.loss_weight
    total = float(np.sum([fact.weight for fact in facts]))
    over = {
        "none": 1.0,
        "pairs": total,
        "query": float(np.sum([fact.query_weight for fact in facts])),
    }
    check_C(C, total, C * total if parameters.normalization == "none" else C)
    return C / over[parameters.normalization]


def _needs_labels(parameters: AnyParameters) -> bool:
    """Return True if pair_cost or margin depends on the labels of both documents."""
    cost, margin = parameters.pair_cost, getattr(parameters, "margin", "unit")
    return not (cost is None or isinstance(cost, str)) or takes_two_labels(margin)


def _labels(part: Part) -> NDArray[Any]:
    assert part.data is not None
    # One label more than the limit is enough to raise the error.
    labels: NDArray[Any] = np.unique(part.data.y)[: MOST_LABELS + 1]
    return labels


def _find_scale(client: Client, loaded: LoadedParts, scale: Any) -> Scale | None:
    if no_scale(scale):
        return None
    searches = fetch(client, map_tasks(client, _search, loaded.parts, scale=scale))
    first: ScaleSearch = searches[0]
    for other in searches[1:]:
        first.merge(other)
    return first.found()


def _search(part: Part, scale: Any) -> ScaleSearch:
    assert part.data is not None
    search = ScaleSearch(scale)
    search.add(part.data)
    return search
