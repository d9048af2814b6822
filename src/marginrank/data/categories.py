"""Categorical columns of pandas as numbers."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

Categories = Sequence[str]


def categorical_columns(X: Any) -> dict[int, list[Any]]:
    """Return the categories of each categorical column of a pandas frame, by column number."""
    if not hasattr(X, "isetitem"):
        return {}
    return {
        k: list(dtype.categories)
        for k, dtype in enumerate(X.dtypes)
        if getattr(dtype, "name", None) == "category"
    }


def text_categories(X: Any) -> dict[int, list[str]]:
    """Return the categories of the categorical columns that hold text.

    Categories that are numbers stay what they are, and other ones raise ValueError.
    """
    texts = {}
    for k, values in categorical_columns(X).items():
        if all(isinstance(value, str) for value in values):
            texts[k] = values
        elif not all(isinstance(value, Real) for value in values):
            raise ValueError(
                f"the column {X.columns[k]!r} has categories that are neither all text nor all "
                "numbers; convert them to text."
            )
    return texts


def with_numbers(X: Any, texts: Mapping[int, Categories]) -> Any:
    """Return a pandas frame with numbers instead of categories; anything else as it is.

    Text becomes its place among the categories of the fit, from 0; text that was not among them
    becomes NaN.
    """
    if not hasattr(X, "isetitem"):
        return X
    X = X.copy(deep=False)
    for k in {*texts, *categorical_columns(X)} & {*range(X.shape[1])}:
        column = X.iloc[:, k]
        if k in texts:
            _check_text(column, X.columns[k], texts[k])
            number = {text: float(place) for place, text in enumerate(texts[k])}
            column = column.astype(object).map(number)
        X.isetitem(k, column.astype("float64"))
    return X


def _check_text(column: Any, name: Any, categories: Categories) -> None:
    """Raise ValueError if a column has numbers where the fit had text."""
    values = column.dropna()
    if len(values) and not isinstance(values.iloc[0], str):
        raise ValueError(
            f"the column {name!r} has {values.iloc[0]!r}, but its categories were text in the fit, "
            f"such as {categories[0]!r}; pass the same kind of values."
        )
