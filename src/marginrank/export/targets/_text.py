"""What the targets share: who wrote a file, and JSON."""

import json
from typing import Any

from marginrank._utils.version import __version__

WRITTEN_BY = f"Written by marginrank {__version__}."


def json_file(content: Any) -> bytes:
    """Return JSON in ASCII; numbers read back exactly, and always have a point or an exponent."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode("ascii")
