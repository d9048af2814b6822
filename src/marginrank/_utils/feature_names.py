"""Default feature names: f1 is the first column of X, f2 the second, and so on.

Feature numbers begin at 1, as in LETOR files; column indices begin at 0.
"""

from collections.abc import Sequence


def name_of(column: int, names: Sequence[str] | None) -> str:
    """Return the name of a feature; without `names`, column 0 is called f1, column 1 f2, and so on.

    Examples
    --------
    >>> from marginrank._utils.feature_names import name_of
    >>> name_of(38, None), name_of(0, ["bm25"])
    ('f39', 'bm25')
    """
    return f"f{column + 1}" if names is None else str(names[column])


def names_of_all(names: Sequence[str] | None, n_features: int) -> list[str]:
    """Return the names of all features: the given `names`, or f1, f2, … if `names` is None."""
    return [name_of(k, names) for k in range(n_features)]


def column_of_name(name: str) -> int:
    """Return the column of a default feature name: 38 for "f39" or "39", −1 for other names."""
    number = name.removeprefix("f")
    return int(number) - 1 if number.isdecimal() else -1
