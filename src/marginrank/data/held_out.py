"""Conversion of validation data (the arguments `validation` and `eval_set`) to RankingData."""

from collections.abc import Callable, Sequence
from typing import Any

from marginrank.data.ranking_data import RankingData, check_beside_data


def validation_data(
    validation: RankingData | Sequence[Any] | None,
    *,
    n_jobs: int | None,
    make: Callable[..., RankingData] = RankingData,
) -> RankingData | None:
    """Convert `validation`, a tuple (X, y) or (X, y, qid), to a RankingData; None stays None."""
    if validation is None or isinstance(validation, RankingData):
        return validation
    if not isinstance(validation, (tuple, list)) or len(validation) not in (2, 3):
        raise ValueError("validation must be a tuple (X, y) or (X, y, qid), or a RankingData.")
    return make(*validation, n_jobs=n_jobs)


def evaluation_data(
    eval_set: Any,
    eval_qid: Sequence[Any] | None,
    eval_group: Sequence[Any] | None,
    *,
    n_jobs: int | None,
    make: Callable[..., RankingData],
) -> RankingData | None:
    """Convert validation data in the format of LightGBM and XGBoost to a RankingData, or None.

    `eval_set` is (X, y) or a RankingData, or a list of one of them. `eval_qid` and `eval_group`
    are lists with one array: the query ids or the group sizes. Raise ValueError for several
    validation sets.
    """
    queries = {"eval_qid": eval_qid, "eval_group": eval_group}
    if eval_set is None:
        given = [name for name, value in queries.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} was given without eval_set; pass eval_set=[(X, y)].")
        return None
    entries = eval_set if isinstance(eval_set, list) else [eval_set]
    for name, lists in {"eval_set": entries, **queries}.items():
        if lists is not None and len(lists) != 1:
            raise ValueError(f"{name} has {len(lists)} entries; pass a list with one element.")
    (entry,) = entries
    if isinstance(entry, RankingData):
        check_beside_data(eval_qid=eval_qid, eval_group=eval_group)
        return entry
    if not isinstance(entry, (tuple, list)) or len(entry) != 2:
        raise ValueError("eval_set must be [(X, y)] or [RankingData]; pass queries as eval_qid.")
    qid, group = (None if lists is None else lists[0] for lists in (eval_qid, eval_group))
    return make(*entry, qid=qid, group=group, n_jobs=n_jobs)


def check_same_features(
    validation: RankingData | None,
    n_features: int,
    names: Sequence[str] | None = None,
    *,
    what: str = "validation",
) -> None:
    """Raise ValueError if validation data and the X of the fit differ in their features.

    `n_features` and `names` are the number and the names of the features of X.
    """
    if validation is None:
        return
    if validation.n_features != n_features:
        raise ValueError(
            f"{what} has {validation.n_features} features, but X has {n_features}; pass the same "
            "features."
        )
    if validation.feature_names is not None and names is not None:
        check_same_names(validation.feature_names, names, what, "X")


def check_same_names(given: Sequence[str], expected: Sequence[str], what: str, where: str) -> None:
    """Raise ValueError if the lists `given` and `expected` of feature names differ."""
    for k, (name, other) in enumerate(zip(given, expected, strict=True)):
        if name != other:
            raise ValueError(
                f"feature {k + 1} of {what} is {name!r}, but {other!r} in {where}; pass the same "
                "features in the same order."
            )
