"""The default names of features, f1, f2 and so on.

Column k of X, counted from 0, is f(k + 1): f1 is the first column of an array, and feature 1 of
LETOR text.
"""

from collections.abc import Sequence


def name_of(column: int, names: Sequence[str] | None) -> str:
    """Return the name of the feature in `column`, counted from 0; by default f1, f2 and so on.

    Examples
    --------
    >>> from marginrank._utils.feature_names import name_of
    >>> name_of(38, None), name_of(0, ["bm25"])
    ('f39', 'bm25')
    """
    return f"f{column + 1}" if names is None else str(names[column])


def names_of_all(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the names of all features: `names`, or the default names if it is None."""
    return [name_of(k, names) for k in range(n_features)]


def column_of_name(name: str) -> int:
    """Return the column, from 0, that a default name such as f39 or 39 stands for; else −1."""
    number = name.removeprefix("f")
    return int(number) - 1 if number.isdecimal() else -1
