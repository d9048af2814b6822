"""The class `Finding`: a defect that a check of ranking data has found."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")  # most severe first
MOST_FEATURES = 20  # most findings per code; further features are only counted


@dataclass(frozen=True)
class Finding:
    """A defect of ranking data, as found by :func:`check_data`.

    Attributes
    ----------
    code : str
        The kind of defect, such as "constant-feature". Codes do not change between versions.
    severity : {"error", "warning", "note"}
        An "error" makes results wrong, a "warning" probably makes them worse, and a "note" may be
        intended.
    place : str
        The name of a feature, "train" or "test", or "" for the data as a whole.
    message : str
        The defect, with its values and its place.
    advice : str
        What to do about it.

    Examples
    --------
    >>> from marginrank import RankingData, check_data
    >>> data = RankingData([[0.0, 7.0], [1.0, 7.0]], [0, 1], feature_names=["bm25", "year"])
    >>> check_data(data)[0].to_dict()["message"]
    'year is 7 in all 2 documents.'
    """

    code: str
    severity: Severity
    place: str
    message: str
    advice: str

    def to_dict(self) -> dict[str, str]:
        """Return the attributes as a dictionary, for JSON."""
        return asdict(self)


def findings_by_feature(
    code: str,
    severity: Severity,
    names: Sequence[str],
    message: Callable[[int], str],
    others: str,
    advice: str,
) -> list[Finding]:
    """Return one finding for each of the first 20 features, and one that counts the others.

    `names` are the names of the features with a defect, and ``message(k)`` is the message for
    ``names[k]``. `others` begins the last message, as in "Constant features: 5 more."
    """
    found = [
        Finding(code, severity, name, message(k), advice)
        for k, name in enumerate(names[:MOST_FEATURES])
    ]
    rest = len(names) - len(found)
    if rest:
        found.append(Finding(code, severity, "", f"{others}: {rest:,} more.", advice))
    return found


def listed(values: Sequence[object], most: int = 5) -> str:
    """Return the first `most` values as text, separated by commas."""
    shown = ", ".join(map(str, values[:most]))
    return shown if len(values) <= most else f"{shown}, …"
