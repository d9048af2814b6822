"""Whether an export scores documents as the model does."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from marginrank._base.types import Floats
from marginrank.export.engines._documents import Documents, Run
from marginrank.export.exporting import Exported, Files, places_in
from marginrank.export.names import Names, names_of
from marginrank.export.registry import find_target
from marginrank.metrics.ranks import ranks


@dataclass(frozen=True)
class Verification:
    """How far the scores of an export are from those of the model.

    Attributes
    ----------
    engine : str
        What ran the export.
    documents, queries : int
        How many there were.
    largest_difference : float
        Between two scores of a document.
    spread : float
        The highest score of the model less its lowest.
    largest_score : float
        The largest absolute value of a score.
    reordered_queries : int
        Queries whose documents are not in the same order.
    """

    engine: str
    documents: int
    queries: int
    largest_difference: float
    spread: float
    largest_score: float
    reordered_queries: int


def run_export(
    model: Exported, to: str, files: Files, X: ArrayLike, names: Names | None = None
) -> Run:
    """Return the scores that an engine, or a reference of it, gives with the files of an export.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or KernelModel
        What was exported.
    to : str
        The target.
    files : dict of str to bytes
        What :func:`~marginrank.export.exporting.export_files` returned.
    X : array-like of shape (n_documents, n_features)
        The documents; NaN where a feature is missing.
    names : list of str, or dict of str to str, optional
        As given to the export.
    """
    target, dialect = find_target(to)
    if dialect is not None:
        files = {**files, "dialect": dialect.encode()}
    features = names_of(model, names)
    documents = Documents(
        X=np.ascontiguousarray(X, dtype=np.float64),
        names=tuple(features),
        used=places_in(model, features) or (0,),
    )
    run: Run = target.runner()(files, documents)
    return run


def verify(run: Run, scores: Floats, qid: ArrayLike | None = None) -> Verification:
    """Compare the scores of a run with those of the model, any offset included.

    Two documents of equal scores are in the order of the rows, in both.
    """
    bad = np.flatnonzero(~np.isfinite(run.scores))
    if bad.size:
        raise ValueError(
            f"{run.engine} gives document {bad[0]} the score {run.scores[bad[0]]:g}, and the model "
            f"{scores[bad[0]]:g}: numbers are too large for its precision; scale the features, or "
            "export to another target."
        )
    before, after = ranks(scores, qid), ranks(run.scores, qid)
    queries = np.zeros(len(scores), dtype=np.int64) if qid is None else np.asarray(qid)
    return Verification(
        engine=run.engine,
        documents=len(scores),
        queries=len(np.unique(queries)),
        largest_difference=float(np.max(np.abs(run.scores - scores), initial=0.0)),
        spread=float(np.ptp(scores)) if len(scores) else 0.0,
        largest_score=float(np.max(np.abs(scores), initial=0.0)),
        reordered_queries=len(np.unique(queries[before != after])),
    )
