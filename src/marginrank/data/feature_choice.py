"""Conversion of parameters that list features (such as monotonic_cst) to column numbers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from marginrank._utils.feature_names import column_of_name, name_of
from marginrank._utils.parameters import Mention, ParameterError, Wording, given

Feature = int | str
MONOTONIC = "monotonic_cst"  # name of the parameter
FROM_DTYPE = "from_dtype"  # value that selects the categorical columns of a data frame


def chosen_columns(
    parameter: str, chosen: Any, names: Sequence[str] | None, n_features: int
) -> list[int]:
    """Return the column numbers that a parameter selects by names, numbers or a boolean mask."""
    features = check_listed_features(parameter, chosen)
    if features and isinstance(features[0], bool):
        _check_length(parameter, chosen, len(features), n_features)
        return np.flatnonzero(features).tolist()
    return [column_of(parameter, one, names, n_features) for one in features]


def check_listed_features(parameter: str, chosen: Any) -> list[Feature]:
    """Convert a selection of features to a list of names and column numbers, or of booleans.

    `chosen` is the value of a parameter such as `categorical_features`. Text such as "bm25,age" is
    split at commas. None and "from_dtype" become an empty list. Raise ParameterError if the value
    does not select features.
    """
    if chosen is None or (isinstance(chosen, str) and chosen == FROM_DTYPE):
        return []
    if isinstance(chosen, str):
        return [name.strip() for name in chosen.split(",")]
    try:
        listed = list(chosen)
        if listed and all(isinstance(one, bool | np.bool_) for one in listed):
            return [bool(one) for one in listed]
        return [one if isinstance(one, str) else _whole(one) for one in listed]
    except (TypeError, ValueError):
        raise ParameterError(
            given(parameter, chosen),
            " must be ",
            Wording(
                "a list of names or column numbers, or a boolean mask",
                "names or numbers of features",
            ),
            ".",
        ) from None


def _whole(number: Any) -> int:
    if isinstance(number, bool | np.bool_) or int(number) != number:
        raise ValueError
    return int(number)


def _check_length(parameter: str, chosen: Any, length: int, n_features: int) -> None:
    if length != n_features:
        raise ParameterError(
            given(parameter, chosen),
            f" has {length} entries for {n_features} features; pass one entry per feature.",
        )


def column_of(
    parameter: str, feature: Feature, names: Sequence[str] | None, n_features: int
) -> int:
    """Return the column number (from 0) of a feature that is given by its number or name.

    If features have no names, "f39" and "39" mean column 38, because LETOR text numbers features
    from 1.
    """
    if isinstance(feature, str):
        if names is not None:
            column = names.index(feature) if feature in names else -1
        else:
            column = column_of_name(feature)
    else:
        column = feature
    if not 0 <= column < n_features:
        raise ParameterError(
            Mention(parameter, repr(feature)),
            f" is not one of the {n_features} features, which have names such as "
            f"{name_of(0, names)!r}.",
        )
    return column


def directions(chosen: Any) -> dict[Feature, int]:
    """Convert `monotonic_cst` to {feature name or column number: 1 (increasing), −1 (decreasing)}.

    `chosen` is the value of the parameter: a mapping, an array with one sign per feature, or text
    such as "bm25:+1,age:-1". Features with sign 0 are omitted.
    """
    try:
        pairs = [(k if isinstance(k, str) else _whole(k), _whole(s)) for k, s in _pairs(chosen)]
        signs = dict(pairs)
        if any(sign not in (-1, 0, 1) for sign in signs.values()):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            given(MONOTONIC, chosen),
            " must ",
            Wording(
                "map names or column numbers to +1 or -1, as {'bm25': 1}, or have -1, 0 or +1 for "
                "each feature.",
                "list names or numbers of features with +1 or -1, as in bm25:+1.",
            ),
        ) from None
    if len(signs) < len(pairs):
        raise ParameterError(given(MONOTONIC, chosen), " lists a feature twice; drop one.")
    return {feature: sign for feature, sign in signs.items() if sign}


def _pairs(chosen: Any) -> list[tuple[Any, Any]]:
    if chosen is None:
        return []
    if isinstance(chosen, Mapping):
        return list(chosen.items())
    if not isinstance(chosen, str):
        return list(enumerate(chosen))
    parts = [one.rsplit(":", 1) for one in chosen.split(",")]
    return [(name.strip(), int(sign)) for name, sign in parts]


def signs_of(
    chosen: Any, names: Sequence[str] | None, n_features: int, categorical: Collection[int] = ()
) -> dict[int, int]:
    """Convert `monotonic_cst` to {column number: 1 (increasing) or −1 (decreasing)}."""
    if not (chosen is None or isinstance(chosen, str | Mapping)):
        _check_length(MONOTONIC, chosen, len(chosen), n_features)
    signs: dict[int, int] = {}
    for feature, sign in directions(chosen).items():
        column = column_of(MONOTONIC, feature, names, n_features)
        if column in categorical:
            raise ParameterError(
                Mention(MONOTONIC, repr(feature)), " is categorical, so it cannot be monotone."
            )
        if signs.setdefault(column, sign) != sign:
            raise ParameterError(
                Mention(MONOTONIC, repr(feature)), " is listed with both signs; keep one."
            )
    return signs
