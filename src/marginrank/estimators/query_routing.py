"""Passing of queries to estimators of any library: as qid or group, and through pipelines.

Steps of pipelines and searches get queries by scikit-learn's metadata routing, which is enabled
during the call only. Metadata requests that a step has set itself are respected.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

from marginrank._utils.types import Floats, Integers

# Names of parameters for query ids, in order of preference. LightGBM has SIZES instead.
IDS = ("qid", "group_id")
SIZES = "group"
WEIGHTS = ("sample_weight", "query_weight")
SPLITTERS = "groups"  # name of the queries for cross-validation splitters inside the estimator


def takes_queries(estimator: Any) -> bool:
    """Return True if ``fit`` of an estimator or of one of its steps has a query parameter."""
    with config_context(enable_metadata_routing=True):
        return bool(_wanted(estimator, "fit", {*IDS, SIZES}))


def request_queries(estimator: Any) -> None:
    """Set metadata requests for queries and weights in all steps of an estimator, in place."""
    steps = [estimator]
    if hasattr(estimator, "get_params"):
        values = estimator.get_params(deep=True).values()
        steps += [step for step in values if hasattr(step, "fit") and not isinstance(step, type)]
    with config_context(enable_metadata_routing=True):
        for step in steps:
            for method in ("fit", "transform", "predict"):
                _request(step, method)


def fit_with_queries(
    estimator: Any, X: Any, y: Any, qid: Integers, weights: Mapping[str, Floats]
) -> None:
    """Fit an estimator of any library, and pass it the queries and weights that it takes.

    If it takes queries, the documents must be sorted by query.
    """
    offered: dict[str, Any] = {**dict.fromkeys((*IDS, SPLITTERS), qid), **weights}
    offered[SIZES] = np.unique(qid, return_counts=True)[1]
    with config_context(enable_metadata_routing=True):
        wanted = _wanted(estimator, "fit", set(offered))
        for name in weights:
            if name not in wanted:
                raise ValueError(
                    f"{name} is not supported by fit of {type(estimator).__name__}, or not "
                    f"requested with set_fit_request. Request it, or do not pass {name}."
                )
        estimator.fit(X, y, **{name: offered[name] for name in wanted})


def score_documents(estimator: Any, X: Any, qid: Integers) -> Floats:
    """Return the scores of documents by a fitted estimator of any library.

    For a classifier, the score is the decision function if there are two classes, and the expected
    label if there are more. For other estimators, it is the prediction.
    """
    method = _scoring_method(estimator)
    with config_context(enable_metadata_routing=True):
        metadata = {name: qid for name in _wanted(estimator, method, set(IDS))}
        values = np.asarray(getattr(estimator, method)(X, **metadata), dtype=np.float64)
    if method == "predict_proba":
        values = values @ np.asarray(estimator.classes_, dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(
            f"{method} of {type(estimator).__name__} returned an array of shape {values.shape}. "
            "Use an estimator that returns one score per document."
        )
    return values


def _scoring_method(estimator: Any) -> str:
    methods = ("predict", "decision_function")
    classes = getattr(estimator, "classes_", None)
    if classes is not None:  # most documents would be tied if classes were used as scores
        methods = ("decision_function", "predict_proba")
        if len(classes) > 2:
            methods = ("predict_proba", "decision_function")
    for method in methods:
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"{type(estimator).__name__} has no method {' or '.join(methods)}, which is needed to rank "
        "documents."
    )


def _wanted(estimator: Any, method: str, names: set[str]) -> set[str]:
    """Return the subset of `names` that a method takes, with at most one form of the queries."""
    routing = get_routing_for_object(estimator)
    if isinstance(routing, MetadataRouter):
        # Each step requests one form of the queries (ids or sizes), so both forms are offered.
        return set(routing.consumes(method, names))
    found = names & _parameters(estimator, method)
    for preferred in IDS:
        if preferred in found:
            return found - {*IDS, SIZES} | {preferred}
    return found


def _parameters(estimator: Any, method: str) -> set[str]:
    function = getattr(estimator, method, None)
    return set() if function is None else set(inspect.signature(function).parameters)


def _request(step: Any, method: str) -> None:
    """Set metadata requests for queries and weights of a method, unless the step has set them."""
    request = getattr(step, f"set_{method}_request", None)
    routing = get_routing_for_object(step)
    # Meta-estimators have no requests of their own: they collect the requests of their steps.
    if request is None or isinstance(routing, MetadataRouter):
        return
    own = getattr(routing, method).requests
    taken = _parameters(step, method)
    forms = [name for name in (*IDS, SIZES) if name in taken]
    asked = {name: name == forms[0] for name in forms}
    # Only predictors get weights: scalers take weights too, but these weights are for the loss.
    asked |= {name: hasattr(step, "predict") for name in WEIGHTS if name in taken}
    unset = {name: value for name, value in asked.items() if own.get(name) is None}
    if unset:
        request(**unset)
