"""Whether an export scores documents as the model does, and whether its engine takes the scores."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.types import Floats
from marginrank.export.engines.run import EngineDocuments, EngineRun
from marginrank.export.exporting import Files
from marginrank.export.names import Names, names_of
from marginrank.export.numbers import FLOAT32_ACCURACY
from marginrank.export.registry import find_target
from marginrank.export.sums import Model, sum_over
from marginrank.metrics.ranking import ranks
from marginrank.models import KernelModel


class VerificationError(ValueError):
    """The scores of an export cannot be compared with the model's."""


@dataclass(frozen=True)
class Verification:
    """How far the scores of an export are from those of the model."""

    engine: str
    is_reference: bool  # of the engine's arithmetic, and not an engine
    documents: int
    queries: int
    largest_difference: float  # between two scores of a document
    allowed_difference: float  # the documented accuracy
    spread: float  # the highest score of the model less its lowest
    largest_score: float  # absolute
    negative_scores: int  # of documents, if the engine refuses those
    reordered_queries: int  # whose documents are not in the same order

    @property
    def failure(self) -> str | None:
        """Why the export must not be used, or None."""
        if self.negative_scores:
            return (
                f"{self.negative_scores:,} of {self.documents:,} scores are negative, and the "
                "engine refuses those."
            )
        if not self.largest_difference <= self.allowed_difference:
            return (
                f"scores of the export differ from the model's by up to "
                f"{self.largest_difference:.2g}, and the accuracy of this target is "
                f"{self.allowed_difference:.2g}. Scale the features, or export to another target."
            )
        return None


def run_export(
    model: Model, to: str, files: Files, X: ArrayLike, names: Names | None = None
) -> EngineRun:
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
    documents = EngineDocuments(
        X=np.ascontiguousarray(X, dtype=np.float64),
        names=tuple(features),
        used=sum_over(model, features).places or (0,),
    )
    run: EngineRun = target.runner()(files, documents)
    return replace(run, target=target, largest_sum=_largest_sum(model, documents))


def _largest_sum(model: Model, documents: EngineDocuments) -> float:
    """Return the largest sum of absolute terms of a kernel model, 0 for other models."""
    if not isinstance(model, KernelModel):
        return 0.0
    sums = replace(model, dual_coef=np.abs(model.dual_coef)).scores(documents.filled())
    return float(np.max(np.abs(sums), initial=0.0))


def verify(run: EngineRun, scores: Floats, qid: ArrayLike | None = None) -> Verification:
    """Compare the scores of a run with those of the model, any offset included.

    Two documents of equal scores are in the order of the rows, in both.
    """
    given = _given_scores(run)
    bad = np.flatnonzero(~np.isfinite(given))
    if bad.size:
        raise VerificationError(
            f"{run.engine} gives document {bad[0]} the score {given[bad[0]]:g}, and the model "
            f"{scores[bad[0]]:g}: numbers are too large for its precision; scale the features, or "
            "export to another target."
        )
    before, after = ranks(scores, qid=qid), ranks(given, qid=qid)
    queries = np.zeros(len(scores), dtype=np.int64) if qid is None else np.asarray(qid)
    sizes = {
        "spread": float(np.ptp(scores)) if len(scores) else 0.0,
        "largest_score": float(np.max(np.abs(scores), initial=0.0)),
    }
    return Verification(
        engine=run.engine,
        is_reference=run.is_reference,
        documents=len(scores),
        queries=len(np.unique(queries)),
        largest_difference=float(np.max(np.abs(given - scores), initial=0.0)),
        allowed_difference=_allowed_difference(run, **sizes),
        negative_scores=int(np.count_nonzero(given < 0)) if _is_lucene(run) else 0,
        reordered_queries=len(np.unique(queries[before != after])),
        **sizes,
    )


def _is_lucene(run: EngineRun) -> bool:
    return run.target is not None and run.target.lucene_scores


def _given_scores(run: EngineRun) -> Floats:
    """Return the scores that the engine ranks by: Lucene rounds them to float32."""
    if not _is_lucene(run):
        return run.scores
    with np.errstate(over="ignore"):
        return run.scores.astype(np.float32).astype(np.float64)


def _allowed_difference(run: EngineRun, spread: float, largest_score: float) -> float:
    """Return the documented accuracy of a target."""
    if run.target is not None and run.target.scores_in_float32:
        return FLOAT32_ACCURACY * (spread or largest_score)
    return run.accuracy * max(largest_score, run.largest_sum)
