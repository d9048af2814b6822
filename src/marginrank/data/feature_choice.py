"""Features that a parameter names: by name, or by number."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from marginrank._utils.feature_names import column_of_name, name_of
from marginrank._utils.parameters import Mention, ParameterError, Wording, given

Feature = int | str
MONOTONE = "monotone"  # the parameter


def check_features_chosen(parameter: str, chosen: Any) -> None:
    """Refuse what is no list of names and numbers."""
    listed(parameter, chosen)


def listed(parameter: str, chosen: Any) -> list[Feature]:
    """Return the names and numbers that a parameter lists, or has in a text with commas."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        return [name.strip() for name in chosen.split(",")]
    try:
        features = [one if isinstance(one, str) else whole(one) for one in chosen]
    except (TypeError, ValueError):
        raise ParameterError(
            given(parameter, chosen),
            " must be ",
            Wording("a list of names or column numbers", "names or numbers of features"),
            ".",
        ) from None
    return features


def whole(number: Any) -> int:
    """Return a number that has no fraction."""
    if isinstance(number, bool | np.bool_) or int(number) != number:
        raise ValueError
    return int(number)


def column_of(
    parameter: str, feature: Feature, names: Sequence[str] | None, n_features: int
) -> int:
    """Return the column of a feature.

    A number is that of a column, from 0. Text is a name; where features were given none, "f39" or
    "39" is the feature that has the number 39 in LETOR text, which counts from 1.
    """
    if isinstance(feature, str):
        if names is not None:
            column = names.index(feature) if feature in names else -1
        else:
            column = column_of_name(feature)
    else:
        column = feature
    if not 0 <= column < n_features:
        known = f"have names such as {name_of(0, names)!r}"
        raise ParameterError(
            Mention(parameter, repr(feature)),
            f" is none of the {n_features} features, which {known}; give one that is there.",
        )
    return column


def columns_of(
    parameter: str, chosen: Any, names: Sequence[str] | None, n_features: int
) -> list[int]:
    """Return the columns of all features that a parameter lists."""
    return [column_of(parameter, one, names, n_features) for one in listed(parameter, chosen)]


def check_monotone(chosen: Any) -> None:
    """Refuse what does not say of features whether they rise or fall."""
    directions(chosen)


def directions(chosen: Any) -> dict[Feature, int]:
    """Return features, by name or number, and 1 or −1: of a mapping, or of "bm25:+1,age:-1"."""
    try:
        pairs = [(k if isinstance(k, str) else whole(k), whole(s)) for k, s in _pairs(chosen)]
        signs = dict(pairs)
        if any(sign not in (1, -1) for sign in signs.values()):
            raise ValueError
    except (TypeError, ValueError):
        raise ParameterError(
            given(MONOTONE, chosen),
            " must ",
            Wording("map names or column numbers to", "give names or numbers of features"),
            " +1 or -1",
            Wording(', as {"bm25": 1}.', ", as bm25:+1."),
        ) from None
    if len(signs) < len(pairs):
        raise ParameterError(given(MONOTONE, chosen), " has a feature twice; give each once.")
    return signs


def _pairs(chosen: Any) -> list[tuple[Any, Any]]:
    if chosen is None:
        return []
    if isinstance(chosen, Mapping):
        return list(chosen.items())
    if not isinstance(chosen, str):
        raise TypeError
    parts = [one.rsplit(":", 1) for one in chosen.split(",")]
    return [(name.strip(), int(sign)) for name, sign in parts]


def signs_of(
    chosen: Any,
    names: Sequence[str] | None,
    n_features: int,
    categorical: Collection[int] = (),
) -> dict[int, int]:
    """Return the columns of features that rise (1) or fall (−1)."""
    signs: dict[int, int] = {}
    for feature, sign in directions(chosen).items():
        column = column_of(MONOTONE, feature, names, n_features)
        if column in categorical:
            raise ParameterError(
                Mention(MONOTONE, repr(feature)),
                " is categorical, and categories have no order; leave it out of one of both.",
            )
        if signs.setdefault(column, sign) != sign:
            raise ParameterError(
                Mention(MONOTONE, repr(feature)),
                " rises by one name and falls by another; give each feature once.",
            )
    return signs
