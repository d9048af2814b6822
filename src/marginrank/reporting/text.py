"""Functions that make untrusted text safe to show and to embed in an HTML page."""

from __future__ import annotations

import json
import re
from typing import Any

# Characters that change the direction of text, or cannot be seen; they are shown by their code.
HIDDEN = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f"
    "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\udfff"
    "\\ufeff\\uffa0\\ufff9-\\ufffb\\U000e0000-\\U000e0fff]"
)


def embedded(data: Any) -> str:
    """Return data as JSON text that cannot end the HTML script element that contains it."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def visible(value: Any) -> str:
    r"""Return text with invisible characters and direction controls replaced by their codes.

    Examples
    --------
    >>> from marginrank.reporting.text import visible
    >>> visible("abc\u202ecba")
    'abc⟨U+202E⟩cba'
    """
    return HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", str(value))


def n_bytes(data: Any) -> int:
    """Return the number of bytes that data take in an HTML page as JSON."""
    return len(embedded(data).encode("utf-8", "backslashreplace"))


def cut(text: str, longest: int) -> str:
    """Return a text cut to about `longest` bytes in an HTML page, with an ellipsis if it is cut."""
    coded = text.encode("utf-8", "backslashreplace")
    size = len(coded) + 5 * sum(map(coded.count, (b"<", b">", b"&")))
    if size <= longest:
        return coded.decode()
    kept = longest * len(coded) // size
    return coded[: max(kept - 3, 1)].decode("utf-8", "ignore") + "…"
