"""Which curves may only rise, or only fall: features by name or number, each with a sign."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from marginrank._utils.parameters import Mention, ParameterError, Wording, given
from marginrank.data.feature_choice import Feature, column_of, whole

PARAMETER = "monotone"


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
            given(PARAMETER, chosen),
            " must ",
            Wording("map names or column numbers to", "give names or numbers of features"),
            " +1 or -1",
            Wording(', as {"bm25": 1}.', ", as bm25:+1."),
        ) from None
    if len(signs) < len(pairs):
        raise ParameterError(given(PARAMETER, chosen), " has a feature twice; give each once.")
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
        column = column_of(PARAMETER, feature, names, n_features)
        if column in categorical:
            raise ParameterError(
                Mention(PARAMETER, repr(feature)),
                " is categorical, and categories have no order; leave it out of one of both.",
            )
        if signs.setdefault(column, sign) != sign:
            raise ParameterError(
                Mention(PARAMETER, repr(feature)),
                " rises by one name and falls by another; give each feature once.",
            )
    return signs
