"""What estimators are given: a matrix with all that belongs to it, or a RankingData."""

import sys
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from marginrank import _core
from marginrank._utils.user_warnings import warn_caller
from marginrank.data import RankingData
from marginrank.data.frames import split_columns, without_columns
from marginrank.data.held_out import check_same_names
from marginrank.data.pair_lists import PairList, check_pairs
from marginrank.data.ranking_data import as_ranking_data, columns_of
from marginrank.data.validation import as_matrix, check_features, check_not_lazy
from marginrank.fit.inputs import is_path
from marginrank.models.parameters import NO_FLOAT64


def training_data(
    X: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    *,
    allow_nan: bool = False,
    n_jobs: int | None,
) -> RankingData:
    """Return what a fit was given, checked and grouped; a RankingData as it is.

    Tensors come to the host. Names of columns stand for the columns of a data frame X, which are
    then not features.
    """
    X, values = take_columns(
        X,
        y=y,
        qid=qid,
        group=group,
        sample_weight=sample_weight,
        query_weight=query_weight,
    )
    check_same_device(X=X, **values)
    X = on_host(X, "X")
    return as_ranking_data(
        X,
        **{name: on_host(value, name) for name, value in values.items()},
        feature_names=None if isinstance(X, RankingData) else column_names(X),
        allow_nan=allow_nan,
        n_jobs=n_jobs,
    )


def take_columns(X: Any, **values: Any) -> tuple[Any, dict[str, Any]]:
    """Replace names of columns by the columns of a data frame X, and drop these from X."""
    named = named_columns(**values)
    if not named or isinstance(X, RankingData):
        return X, values
    if not hasattr(X, "columns"):
        role, name = next(iter(named.items()))
        raise TypeError(
            f"{role}={name!r} names a column, but X is a {type(X).__name__} without columns. Pass "
            f"a data frame as X, or an array as {role}."
        )
    check_not_lazy(X, "X")
    X, columns = split_columns(X, named)
    return X, values | columns


def named_columns(**values: Any) -> dict[str, str]:
    """Return the arguments of a fit that are names of columns."""
    return {role: value for role, value in values.items() if isinstance(value, str)}


def remember_columns(estimator: BaseEstimator, *values: Any) -> None:
    """Remember the columns that a fit was given by name, so that frames to score may have them."""
    estimator.__dict__.pop("_columns", None)
    columns = {value for value in values if isinstance(value, str)}
    if columns:
        estimator._columns = columns


def without_used_columns(estimator: BaseEstimator, X: Any) -> Any:
    """Return X without the columns that the fit was given by name, if X is a data frame."""
    used: set[str] = getattr(estimator, "_columns", set())
    return without_columns(X, used) if used and hasattr(X, "columns") else X


def column_names(X: Any) -> Any:
    """Return the names that scikit-learn finds in X, or None."""
    seen = BaseEstimator()
    validate_data(seen, X, skip_check_array=True)
    return getattr(seen, "feature_names_in_", None)


class FeatureInfo(Protocol):
    """What knows how many features there are, and perhaps their names."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features."""


def features_of(data: FeatureInfo) -> dict[str, Any]:
    """Return the attributes in which scikit-learn keeps number and names of the features.

    An estimator gets them together with its weights, by :func:`set_features`: if a fit fails, both
    are still those of the last one.
    """
    features: dict[str, Any] = {"n_features_in_": data.n_features, **queries_of(data)}
    if data.feature_names is not None:
        features["feature_names_in_"] = np.array(data.feature_names, dtype=object)
    return features


def queries_of(data: Any) -> dict[str, int]:
    """Return the attribute that holds the size of the largest query, if there are several."""
    queries = getattr(data, "queries", None)
    if queries is None or queries.n_queries < 2:
        return {}
    return {"_largest_query": int(queries.sizes.max())}


def one_query_if_forgotten(
    estimator: Any, n_documents: int, qid: ArrayLike | None, group: ArrayLike | None
) -> ArrayLike | None:
    """Return `group`; if the queries seem forgotten, warn and return one query.

    They do if the fit had several queries, and none was as large as all documents.
    """
    largest = getattr(estimator, "_largest_query", None)
    if qid is not None or group is not None or largest is None or n_documents <= largest:
        return group
    warn_caller(
        "The model was fitted with queries, but none are given here, so all documents count as one "
        "query. Pass qid, or group=[n_documents] if they are one query; in scikit-learn's searches "
        "call sklearn.set_config(enable_metadata_routing=True) and pass qid to their fit."
    )
    return [n_documents]


def set_features(estimator: BaseEstimator, features: dict[str, Any]) -> None:
    """Replace the features of an estimator, and forget names if there are none now."""
    for name in ("feature_names_in_", "_largest_query"):
        estimator.__dict__.pop(name, None)
    estimator.__dict__.update(features)


def feature_names_of(estimator: BaseEstimator) -> list[str] | None:
    """Return the names of the features as plain strings."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def documents_to_score(estimator: BaseEstimator, X: Any) -> tuple[Any, _core.Matrix]:
    """Return checked documents, also as the kernels take them.

    Other features than those of the fit are refused, by number and by name.
    """
    if isinstance(X, RankingData):
        check_features_of_fit(estimator, X)
        return X.X, X.matrix
    X = without_used_columns(estimator, on_host(X, "X"))
    checked = check_features(X)
    check_features_of_fit(estimator, X)
    return checked, as_matrix(checked)


def check_features_of_fit(estimator: BaseEstimator, X: Any) -> None:
    """Raise ValueError for documents that do not have the features of the fit."""
    X = without_used_columns(estimator, X)
    given = _names_only_we_see(X)
    expected = feature_names_of(estimator)
    if given is None or expected is None:
        matrix = X.X if isinstance(X, RankingData) else X
        validate_data(estimator, matrix, skip_check_array=True, reset=False)
    elif len(given) != len(expected):
        raise ValueError(
            f"the data has {len(given)} features, but the fit had {len(expected)}; give those."
        )
    else:
        check_same_names(given, expected, "the data", "the fit")


def _names_only_we_see(X: Any) -> list[str] | None:
    """Return names of features that scikit-learn would not compare, or None.

    Those of a RankingData; before scikit-learn 1.9 also those of frames of polars 2.
    """
    if isinstance(X, RankingData):
        return X.feature_names
    names = columns_of(X)
    return names if names is not None and column_names(X) is None else None


def check_listed(pairs: Any, pair_weight: ArrayLike | None, n_documents: int) -> PairList | None:
    """Return the pairs that a fit was given; None if labels make them."""
    if pairs is not None:
        return check_pairs(pairs, pair_weight, n_documents)
    if pair_weight is not None:
        raise ValueError("pair_weight is given, but no pairs; give both or neither.")
    return None


def labels_beside(
    pairs: Any, X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return the labels and group sizes that a fit was given.

    Where pairs stand for labels, the labels are zeros; without queries, all documents are one.
    """
    if pairs is None or isinstance(X, RankingData) or is_path(X) or isinstance(y, str):
        return y, group
    shape: tuple[int, ...] = getattr(X, "shape", ())  # the fit checks X itself
    n = shape[0] if len(shape) == 2 else check_features(X, missing=True).shape[0]
    return np.zeros(n), [n] if qid is None and group is None else group


def is_tensor(values: Any) -> bool:
    """Whether this is a tensor of PyTorch, which is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any, name: str) -> Any:
    """Return a tensor as an array, or as CSR; anything else as it is.

    The memory of a tensor on the CPU is shared. It is copied from elsewhere, or if the tensor is
    the negative or the conjugate of its memory.
    """
    if not is_tensor(values):
        return values
    check_tensor(values, name)
    here = values.cpu()
    if here.layout == _torch().sparse_csr:
        parts = here.values().resolve_neg(), here.col_indices(), here.crow_indices()
        return sp.csr_array(tuple(np.asarray(part) for part in parts), shape=tuple(here.shape))
    return here.resolve_neg().resolve_conj().numpy()


def check_tensor(values: Any, name: str) -> None:
    """Raise ValueError for a tensor that cannot be computed with as it is."""
    torch = _torch()
    if values.device.type == NO_FLOAT64:
        raise ValueError(
            f"{name} is on {NO_FLOAT64}, which has no float64 to sum in; give {name}.cpu()."
        )
    if values.device.type == "meta":
        raise ValueError(f"{name} is a meta tensor without data; give one with values.")
    if values.requires_grad:
        raise ValueError(
            f"{name} requires grad, and a fit has no backward pass; give {name}.detach()."
        )
    if values.dtype in (torch.float16, torch.bfloat16):
        raise ValueError(
            f"{name} has dtype {values.dtype}, which is not supported; pass {name}.float()."
        )
    if values.layout not in (torch.strided, torch.sparse_csr):
        raise ValueError(
            f"{name} has the layout {values.layout}; give {name}.to_sparse_csr() or "
            f"{name}.to_dense()."
        )
    if values.layout == torch.strided and not values.is_contiguous():
        raise ValueError(f"{name} is not contiguous in memory; give {name}.contiguous().")


def check_same_device(**given: Any) -> None:
    """Raise ValueError for tensors on several devices; arrays go with any."""
    places = {name: str(value.device) for name, value in given.items() if is_tensor(value)}
    for name, place in places.items():
        first = next(iter(places))
        if place != places[first]:
            raise ValueError(
                f"{first} is on {places[first]} and {name} on {place}; bring all tensors to one "
                "device."
            )


def _torch() -> Any:
    return sys.modules["torch"]


def tensor_or_none(X: Any) -> Any:
    """Return X if it is a tensor, which a fit may use where it is."""
    return X if is_tensor(X) else None
