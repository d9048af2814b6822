"""Base class of results that are tables: data frame, HTML table in notebooks, short repr."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

from marginrank._utils.optional import require

MOST_ROWS = 50  # most rows of an HTML table; to_frame returns all rows


class ResultTable:
    """Base class of results that are tables: data frame, HTML table in notebooks, short repr."""

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table by name; all have the same length."""
        raise NotImplementedError

    def _summary(self) -> str:
        """Return the text inside the parentheses of the repr."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """Return the result as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            The columns of the HTML table that notebooks show, with all rows.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from marginrank import linear_path, make_ranking
        >>> X, y, qid = make_ranking(n_queries=20, random_state=0)
        >>> frame = linear_path(X, y, qid=qid, Cs=[0.01, 0.1]).to_frame()
        >>> frame["C"].tolist(), len(frame)
        ([0.01, 0.1], 2)
        """
        return require("pandas").DataFrame(dict(self._columns()))

    def _repr_html_(self) -> str:
        columns = self._columns()
        n_rows = len(next(iter(columns.values())))
        rows = islice(zip(*columns.values(), strict=True), MOST_ROWS)
        caption = repr(self)
        if n_rows > MOST_ROWS:
            caption += f"; first {MOST_ROWS} of {n_rows} rows, to_frame() returns all"
        return (
            f"<table><caption>{escape(caption)}</caption>"
            f"<thead>{_html_row('th', columns)}</thead>"
            f"<tbody>{''.join(_html_row('td', map(_text, row)) for row in rows)}</tbody></table>"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"


def _html_row(tag: str, cells: Any) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
