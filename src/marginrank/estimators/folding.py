"""Pipelines of linear steps as one linear model of the features they begin with.

A step that only shifts, scales, picks and orders columns maps x to Ax + b. Weights v of its result
are the weights Aᵀv of x, and the constant bᵀv, which changes no ranking.
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
from marginrank.estimators.query_scaler import QueryScaler
from marginrank.estimators.select_k_best_ranking import SelectKBestRanking
from marginrank.models import LinearModel

Steps = list[tuple[str, Any]]  # by name


def as_linear_model(model: Any) -> LinearModel:
    """Fold a fitted pipeline into one linear model of the features that go into it.

    The scores of the result are those of ``pipeline.predict`` less a constant, the same for all
    documents: it changes no ranking, and no model file has a place for it.

    Parameters
    ----------
    model : Pipeline or estimator
        A fitted pipeline of ``StandardScaler``, ``MinMaxScaler``, ``MaxAbsScaler``,
        ``RobustScaler``, selectors of features such as :class:`~marginrank.SelectKBestRanking`,
        ``ColumnTransformer`` of such steps, ``"passthrough"``, and pipelines of them, that ends in
        a linear ranker of marginrank; or such a ranker alone.

    Returns
    -------
    LinearModel
        The weights of the features as they are, zero for those that no step kept; the names of the
        features, where the pipeline has them; parameters and log of the fit, whose objective is
        that of the transformed features. It has no `scale`.

    Raises
    ------
    ValueError
        If a step is not linear in the features of a document: the message names all such steps.

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
            f"{type(model).__name__} is no pipeline and no linear ranker of marginrank; give a "
            "fitted Pipeline that ends in one, such as RankSVM."
        )
    *before, (name, ranker) = _in_a_row(model)
    _check_foldable(before, name, ranker)
    check_is_fitted(model)
    record: LinearModel = ranker.to_linear_model()
    steps = [step for _, step in before if not _passes(step)]
    coef = _through(steps, record.coef)
    names = record.feature_names if not steps else _names_of(steps[0])
    return replace(record, coef=coef, feature_names=names, scale=None)


def _in_a_row(model: Pipeline, inside: str = "") -> Steps:
    """Return the steps up to the ranker, which may be the last one of a pipeline at the end."""
    *before, (name, last) = [(f"{inside}{name}", step) for name, step in model.steps]
    return [
        *before,
        *(_in_a_row(last, f"{name}.") if isinstance(last, Pipeline) else [(name, last)]),
    ]


def _check_foldable(before: Steps, name: str, ranker: Any) -> None:
    """Name every step that is not linear."""
    found = [
        f"{place} ({type(step).__name__}: {why})"
        for place, step in _all_steps(before)
        if (why := _obstacle(step)) is not None
    ]
    if not isinstance(ranker, LinearRanker):
        found.append(f"{name} ({type(ranker).__name__}: it has no linear weights)")
    if found:
        raise ValueError(
            f"the pipeline is no linear model of its features, because of {', '.join(found)}; "
            "leave out or replace what is named."
        )


def _all_steps(steps: Any, inside: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the steps that transform, also those inside of others, by their names."""
    for name, step in steps:
        place = f"{inside}{name}"
        if isinstance(step, Pipeline):
            yield from _all_steps(step.steps, f"{place}.")
        elif isinstance(step, ColumnTransformer):
            yield from _all_steps(_steps_of_columns(step), f"{place}.")
        else:
            yield place, step


def _steps_of_columns(step: ColumnTransformer) -> Steps:
    """Return the transformers, but for those that were given no column."""
    if not hasattr(step, "transformers_"):
        return [(name, one) for name, one, _ in step.transformers]
    columns = step._transformer_to_input_indices
    return [(name, one) for name, one, _ in step.transformers_ if len(columns[name])]


def _obstacle(step: Any) -> str | None:
    """Return why a step cannot be folded, if it cannot."""
    if _passes(step) or _drops(step):
        return None
    if isinstance(step, QueryScaler):
        return "what it does depends on the other documents of the query"
    if getattr(step, "clip", False):
        return "clip=True bounds the features"
    if isinstance(step, FunctionTransformer):
        return "nobody knows what the function does"
    known: Any = next(base for base in type(step).__mro__ if base in _fold.registry)
    if known is object:
        return "it is not known to be linear"
    if type(step).transform is not known.transform:
        return f"its transform is not that of {known.__name__}"
    return None


def _passes(step: Any) -> bool:
    """Tell whether a step leaves features as they are."""
    if isinstance(step, FunctionTransformer):
        return step.func is None
    return step is None or (isinstance(step, str) and step == "passthrough")


def _drops(step: Any) -> bool:
    """Tell whether a step leaves features out."""
    return isinstance(step, str) and step == "drop"


def _through(steps: list[Any], weights: Floats) -> Floats:
    """Return the weights of what goes into the first step, from those of what the last makes."""
    for step in reversed(steps):
        if not _passes(step):
            weights = _fold(step, weights)
    return weights


@singledispatch
def _fold(step: Any, weights: Floats) -> Floats:
    """Return Aᵀv for the weights v of Ax + b."""
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
    return _spread(weights, step.get_support(indices=True), step.n_features_in_)


@_fold.register
def _(step: ColumnTransformer, weights: Floats) -> Floats:
    result = np.zeros(step.n_features_in_)
    factors = step.transformer_weights or {}
    for name, inner, _columns in step.transformers_:
        # As numbers, whether they were given as names, slices, masks or a function.
        columns = step._transformer_to_input_indices[name]
        if len(columns) == 0 or _drops(inner):
            continue
        own = weights[step.output_indices_[name]] * factors.get(name, 1.0)
        result += _spread(_through([inner], own), columns, result.size)
    return result


def _spread(weights: Floats, columns: Any, n_features: int) -> Floats:
    """Return weights of some columns as weights of all; a column may be there twice."""
    result = np.zeros(n_features)
    np.add.at(result, np.asarray(columns, dtype=np.int64), weights)
    return result


def _names_of(step: Any) -> list[str] | None:
    """Return the names of the features that a step was fitted to."""
    if isinstance(step, Pipeline):
        inner = [one for _, one in step.steps if not _passes(one)]
        return _names_of(inner[0]) if inner else None
    names = getattr(step, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
