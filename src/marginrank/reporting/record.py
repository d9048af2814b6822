"""Reports on a ranking: the class `Report`, and the functions that compute one."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.atomic_files import atomic_write
from marginrank._utils.types import Floats
from marginrank._utils.user_warnings import warn_caller
from marginrank._utils.version import __version__
from marginrank.data.ranking_data import RankingData, as_ranking_data
from marginrank.data.runs import as_qrels
from marginrank.data.validation import check_vector
from marginrank.health import check_data
from marginrank.metrics.names import COMMON_METRICS, Metric, get_metric, metric_name
from marginrank.models import FusionModel, foreign_scores
from marginrank.reporting.evaluation import (
    Rankings,
    chance_of,
    comparison_of,
    describe_metric,
    judged_documents,
    metric_rows,
    n_evaluated,
    verdict_of,
)
from marginrank.reporting.features import curves_of_record, importance_of
from marginrank.reporting.fitting import fit_of, learning_curve_of
from marginrank.reporting.page import page_of
from marginrank.reporting.queries import MOST_SLIDERS, query_section
from marginrank.reporting.slices import slices_of
from marginrank.reporting.terms import Terms, terms_of
from marginrank.reporting.text import cut, n_bytes

FORMAT, VERSION = "marginrank-report", 1
MOST_WEIGHT_BYTES = 60_000  # most bytes of weights that the page can copy
LONGEST_NAME = 120  # most bytes of a feature name in explanations
MOST_LABELS = 20

Path = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Report:
    """Report on how well a model ranks and where it fails, created by :func:`marginrank.report`.

    Attributes
    ----------
    record : dict
        The content of the report: numbers, texts and lists, as saved in ``report.json``.

    Examples
    --------
    >>> import marginrank
    >>> from marginrank import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=20, random_state=0)
    >>> report = marginrank.report(RankSVM().fit(X, y, qid=qid), X, y, qid=qid)
    >>> report
    Report(ndcg@10 of model, 20 queries)
    """

    record: dict[str, Any]

    def __repr__(self) -> str:
        """Return a short description: the main metric, the model and the number of queries."""
        record = self.record
        name, n_queries = record["model"]["name"], record["data"]["queries"]
        return f"Report({record['metric']['name']} of {name}, {n_queries} queries)"

    @property
    def verdict(self) -> str:
        """The main result of the report in one sentence, with its uncertainty."""
        return str(self.record["verdict"])

    def to_html(self) -> str:
        """Return the report as an HTML page, which does not load other files."""
        return page_of(self.record)

    def to_json(self) -> str:
        """Return the content of the report as JSON text, which :meth:`load` reads from a file."""
        return json.dumps(self.record, allow_nan=False)

    def save(self, path: Path) -> None:
        """Save the report as an HTML page, or as JSON if the name ends in ``.json``.

        Parameters
        ----------
        path : str or path
            The file to write.

        Examples
        --------
        >>> import os, tempfile
        >>> import marginrank
        >>> from marginrank import RankSVM, make_ranking
        >>> X, y, qid = make_ranking(n_queries=20, random_state=0)
        >>> report = marginrank.report(RankSVM().fit(X, y, qid=qid), X, y, qid=qid)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     report.save(os.path.join(folder, "report.html"))
        """
        is_json = os.fspath(path).endswith(".json")
        text = self.to_json() if is_json else self.to_html()
        with atomic_write(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read a report that :meth:`save` wrote as JSON; raise ValueError for any other file."""
        with open(path, "rb") as file:
            text = file.read()
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{os.fspath(path)} is not a report: it is not JSON.") from error
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise ValueError(f"{os.fspath(path)} is not a report: its format is not {FORMAT!r}.")
        if record.get("version") != VERSION:
            raise ValueError(
                f"{os.fspath(path)} has version {record.get('version')!r}, but this marginrank "
                f"reads version {VERSION}; make the report again."
            )
        return cls(record)


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """All inputs of a report: the scores to compare, the model, names and the training data.

    Attributes
    ----------
    rankings : Rankings
        The scores and how they are evaluated.
    model : object
        The model. Only models of this library are explained by features.
    names : tuple of str and str or None
        Names of the model and of the baseline.
    train : RankingData or None
        The training data, for the learning curve and for data checks.
    command : str
        A command or a Python call that creates the report again, for the page.
    """

    rankings: Rankings
    model: Any
    names: tuple[str, str | None]
    train: RankingData | None
    command: str


def report(
    model: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    qid: ArrayLike | None = None,
    baseline: Any = None,
    train: RankingData | None = None,
    qrels: Any = None,
    metric: str | Metric = "ndcg@10",
    metrics: Sequence[str] = COMMON_METRICS,
    names: tuple[str, str] = ("model", "baseline"),
    random_state: int = 0,
) -> Report:
    """Return a report on how well a model ranks, with the queries and features where it fails.

    The report can be saved as an HTML page that does not load other files.

    Parameters
    ----------
    model : fitted estimator, model or array-like of shape (n_documents,)
        A model of any library, or the scores of the documents. Linear and additive models of this
        library are explained feature by feature.
    X : RankingData, or array-like or sparse matrix of shape (n_documents, n_features)
        The documents to evaluate on.
    y, qid : array-like of shape (n_documents,), optional
        Labels and queries, if X is a matrix.
    baseline : fitted estimator, model or array-like of shape (n_documents,), optional
        Another model, or its scores, to compare with.
    train : RankingData, optional
        The training data. If given, the report has a learning curve for
        :class:`~marginrank.RankSVM` and :class:`~marginrank.SGDRankSVM`, and checks both data sets.
    qrels : mapping, data frame or ranx.Qrels, optional
        Relevance judgments. If given, the report has judged@10 and marks unjudged documents. The
        comments of the data must be document ids.
    metric : str or callable, default="ndcg@10"
        The main metric, by which queries are sorted, as in :func:`~marginrank.metrics.get_metric`.
    metrics : sequence of str
        Names of all metrics in the report.
    names : tuple of str, default=("model", "baseline")
        Names of the model and the baseline on the page.
    random_state : int, default=0
        Seed of resampling.

    Returns
    -------
    Report
        ``save("report.html")`` writes the page, ``save("report.json")`` its content as JSON.

    Examples
    --------
    >>> import marginrank
    >>> from marginrank import RankSVM, make_ranking
    >>> X, y, qid = make_ranking(n_queries=40, random_state=0)
    >>> report = marginrank.report(RankSVM().fit(X, y, qid=qid), X, y, qid=qid, baseline=X[:, 0])
    >>> report.verdict[:31]
    'model is better than baseline b'
    """
    plain = _plain(model)
    largest = getattr(model, "_largest_query", None)
    if largest is not None and qid is None and y is not None and np.size(y) > largest:
        qid = np.zeros(np.size(y))
        warn_caller(
            "The model was fitted with queries, but report got no qid, so all documents count as "
            "one query; pass qid."
        )
    data = as_ranking_data(X, y, qid, allow_nan=True)  # models that do not support NaN raise
    main = get_metric(metric)
    request = ReportRequest(
        rankings=Rankings(
            data=data,
            scores=_scores_of(plain, data, "model"),
            baseline=None if baseline is None else _scores_of(_plain(baseline), data, "baseline"),
            metric=main,
            metrics={name: get_metric(name) for name in metrics},
            qrels=None if qrels is None else as_qrels(qrels, "qrels"),
            seed=random_state,
        ),
        model=plain,
        names=(names[0], None if baseline is None else names[1]),
        train=train,
        command=f"marginrank.report(model, data, metric={metric_name(main)!r})",
    )
    return make_report(request)


def _plain(model: Any) -> Any:
    """Return an estimator of this library as a model record, and other objects unchanged."""
    for name in ("to_linear_model", "to_additive_model", "to_kernel_model"):
        if hasattr(model, name):
            return getattr(model, name)()
    fusion = getattr(model, "model_", None)
    return fusion if isinstance(fusion, FusionModel) else model


def _scores_of(model: Any, data: RankingData, name: str) -> Floats:
    if isinstance(model, FusionModel):
        return model.predict(data)
    if hasattr(model, "scores"):
        return np.asarray(model.scores(data.X), dtype=np.float64)
    if hasattr(model, "predict"):
        return foreign_scores(model, data.X)
    return check_vector(model, name, data.n_documents, "one score per document")


def make_report(request: ReportRequest) -> Report:
    """Return the Report for a request, with metrics, queries, features, fit and data checks."""
    rankings = request.rankings
    data, seed = rankings.data, rankings.seed
    terms = terms_of(request.model)
    importance = [] if terms is None else importance_of(terms, data, seed)
    rows = metric_rows(rankings)
    main = _main_row(rankings, rows)
    comparison = comparison_of(rankings)
    sliders = [row["term"] for row in importance[:MOST_SLIDERS]]
    section = query_section(rankings, terms, sliders, judged_documents(data, rankings.qrels))
    record = {
        "format": FORMAT,
        "version": VERSION,
        "marginrank": __version__,
        "verdict": verdict_of(
            main, comparison, chance_of(rankings), request.names, n_evaluated(rankings)
        ),
        "model": _describe_model(request, terms),
        "baseline": None if request.names[1] is None else {"name": request.names[1]},
        "data": _fingerprint(data),
        "metric": describe_metric(rankings.metric),
        "metrics": rows,
        "comparison": comparison,
        "queries": section.table,
        "blocks": section.blocks,
        "terms": _mentioned(terms, section.terms),
        "sliders": len(sliders),
        "importance": importance,
        "curves": curves_of_record(request.model, data, importance),
        "slices": slices_of(rankings),
        "learning_curve": learning_curve_of(
            request.model, request.train, data, rankings.metric, seed
        ),
        "fit": fit_of(request.model),
        "health": _health(data, request.train),
        "reproduce": {
            "command": request.command,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "random_state": seed,
        },
    }
    return Report(_finite(record))


def _main_row(rankings: Rankings, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    name = metric_name(rankings.metric)
    alone = Rankings(**{**vars(rankings), "metrics": {name: rankings.metric}, "qrels": None})
    found = [row for row in rows if row["name"] == name] or metric_rows(alone)
    if not found:
        rankings.mean(rankings.metric, rankings.scores)  # raises an error with the reason
    return {**found[0], "name": name}


def _health(data: RankingData, train: RankingData | None) -> list[dict[str, Any]]:
    found = check_data(data) if train is None else check_data(train, data)
    return [dict(finding.to_dict()) for finding in found]


def _describe_model(request: ReportRequest, terms: Terms | None) -> dict[str, Any]:
    model = request.model
    weights = None if terms is None else terms.weights
    described = {
        "name": request.names[0],
        "kind": getattr(model, "estimator", type(model).__name__),
        "parameters": {
            name: value if isinstance(value, str | int | float | None) else str(value)
            for name, value in getattr(model, "parameters", {}).items()
        },
        "weights": None,
    }
    if terms is not None and weights is not None and weights.size < MOST_WEIGHT_BYTES:
        by_name = dict(zip(terms.names, weights.tolist(), strict=True))
        described["weights"] = by_name if n_bytes(by_name) <= MOST_WEIGHT_BYTES else None
    return described


def _mentioned(terms: Terms | None, mentioned: Sequence[int]) -> list[dict[str, Any]]:
    """Return the names (and weights, of a linear model) of the features in blocks of queries."""
    if terms is None:
        return []
    weights = terms.weights
    return [
        {
            "name": cut(terms.names[term], LONGEST_NAME),
            "weight": None if weights is None else float(weights[term]),
        }
        for term in mentioned
    ]


def _fingerprint(data: RankingData) -> dict[str, Any]:
    """Return a summary of a data set: counts, histogram of labels, and hash of the content."""
    digest = hashlib.sha256()
    X = data.X
    arrays = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    for array in [*arrays, np.asarray(data.y, dtype=np.float64), data.qid]:
        digest.update(np.ascontiguousarray(array).data)
    labels, counts = np.unique(data.y, return_counts=True)
    histogram = [[float(label), int(n)] for label, n in zip(labels, counts, strict=True)]
    return {
        "documents": data.n_documents,
        "queries": data.n_queries,
        "features": data.n_features,
        "pairs": data.n_pairs,
        "queries_without_pair": int(np.count_nonzero(data.queries.n_pairs == 0)),
        "labels": histogram if len(histogram) <= MOST_LABELS else [],
        "sha256": digest.hexdigest(),
    }


def _finite(value: Any) -> Any:
    """Return nested data with types that JSON can hold; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
