"""How estimators of any library are told of queries: by what names, and through which steps.

Metadata routing of scikit-learn is used where an estimator is made of others. It is switched on for
the call only, and what a step says of qid itself is respected.
"""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.utils.metadata_routing import MetadataRouter, get_routing_for_object

from marginrank._utils.types import Floats, Integers

# Names under which fits take a number for each document, in the order of preference. LightGBM takes
# sizes of queries instead.
IDS = ("qid", "group_id")
SIZES = "group"
WEIGHTS = ("sample_weight", "query_weight")
SPLITTERS = "groups"  # of a search inside


def sorted_by_query(query_of_row: Integers, rows: Integers) -> Integers:
    """Return rows query by query, as LightGBM and XGBoost want them."""
    return rows[np.argsort(query_of_row[rows], kind="stable")]


def asks_for_queries(estimator: Any) -> bool:
    """Tell whether fit of an estimator, or of one of its steps, takes queries."""
    with config_context(enable_metadata_routing=True):
        return bool(_wanted(estimator, "fit", {*IDS, SIZES}))


def request_queries(estimator: Any) -> None:
    """Let the steps of an estimator have queries and weights, unless they say otherwise.

    The estimator is changed: give a clone.
    """
    with config_context(enable_metadata_routing=True):
        for step in _steps(estimator):
            for method in ("fit", "transform", "predict"):
                _request(step, method)


def fit(estimator: Any, X: Any, y: Any, qid: Integers, weights: Mapping[str, Floats]) -> None:
    """Fit an estimator to documents that are sorted by query if it asks for queries."""
    offered: dict[str, Any] = {**dict.fromkeys((*IDS, SPLITTERS), qid), **weights}
    offered[SIZES] = np.unique(qid, return_counts=True)[1]
    with config_context(enable_metadata_routing=True):
        wanted = _wanted(estimator, "fit", set(offered))
        for name in weights:
            if name not in wanted:
                raise ValueError(
                    f"{name} was given, which fit of {type(estimator).__name__} does not take, or "
                    "does not ask for by set_fit_request; leave it out."
                )
        estimator.fit(X, y, **{name: offered[name] for name in wanted})


def scores(estimator: Any, X: Any, qid: Integers) -> Floats:
    """Return the scores of documents: from predict, or the expected label of a classifier."""
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
            f"{method} of {type(estimator).__name__} has the shape {values.shape}, but a score is "
            "one number a document; use an estimator that gives that."
        )
    return values


def _scoring_method(estimator: Any) -> str:
    """Return the method that tells documents apart: classes alone leave most of them tied."""
    methods = ("predict", "decision_function")
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        methods = ("decision_function", "predict_proba")
        if len(classes) > 2:
            methods = ("predict_proba", "decision_function")
    for method in methods:
        if hasattr(estimator, method):
            return method
    raise ValueError(f"{type(estimator).__name__} has no {' or '.join(methods)} to rank by.")


def _wanted(estimator: Any, method: str, names: set[str]) -> set[str]:
    """Return those of the names that a method takes, and only one of the forms of queries."""
    found = _taken(estimator, method, names)
    if isinstance(_routing(estimator), MetadataRouter):
        return found  # its steps have asked for one form each
    for preferred in IDS:
        if preferred in found:
            return found - {*IDS, SIZES} | {preferred}
    return found


def _taken(estimator: Any, method: str, names: set[str]) -> set[str]:
    routing = _routing(estimator)
    if isinstance(routing, MetadataRouter):
        consumed: set[str] = set(routing.consumes(method, names))
        return consumed
    return names & _parameters(estimator, method)


def _routing(estimator: Any) -> Any:
    return get_routing_for_object(estimator)


def _parameters(estimator: Any, method: str) -> set[str]:
    """Return the names that a method of an estimator takes."""
    function = getattr(estimator, method, None)
    return set() if function is None else set(inspect.signature(function).parameters)


def _steps(estimator: Any) -> Iterator[Any]:
    """Return an estimator and those that it is made of."""
    yield estimator
    if hasattr(estimator, "get_params"):
        yield from (
            value
            for value in estimator.get_params(deep=True).values()
            if hasattr(value, "fit") and not isinstance(value, type)
        )


def _request(step: Any, method: str) -> None:
    """Ask for what a method of a step takes, where nobody has said whether it gets that."""
    request = getattr(step, f"set_{method}_request", None)
    routing = _routing(step)
    if request is None or isinstance(routing, MetadataRouter):
        return  # what is made of steps passes on what they ask for
    said = getattr(routing, method).requests
    taken = _parameters(step, method)
    forms = [name for name in (*IDS, SIZES) if name in taken]
    asked = {name: name == forms[0] for name in forms}
    # Scalers and the like take weights, too, but the weights are those of the loss.
    asked |= {name: hasattr(step, "predict") for name in WEIGHTS if name in taken}
    unsaid = {name: value for name, value in asked.items() if said.get(name) is None}
    if unsaid:
        request(**unsaid)
