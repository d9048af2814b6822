"""Validation and quoting of feature names in exported code.

Names come from users' files and are untrusted. A name is never written in a comment of exported
code. It is turned into an identifier, or written in quotes, with every character escaped that could
end the quotes.
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
# Characters that XML 1.0 cannot represent.
NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
NOT_TEXT = re.compile(r"[\0\ud800-\udfff]")
NOT_PLAIN = re.compile(r"[^\w -]")
REORDERING = re.compile(r"[\u202a-\u202e\u2066-\u2069]")

Names = Sequence[str] | Mapping[str, str]


def names_of(model: LinearModel | AdditiveModel | KernelModel, names: Names | None) -> list[str]:
    """Return the feature names with which a model is exported.

    They are the names of the model, by default f1, f2, …, replaced by `names`: a list of all names,
    or a dict from some names of the model to new names.
    """
    return renamed(names_of_all(model.feature_names, model.n_features), names)


def renamed(own: list[str], names: Names | None, what: str = "feature") -> list[str]:
    """Return the feature names `own` of a model, replaced by `names` if given.

    `names` is a list of all names, or a dict from some old names to new names. `what` is the word
    for a feature in error messages.
    """
    if names is None:
        return own
    given = names.values() if isinstance(names, Mapping) else names
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise ParameterError(Mention("names"), " must be a list or a dict of strings.")
    if isinstance(names, Mapping):
        unknown = names.keys() - own
        if unknown:
            raise ParameterError(
                Mention("names"), f" has {min(unknown)!r}, which is not a {what} of the model."
            )
        return [names.get(name, name) for name in own]
    if len(names) != len(own):
        raise ParameterError(
            Mention("names"),
            f" has {len(names)} entries and must have {len(own)}, one per {what}.",
        )
    return list(names)


def check_names(names: Iterable[str]) -> None:
    """Raise ParameterError if a feature name is empty, occurs twice, or is not valid Unicode."""
    names = list(names)
    check_not_found(names, NOT_TEXT, "it contains NUL or a lone surrogate")
    check_not_found(names, re.compile(r"\A\Z"), "it is empty")
    check_distinct(names)


def check_distinct(
    names: Sequence[str], key: Callable[[str], str] = str, system: str = "the target"
) -> None:
    """Raise ParameterError if two feature names have the same `key`, such as their lower case.

    `system` is the system to export to, which cannot distinguish such names.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(key(name))
        if other is not None:
            raise ParameterError(
                f"two features are called {shown(other)} and {shown(name)}, which {system} cannot "
                "distinguish; rename one with ",
                Mention("names"),
                ".",
            )
        seen[key(name)] = name


def check_not_found(names: Iterable[str], pattern: re.Pattern[str], why: str) -> None:
    """Raise ParameterError, with the reason `why`, if `pattern` occurs in a feature name."""
    for name in names:
        if pattern.search(name):
            raise _unfit(name, why)


def check_no_reordering(names: Iterable[str]) -> None:
    """Raise ParameterError if a feature name has Unicode controls that change the text direction.

    Code with such a name would be displayed in another order than it runs.
    """
    check_not_found(
        names, REORDERING, "it contains a character that reverses the order of displayed text"
    )


def check_longest(names: Iterable[str], n_bytes: int, system: str) -> None:
    """Raise ParameterError if a feature name has more than `n_bytes`, the limit of `system`."""
    for name in names:
        if len(name.encode()) > n_bytes:
            raise _unfit(name, f"names in {system} have at most {n_bytes} bytes")


def _unfit(name: str, why: str) -> ParameterError:
    return ParameterError(
        f"the feature {shown(name)} cannot be exported: {why}; rename it with ",
        Mention("names"),
        ".",
    )


def shown(name: str) -> str:
    """Return a feature name for a message: in quotes, in ASCII, and truncated if it is long."""
    return ascii(name if len(name) <= 40 else name[:40] + "...")


def identifier(text: str) -> str:
    """Return a text as an identifier of letters, digits and underscores.

    Examples
    --------
    >>> identifier("BM25 (title)"), identifier("2nd")
    ('BM25__title_', 'f_2nd')
    """
    plain = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return plain if IDENTIFIER.fullmatch(plain) else f"f_{plain}"


def identifiers(names: Sequence[str]) -> list[str]:
    """Return distinct identifiers for feature names; names that are identifiers are kept."""
    own = {name for name in names if IDENTIFIER.fullmatch(name)}
    folded = {name.casefold() for name in own}
    found = []
    for name in names:
        made = name if name in own else unused(identifier(name), folded)
        folded.add(made.casefold())
        found.append(made)
    return found


def unused(name: str, folded: Collection[str]) -> str:
    """Return `name`, with a number appended if it is in use already, ignoring case.

    `folded` has the names in use, in lower case (case-folded).
    """
    candidate, number = name, 1
    while candidate.casefold() in folded:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def sql_quoted(name: str) -> str:
    """Return a feature name as a quoted identifier of standard SQL."""
    return '"' + name.replace('"', '""') + '"'


def xml_quoted(text: str) -> str:
    """Return a text as a quoted XML attribute value; line breaks are kept."""
    return quoteattr(text, {sign: f"&#{ord(sign)};" for sign in REORDERING.findall(text)})


def javascript_quoted(text: str) -> str:
    """Return a text as a JavaScript string literal in ASCII, safe inside an HTML script element."""
    return json.dumps(text).replace("<", "\\u003c")


def lucene_quoted(text: str) -> str:
    """Return a text as a string literal of a Lucene expression."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def c_quoted(text: str) -> str:
    """Return a text as a C string literal in UTF-8."""
    # Question marks are escaped, because trigraphs begin with them.
    return '"' + "".join(_escaped(byte, '"\\?') for byte in text.encode()) + '"'


def java_quoted(text: str) -> str:
    """Return a text as a Java string literal in ASCII."""
    # Java decodes \u before it reads strings, so an escaped line break would end the line. Hence
    # octal codes for control characters, and \u only outside ASCII.
    units = struct.iter_unpack(">H", text.encode("utf-16-be"))
    characters = (f"\\u{u:04x}" if u >= 0x80 else _escaped(u, '"\\') for (u,) in units)
    return '"' + "".join(characters) + '"'


def _escaped(code: int, special: str) -> str:
    """Return a character for a string literal of C or Java, escaped if needed."""
    if chr(code) in special:
        return "\\" + chr(code)
    return chr(code) if 0x20 <= code < 0x7F else f"\\{code:03o}"
