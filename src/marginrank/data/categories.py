"""Conversion of the categorical columns of a pandas DataFrame to numbers."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any


def categorical_columns(X: Any) -> dict[int, list[Any]]:
    """Return {column number: categories} for the categorical columns of a pandas DataFrame X."""
    if not hasattr(X, "isetitem"):
        return {}
    return {
        k: list(dtype.categories)
        for k, dtype in enumerate(X.dtypes)
        if getattr(dtype, "name", None) == "category"
    }


def text_categories(X: Any) -> dict[int, list[str]]:
    """Return {column number: categories} for the categorical columns of X that contain text.

    Raise ValueError if the categories of a column are neither all text nor all numbers.
    """
    texts = {}
    for k, values in categorical_columns(X).items():
        if all(isinstance(value, str) for value in values):
            texts[k] = values
        elif not all(isinstance(value, Real) for value in values):
            raise ValueError(
                f"Column {X.columns[k]!r} has categories that are neither all text nor all "
                "numbers; convert them to text."
            )
    return texts


def with_numbers(X: Any, texts: Mapping[int, Sequence[str]]) -> Any:
    """Convert the categorical columns of a pandas DataFrame to float64.

    `texts` maps column numbers to the text categories that were seen by `fit`. A text is replaced
    by its index in that list, or by NaN if it is not in the list. If X is not a DataFrame, it is
    returned unchanged.
    """
    if not hasattr(X, "isetitem"):
        return X
    X = X.copy(deep=False)
    for k in {*texts, *categorical_columns(X)} & {*range(X.shape[1])}:
        column = X.iloc[:, k]
        if k in texts:
            values = column.dropna()
            if len(values) and not isinstance(values.iloc[0], str):
                raise ValueError(
                    f"Column {X.columns[k]!r} has the value {values.iloc[0]!r}, but held text in "
                    f"the fit, such as {texts[k][0]!r}; convert it to text."
                )
            number = {text: float(position) for position, text in enumerate(texts[k])}
            column = column.astype(object).map(number)
        X.isetitem(k, column.astype("float64"))
    return X
