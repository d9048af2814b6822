"""Verification of exports: comparison of an exported model's scores with the model's own."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.types import Floats
from marginrank.export.engines import EngineDocuments, EngineRun
from marginrank.export.exporting import Files
from marginrank.export.names import Names, names_of
from marginrank.export.registry import find_target
from marginrank.export.sums import Model, sum_over
from marginrank.export.text import FLOAT32_ACCURACY
from marginrank.metrics.ranking import ranks
from marginrank.models import KernelModel


class VerificationError(ValueError):
    """Error for an exported model whose scores are not finite."""


@dataclass(frozen=True)
class Verification:
    """Result of :func:`verify`: differences between the scores of an export and of its model."""

    engine: str
    is_reference: bool  # whether a reimplementation of the engine's arithmetic was used
    documents: int
    queries: int
    largest_difference: float  # largest difference between exported and model scores
    allowed_difference: float  # largest difference that the documentation allows for the target
    spread: float  # highest minus lowest score of the model
    largest_score: float  # largest absolute score of the model
    negative_scores: int  # number of negative scores, if the engine rejects them
    reordered_queries: int  # number of queries whose order differs

    @property
    def failure(self) -> str | None:
        """The reason why the export must not be used, or None if it is correct."""
        if self.negative_scores:
            return (
                f"{self.negative_scores:,} of {self.documents:,} scores are negative, which the "
                "engine rejects."
            )
        if not self.largest_difference <= self.allowed_difference:
            return (
                "scores of the export differ from the scores of the model by up to "
                f"{self.largest_difference:.2g}, but at most {self.allowed_difference:.2g} is "
                "allowed for this target. Scale the features, or export to another target."
            )
        return None


def run_export(
    model: Model, to: str, files: Files, X: ArrayLike, names: Names | None = None
) -> EngineRun:
    """Return scores of documents by an exported model, computed by the system it was exported to.

    If this system cannot easily be run, a reimplementation of its arithmetic is used.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or KernelModel
        The exported model.
    to : str
        Name of the export target.
    files : dict of str to bytes
        Result of :func:`~marginrank.export.exporting.export_files`.
    X : array-like of shape (n_documents, n_features)
        The documents; NaN where a feature is missing.
    names : list of str, or dict of str to str, optional
        The same names that were passed to the export.

    Returns
    -------
    EngineRun
        The scores, and the engine that computed them.
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
    largest_sum = 0.0
    if isinstance(model, KernelModel):
        sums = replace(model, dual_coef=np.abs(model.dual_coef)).scores(documents.filled())
        largest_sum = float(np.max(np.abs(sums), initial=0.0))
    return replace(run, target=target, largest_sum=largest_sum)


def verify(run: EngineRun, scores: Floats, qid: ArrayLike | None = None) -> Verification:
    """Compare the scores of an exported model (`run`) with scores of the model itself.

    `scores` must include the offset of the export, if any. Documents with equal scores are ordered
    by row in both rankings. Raise VerificationError if a score of the export is not finite.
    """
    given, is_lucene = run.scores, run.target is not None and run.target.lucene_scores
    if is_lucene:  # the target rounds scores to float32
        with np.errstate(over="ignore"):
            given = given.astype(np.float32).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(given))
    if bad.size:
        raise VerificationError(
            f"{run.engine} gives document {bad[0]} the score {given[bad[0]]:g}, but the model "
            f"gives {scores[bad[0]]:g}: numbers overflow in the engine. Scale the features, or "
            "export to another target."
        )
    before, after = ranks(scores, qid=qid), ranks(given, qid=qid)
    queries = np.zeros(len(scores), dtype=np.int64) if qid is None else np.asarray(qid)
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    largest_score = float(np.max(np.abs(scores), initial=0.0))
    allowed = run.accuracy * max(largest_score, run.largest_sum)
    if run.target is not None and run.target.scores_in_float32:
        allowed = FLOAT32_ACCURACY * (spread or largest_score)
    return Verification(
        engine=run.engine,
        is_reference=run.is_reference,
        documents=len(scores),
        queries=len(np.unique(queries)),
        largest_difference=float(np.max(np.abs(given - scores), initial=0.0)),
        allowed_difference=allowed,
        spread=spread,
        largest_score=largest_score,
        negative_scores=int(np.count_nonzero(given < 0)) if is_lucene else 0,
        reordered_queries=len(np.unique(queries[before != after])),
    )
