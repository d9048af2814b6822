"""Arguments of estimators: unknown keywords, columns given by name, tensors, labels and pairs."""

import difflib
import functools
import inspect
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

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
from marginrank.data.pair_lists import check_pairs
from marginrank.data.ranking_data import as_ranking_data
from marginrank.data.validation import as_matrix, check_features, check_not_lazy, columns_of
from marginrank.fit.inputs import check_propensity, is_path
from marginrank.models.parameters import NO_FLOAT64

# Hints for keywords of other libraries, and of other estimators of this library.
HINTS = {
    "fit": {
        "groups": "pass query ids as qid=, or sizes of contiguous queries as group=",
        "query_id": "pass query ids as qid=",
        **dict.fromkeys(
            ("eval_set", "eval_qid", "eval_group"),
            "this fit does not use validation data; SGDRankSVM.fit does",
        ),
    },
    "__init__": {
        "objective": 'pass pair_cost="ndcg" to weight pairs by NDCG, or fit the estimator without '
        "CV in its name with objective= and best_params_",
        "kernel": "use KernelRankSVM",
        "device": "it always computes on the CPU; RankSVM, SparseRankSVM, KernelRankSVM, RankSVMCV "
        "and SparseRankSVMCV have device=",
        "metric": "pass scoring= to an estimator that has it, such as RankSVMCV",
    },
}


class KeywordArguments:
    """Mixin for estimators: constructors store arguments, and unknown keywords raise with a hint.

    As scikit-learn requires, arguments become attributes of the same name, unchanged. An unknown
    keyword of the constructor or of fit raises TypeError. In notebooks, the HTML representation of
    scikit-learn links to the reference page of the class if the package's metadata has a URL named
    Documentation.
    """

    _doc_link_module = "marginrank"

    @property
    def _doc_link_template(self) -> str:
        try:
            urls = metadata("marginrank").get_all("Project-URL", [])
        except PackageNotFoundError:  # the package is not installed
            urls = []
        for url in urls:
            name, _, place = url.partition(", ")
            if name == "Documentation":
                return f"{place.rstrip('/')}/reference/api/marginrank.{{estimator_name}}.html"
        return ""  # without a link

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wrap the methods that the class defines."""
        super().__init_subclass__(**kwargs)
        for name in HINTS.keys() & vars(cls).keys():
            setattr(cls, name, _wrapped(vars(cls)[name]))


def _wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    signature, called = inspect.signature(method), method.__name__
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds:  # a subclass that forwards any keyword
        return method
    known = {name.lower(): name for name in signature.parameters if name != "self"}

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - known.values():
            matches = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
            hint = f"; did you mean {known[matches[0]]!r}?" if matches else "."
            if name in HINTS[called]:
                hint = f"; {HINTS[called][name]}."
            where = type(self).__name__ + ("" if called == "__init__" else f".{called}")
            raise TypeError(f"{where}() got an unexpected keyword argument {name!r}{hint}")
        if called == "__init__":
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            vars(self).update(list(bound.arguments.items())[1:])  # all arguments except `self`
        return method(self, *args, **kwargs)

    return checked


def training_data(
    X: Any, y: Any = None, *, n_jobs: int | None, allow_nan: bool = False, **given: Any
) -> RankingData:
    """Validate the arguments of ``fit`` and return them as a RankingData.

    A RankingData is returned unchanged. `given` are queries and weights. Tensors are copied to the
    host. Names of columns of a data frame X are replaced by the columns, which are then not
    features.
    """
    X, values = take_columns(X, y=y, **given)
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
    """Return X and the arguments of a fit, with arguments that name a column of X replaced by it.

    With ``y="label"``, for example, y becomes this column of the data frame X, and the returned X
    does not have it.
    """
    named = {role: value for role, value in values.items() if isinstance(value, str)}
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


def remember_columns(estimator: BaseEstimator, *values: Any) -> None:
    """Store the names of columns of X that are not features (y, qid, …), for later predictions."""
    estimator.__dict__.pop("_columns", None)
    columns = {value for value in values if isinstance(value, str)}
    if columns:
        estimator._columns = columns


def without_used_columns(estimator: BaseEstimator, X: Any) -> Any:
    """Return X without the columns that were passed to fit by name, if X is a data frame."""
    used: set[str] = getattr(estimator, "_columns", set())
    return without_columns(X, used) if used and hasattr(X, "columns") else X


def column_names(X: Any) -> Any:
    """Return the column names that scikit-learn finds in X, or None."""
    seen = BaseEstimator()
    validate_data(seen, X, skip_check_array=True)
    return getattr(seen, "feature_names_in_", None)


def features_of(data: Any) -> dict[str, Any]:
    """Return the fitted attributes that describe features, such as ``n_features_in_``, by name.

    They include the size of the largest query. An estimator sets them together with its weights, by
    :func:`set_features`: if a fit fails, both remain unchanged.
    """
    features: dict[str, Any] = {"n_features_in_": data.n_features}
    if data.feature_names is not None:
        features["feature_names_in_"] = np.array(data.feature_names, dtype=object)
    queries = getattr(data, "queries", None)
    if queries is not None and queries.n_queries > 1:
        features["_largest_query"] = int(queries.sizes.max())
    return features


def one_query_if_forgotten(
    estimator: Any, n_documents: int, qid: ArrayLike | None, group: ArrayLike | None
) -> ArrayLike | None:
    """Return `group`, or one query of all documents with a warning if queries were forgotten.

    Queries were probably forgotten if neither `qid` nor `group` is given, `fit` got queries, and
    there are more documents than in the largest of these queries.
    """
    largest = getattr(estimator, "_largest_query", None)
    if qid is not None or group is not None or largest is None or n_documents <= largest:
        return group
    warn_caller(
        "The model was fitted with queries, but got none here, so all documents count as one "
        "query. Pass qid, or group=[n_documents] if they are one query; in scikit-learn's searches "
        "call sklearn.set_config(enable_metadata_routing=True) and pass qid to their fit."
    )
    return [n_documents]


def set_features(estimator: BaseEstimator, features: dict[str, Any]) -> None:
    """Replace the attributes of an estimator that describe features, such as ``n_features_in_``."""
    for name in ("feature_names_in_", "_largest_query"):
        estimator.__dict__.pop(name, None)
    estimator.__dict__.update(features)


def feature_names_of(estimator: BaseEstimator) -> list[str] | None:
    """Return the feature names of a fitted estimator as plain strings, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def documents_to_score(estimator: BaseEstimator, X: Any) -> tuple[Any, _core.Matrix]:
    """Return validated documents to predict, as an array or CSR and as a native matrix.

    Raise ValueError if the number or the names of the features differ from the fit.
    """
    if isinstance(X, RankingData):
        check_features_of_fit(estimator, X)
        return X.X, X.matrix
    X = without_used_columns(estimator, on_host(X, "X"))
    checked = check_features(X)
    check_features_of_fit(estimator, X)
    return checked, as_matrix(checked)


def check_features_of_fit(estimator: BaseEstimator, X: Any) -> None:
    """Raise ValueError if X does not have the features that the estimator was fitted to."""
    X = without_used_columns(estimator, X)
    given = _names_only_we_see(X)
    expected = feature_names_of(estimator)
    if given is None or expected is None:
        matrix = X.X if isinstance(X, RankingData) else X
        validate_data(estimator, matrix, skip_check_array=True, reset=False)
    elif len(given) != len(expected):
        raise ValueError(
            f"the data has {len(given)} features, but the fit had {len(expected)}; pass the "
            "features of the fit."
        )
    else:
        check_same_names(given, expected, "the data", "the fit")


def _names_only_we_see(X: Any) -> list[str] | None:
    """Return feature names that only marginrank finds in X, and scikit-learn does not, or None."""
    if isinstance(X, RankingData):
        return X.feature_names
    names = columns_of(X)  # scikit-learn before 1.9 does not see the names of polars 2
    return names if names is not None and column_names(X) is None else None


def pair_options(
    data: RankingData,
    pairs: Any = None,
    pair_weight: Any = None,
    pair_margin: Any = None,
    propensity: Any = None,
    monotonic_position: bool = False,
) -> dict[str, Any]:
    """Validate the arguments of fit about pairs, propensities and effects of positions.

    Return them by name, without arguments that are None or False.
    """
    for name, value in {"pair_weight": pair_weight, "pair_margin": pair_margin}.items():
        if pairs is None and value is not None:
            raise ValueError(f"{name} requires pairs; pass both or neither.")
    options: dict[str, Any] = {}
    if pairs is not None:
        options["pairs"] = check_pairs(pairs, pair_weight, data.n_documents, pair_margin)
    if propensity is not None:
        options["propensity"] = check_propensity(propensity, data.n_documents)
    if monotonic_position:
        options["monotonic_position"] = True
    return options


def labels_or_zeros(
    pairs: Any, X: Any, y: ArrayLike | None, qid: ArrayLike | None, group: ArrayLike | None
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return the labels and the query sizes of a fit, with defaults for a fit to listed pairs.

    With `pairs`, labels are not used and become zeros; without queries, all documents are one
    query.
    """
    if pairs is None or isinstance(X, RankingData) or is_path(X) or isinstance(y, str):
        return y, group
    shape: tuple[int, ...] = getattr(X, "shape", ())  # X is validated by the fit
    n = shape[0] if len(shape) == 2 else check_features(X, missing=True).shape[0]
    return np.zeros(n), [n] if qid is None and group is None else group


def is_tensor(values: Any) -> bool:
    """Return True if `values` is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any, name: str) -> Any:
    """Convert a PyTorch tensor to an array or CSR matrix; return anything else unchanged.

    Memory of a CPU tensor is shared, unless the tensor is a negated or conjugated view.
    """
    if not is_tensor(values):
        return values
    check_tensor(values, name)
    here = values.cpu()
    if here.layout == sys.modules["torch"].sparse_csr:
        parts = here.values().resolve_neg(), here.col_indices(), here.crow_indices()
        return sp.csr_array(tuple(np.asarray(part) for part in parts), shape=tuple(here.shape))
    return here.resolve_neg().resolve_conj().numpy()


def check_tensor(values: Any, name: str) -> None:
    """Raise ValueError if a PyTorch tensor has an unsupported device, dtype or layout."""
    torch: Any = sys.modules["torch"]
    message = None
    if values.device.type == NO_FLOAT64:
        message = f"is on {NO_FLOAT64}, which does not support float64; pass {name}.cpu()."
    elif values.device.type == "meta":
        message = "is a meta tensor without data; pass a tensor with data."
    elif values.requires_grad:
        message = f"requires grad, but fits are not differentiable; pass {name}.detach()."
    elif values.dtype in (torch.float16, torch.bfloat16):
        message = f"has dtype {values.dtype}, which is not supported; pass {name}.float()."
    elif values.layout not in (torch.strided, torch.sparse_csr):
        message = (
            f"has layout {values.layout}, which is not supported; pass {name}.to_sparse_csr() or "
            f"{name}.to_dense()."
        )
    elif values.layout == torch.strided and not values.is_contiguous():
        message = f"is not contiguous in memory; pass {name}.contiguous()."
    if message is not None:
        raise ValueError(f"{name} {message}")


def check_same_device(**given: Any) -> None:
    """Raise ValueError if PyTorch tensors are on different devices; arrays may be on any."""
    devices = {name: str(value.device) for name, value in given.items() if is_tensor(value)}
    for name, device in devices.items():
        first = next(iter(devices))
        if device != devices[first]:
            raise ValueError(
                f"{first} is on {devices[first]} and {name} on {device}; move all tensors to one "
                "device."
            )
