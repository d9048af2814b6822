"""Conversion of pipelines of linear steps into one linear model of the input features.

A step that only shifts, scales, selects and reorders columns maps x to Ax + b. Weights v of its
output are weights Aᵀv of x, plus the constant bᵀv, which does not change any ranking.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from marginrank._utils.types import Floats
from marginrank.estimators.base import LinearRanker
from marginrank.estimators.input import feature_names_of
from marginrank.estimators.query_scaler import QueryScaler
from marginrank.estimators.select_k_best_ranking import SelectKBestRanking
from marginrank.models import LinearModel

Steps = list[tuple[str, Any]]  # pairs (name, step)


def as_linear_model(model: Any) -> LinearModel:
    """Convert a fitted pipeline of linear steps into one linear model of its input features.

    Scores of the result differ from ``pipeline.predict`` by a constant, which does not change any
    ranking.

    Parameters
    ----------
    model : Pipeline or estimator
        A fitted pipeline of ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``,
        ``RobustScaler``, feature selectors such as :class:`~marginrank.SelectKBestRanking`,
        ``ColumnTransformer`` of such steps, ``"passthrough"``, and pipelines of them, that ends in
        a linear ranker of marginrank; or such a ranker alone.

    Returns
    -------
    LinearModel
        The weights of the input features, zero for features that were dropped; the feature names,
        if the pipeline has them; parameters and report of the fit, whose objective refers to the
        transformed features. `scale` is None.

    Raises
    ------
    ValueError
        If steps are not linear in the features of a document; the message lists them.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginrank import RankSVM, as_linear_model, make_ranking
    >>> X, y, qid = make_ranking(random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     pipeline = make_pipeline(StandardScaler(), RankSVM()).fit(X, y, qid=qid)
    >>> model = as_linear_model(pipeline)
    >>> difference = X @ model.coef - pipeline.predict(X)
    >>> bool(abs(difference - difference[0]).max() < 1e-9)
    True
    """
    if isinstance(model, LinearRanker):
        return model.to_linear_model()
    if not isinstance(model, Pipeline):
        raise ValueError(
            f"model is a {type(model).__name__}; pass a fitted Pipeline that ends in a linear "
            "ranker of marginrank, such as RankSVM, or the ranker."
        )
    *before, (name, ranker) = _flat_steps(model)
    _check_foldable(before, name, ranker)
    check_is_fitted(model)
    record: LinearModel = ranker.to_linear_model()
    steps = [step for _, step in before if not _passes(step)]
    names = record.feature_names if not steps else _names_of(steps[0])
    return replace(record, coef=_through(steps, record.coef), feature_names=names, scale=None)


def _flat_steps(model: Pipeline, prefix: str = "") -> Steps:
    """Return all steps before the ranker, and expand a nested pipeline at the end."""
    *before, (name, last) = [(f"{prefix}{name}", step) for name, step in model.steps]
    if isinstance(last, Pipeline):
        return [*before, *_flat_steps(last, f"{name}.")]
    return [*before, (name, last)]


def _check_foldable(before: Steps, name: str, ranker: Any) -> None:
    found = [
        f"{path} ({type(step).__name__}: {why})"
        for path, step in _inner_steps(before)
        if (why := _obstacle(step)) is not None
    ]
    if not isinstance(ranker, LinearRanker):
        found.append(f"{name} ({type(ranker).__name__}: not a linear ranker)")
    if found:
        raise ValueError(
            f"The pipeline is not linear in its features because of {', '.join(found)}. Remove or "
            "replace these steps."
        )


def _inner_steps(steps: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the transformers by name, including those inside pipelines and ColumnTransformers."""
    for name, step in steps:
        path = f"{prefix}{name}"
        if isinstance(step, Pipeline):
            yield from _inner_steps(step.steps, f"{path}.")
        elif isinstance(step, ColumnTransformer):
            inner = [(name, one) for name, one, _ in step.transformers]
            if hasattr(step, "transformers_"):  # transformers_ omits transformers without columns
                columns = step._transformer_to_input_indices
                inner = [(name, one) for name, one, _ in step.transformers_ if len(columns[name])]
            yield from _inner_steps(inner, f"{path}.")
        else:
            yield path, step


def _obstacle(step: Any) -> str | None:
    """Return the reason why a step cannot be folded, or None."""
    if _passes(step) or _drops(step):
        return None
    if isinstance(step, QueryScaler):
        return "depends on the other documents of the query"
    if getattr(step, "clip", False):
        return "clip=True bounds the features"
    if isinstance(step, FunctionTransformer):
        return "arbitrary function"
    known: Any = next(base for base in type(step).__mro__ if base in _fold.registry)
    if known is object:
        return "not known to be linear"
    if type(step).transform is not known.transform:
        return f"overrides transform of {known.__name__}"
    return None


def _passes(step: Any) -> bool:
    """Return True if a step does not change the features."""
    if isinstance(step, FunctionTransformer):
        return step.func is None
    return step is None or (isinstance(step, str) and step == "passthrough")


def _drops(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def _through(steps: list[Any], weights: Floats) -> Floats:
    """Return weights of the first step's input, given weights of the last step's output."""
    for step in reversed(steps):
        if not _passes(step):
            weights = _fold(step, weights)
    return weights


@singledispatch
def _fold(step: Any, weights: Floats) -> Floats:
    """Return Aᵀv, the weights of a step's input x, for the weights v of its output Ax + b."""
    raise TypeError(f"{type(step).__name__} cannot be folded.")


@_fold.register
def _(step: Pipeline, weights: Floats) -> Floats:
    return _through([one for _, one in step.steps], weights)


@_fold.register(StandardScaler)
@_fold.register(MaxAbsScaler)
@_fold.register(RobustScaler)
def _(step: Any, weights: Floats) -> Floats:
    return weights if step.scale_ is None else weights / step.scale_


@_fold.register
def _(step: MinMaxScaler, weights: Floats) -> Floats:
    scale: Floats = step.scale_
    return weights * scale


@_fold.register(SelectorMixin)
@_fold.register(SelectKBestRanking)
def _(step: Any, weights: Floats) -> Floats:
    return _scattered(weights, step.get_support(indices=True), step.n_features_in_)


@_fold.register
def _(step: ColumnTransformer, weights: Floats) -> Floats:
    result = np.zeros(step.n_features_in_)
    factors = step.transformer_weights or {}
    for name, inner, _columns in step.transformers_:
        # Column numbers, even if columns were given as names, slices, masks or a function.
        columns = step._transformer_to_input_indices[name]
        if len(columns) == 0 or _drops(inner):
            continue
        own = weights[step.output_indices_[name]] * factors.get(name, 1.0)
        result += _scattered(_through([inner], own), columns, result.size)
    return result


def _scattered(weights: Floats, columns: Any, n_features: int) -> Floats:
    """Return a vector over all features with `weights` added at `columns`, and 0 elsewhere."""
    result = np.zeros(n_features)
    np.add.at(result, np.asarray(columns, dtype=np.int64), weights)
    return result


def _names_of(step: Any) -> list[str] | None:
    if isinstance(step, Pipeline):
        inner = [one for _, one in step.steps if not _passes(one)]
        return _names_of(inner[0]) if inner else None
    return feature_names_of(step)
