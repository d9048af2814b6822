"""Text that comes from files and names, made safe to show."""

import sys

# For terminals without these; whatever else they lack is written as an escape.
PLAIN = str.maketrans("▁▂▃▄▅▆▇█░▒▓×−", "_.-=+*%#.:*x-") | {ord("…"): "..."}


def printable(text: str) -> str:
    """Escape what a terminal would obey or not show."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def for_stdout(text: str) -> str:
    """Return printable text in characters that standard output has."""
    text = printable(text)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return text.translate(PLAIN)
    return text
