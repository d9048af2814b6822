"""Data that models are judged on: made of what was given, with the features of the fit."""

from collections.abc import Callable, Sequence
from typing import Any

from marginrank.data.ranking_data import RankingData


def validation_data(
    validation: RankingData | Sequence[Any] | None,
    *,
    n_jobs: int | None,
    make: Callable[..., RankingData] = RankingData,
) -> RankingData | None:
    """Return what was given as validation, checked and grouped; a RankingData as it is."""
    if validation is None or isinstance(validation, RankingData):
        return validation
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise ValueError("validation must be a tuple (X, y) or (X, y, qid), or a RankingData.")
    return make(*validation, n_jobs=n_jobs)


def refuse_other_validation(
    validation: RankingData | None, n_features: int, names: Sequence[str] | None = None
) -> None:
    """Refuse validation data with other features than X, by number and, if both have them, name."""
    if validation is None:
        return
    if validation.n_features != n_features:
        raise ValueError(
            f"validation has {validation.n_features} features, but X has {n_features}; give the "
            "same features."
        )
    if validation.feature_names is not None and names is not None:
        refuse_other_names(validation.feature_names, names, "validation", "X")


def refuse_other_names(
    given: Sequence[str], expected: Sequence[str], what: str, where: str
) -> None:
    """Refuse as many names of features that are not the expected ones in their order."""
    for k, (name, other) in enumerate(zip(given, expected, strict=True)):
        if name != other:
            raise ValueError(
                f"feature {k + 1} of {what} is {name!r}, but {other!r} in {where}; give the same "
                "features in the same order."
            )
