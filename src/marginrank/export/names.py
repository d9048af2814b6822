"""Names of features: where they come from, what they must be, how they are quoted.

They come from users' files, so that nothing is trusted: a name is written only inside quotes that
it cannot end, never in a comment, or is turned into an identifier.
"""

import json
import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from xml.sax.saxutils import quoteattr

from marginrank._utils.feature_names import names_of_all
from marginrank._utils.parameters import Mention, ParameterError
from marginrank.models import AdditiveModel, KernelModel, LinearModel

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
# What XML 1.0 has no way to write.
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_TEXT = re.compile(r"[\0\ud800-\udfff]")
NOT_PLAIN = re.compile(r"[^\w -]")
REORDERING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")

Names = Sequence[str] | Mapping[str, str]


def names_of(model: LinearModel | AdditiveModel | KernelModel, names: Names | None) -> list[str]:
    """Return what the features of a model are to be called: f1, f2, … if nobody says.

    Parameters
    ----------
    model : LinearModel, AdditiveModel or KernelModel
        The model.
    names : list of str, dict of str to str, or None
        A name for each feature, or other names for some of them.
    """
    own = names_of_all(model.feature_names, model.n_features)
    if names is None:
        return own
    given = names.values() if isinstance(names, Mapping) else names
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise ParameterError(Mention("names"), " must be a list or a dict of strings.")
    if isinstance(names, Mapping):
        unknown = names.keys() - own
        if unknown:
            raise ParameterError(
                Mention("names"), f" has {min(unknown)!r}, which is no feature of the model."
            )
        return [names.get(name, name) for name in own]
    if len(names) != model.n_features:
        raise ParameterError(
            Mention("names"),
            f" has {len(names)} entries and must have {model.n_features}, one for each feature of "
            "the model.",
        )
    return list(names)


def check_names(names: Iterable[str]) -> None:
    """Raise ParameterError if names are there twice, or no system can hold one."""
    names = list(names)
    check_not_found(names, NOT_TEXT, "the characters NUL and lone surrogates cannot be written")
    check_not_found(names, re.compile(r"\A\Z"), "it is empty")
    check_distinct(names)


def check_distinct(
    names: Sequence[str], key: Callable[[str], str] = str, to_whom: str = "the target"
) -> None:
    """Raise ParameterError if two names are the same to a system."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(key(name))
        if other is not None:
            raise ParameterError(
                f"two features are called {shown(other)} and {shown(name)}, which {to_whom} "
                "cannot tell apart; rename one with ",
                Mention("names"),
                ".",
            )
        seen[key(name)] = name


def check_not_found(names: Iterable[str], pattern: re.Pattern[str], why: str) -> None:
    """Raise ParameterError if a pattern is found in a name."""
    for name in names:
        if pattern.search(name):
            raise _unfit(name, why)


def check_no_reordering(names: Iterable[str]) -> None:
    """Raise ParameterError for names that make a reader see other text than is run."""
    check_not_found(names, REORDERING, "it would show the text behind it in another order")


def check_longest(names: Iterable[str], n_bytes: int, whose: str) -> None:
    """Raise ParameterError for names that a system would cut."""
    for name in names:
        if len(name.encode()) > n_bytes:
            raise _unfit(name, f"names of {whose} have at most {n_bytes} bytes")


def _unfit(name: str, why: str) -> ParameterError:
    return ParameterError(
        f"the feature {shown(name)} cannot be exported: {why}; rename it with ",
        Mention("names"),
        ".",
    )


def shown(name: str) -> str:
    """Quote a name in ASCII for a message, or the beginning of a long one."""
    return ascii(name if len(name) <= 40 else name[:40] + "...")


def identifier(text: str) -> str:
    """Return letters, digits and underscores that look like a text.

    Examples
    --------
    >>> identifier("BM25 (title)"), identifier("2nd")
    ('BM25__title_', 'f_2nd')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return plain if IDENTIFIER.fullmatch(plain) else f"f_{plain}"


def identifiers(names: Sequence[str]) -> list[str]:
    """Return an identifier for each name, all different; names that are some keep theirs."""
    own = {name for name in names if IDENTIFIER.fullmatch(name)}
    folded = {name.casefold() for name in own}
    found = []
    for name in names:
        made = name if name in own else unused(identifier(name), folded)
        folded.add(made.casefold())
        found.append(made)
    return found


def unused(name: str, folded: Collection[str]) -> str:
    """Return a name, with a number behind it if it is among names in lower case."""
    candidate, number = name, 1
    while candidate.casefold() in folded:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def sql_quoted(name: str) -> str:
    """Quote an identifier as standard SQL does."""
    return '"' + name.replace('"', '""') + '"'


def xml_quoted(text: str) -> str:
    """Quote the value of an attribute; line breaks stay what they are."""
    return quoteattr(text, {sign: f"&#{ord(sign)};" for sign in REORDERING.findall(text)})


def javascript_quoted(text: str) -> str:
    """Quote a string in ASCII; it may stand inside a script element of a page."""
    return json.dumps(text).replace("<", "\\u003c")


def python_quoted(text: str) -> str:
    """Quote a string in ASCII."""
    return ascii(text)


def lucene_quoted(text: str) -> str:
    """Quote a string of a Lucene expression."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def c_quoted(text: str) -> str:
    """Quote the UTF-8 of a string; question marks are escaped, as three-letter codes begin so."""
    return '"' + "".join(map(_c_byte, text.encode())) + '"'


def _c_byte(byte: int) -> str:
    character = chr(byte)
    if character in '"\\?':
        return "\\" + character
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def java_quoted(text: str) -> str:
    r"""Quote a string in ASCII.

    Java reads ``\u`` before anything else, so that an escaped line break would be one. Hence
    octal codes for control characters, and ``\u`` only for what is not ASCII.
    """
    units = struct.iter_unpack(">H", text.encode("utf-16-be"))
    return '"' + "".join(_java_unit(unit) for (unit,) in units) + '"'


def _java_unit(unit: int) -> str:
    character = chr(unit)
    if character in '"\\':
        return "\\" + character
    if 0x20 <= unit < 0x7F:
        return character
    return f"\\{unit:03o}" if unit < 0x80 else f"\\u{unit:04x}"
