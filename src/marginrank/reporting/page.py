"""The HTML page of a report: one file that needs no other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from marginrank._utils.optional import require
from marginrank.reporting.text import embedded, visible

STATIC = "marginrank.reporting"
DAMAGE = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
SCRIPTS = ("plot.min.js", "ranking.js", "charts.js", "page.js")


def page_of(record: Mapping[str, Any]) -> str:
    """Return the HTML page of a report, given its record (plain data).

    Raise ValueError if a part of the record is missing, and ImportError without Jinja2.
    """
    jinja2 = require("jinja2", "report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"visible": visible, "number": number, "signed": signed}
    scripts = [_static(name) for name in SCRIPTS]
    try:
        page = environment.from_string(_static("page.html.jinja")).render(
            record=record,
            findings=findings_by_code(record["health"]),
            data=jinja2.utils.markupsafe.Markup(embedded(record)),
            style=jinja2.utils.markupsafe.Markup(_static("style.css")),
            scripts=[jinja2.utils.markupsafe.Markup(script) for script in scripts],
            hashes=[_hash(script) for script in scripts],
        )
    except (jinja2.TemplateError, *DAMAGE) as error:
        raise ValueError(f"the record of the report is damaged: {error}.") from error
    return str(page)


def findings_by_code(findings: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return the findings of data checks with equal codes merged into one, with all messages."""
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        kind = finding["code"], finding["severity"], finding["advice"]
        grouped.setdefault(kind, []).append(finding["message"])
    return [
        {"severity": severity, "advice": advice, "messages": messages}
        for (_, severity, advice), messages in grouped.items()
    ]


def number(value: Any, digits: int = 4) -> str:
    """Return a value as text for the page, integers with thousands separators, None as "–"."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.{digits}f}" if isinstance(value, float) else visible(value)


def signed(value: Any) -> str:
    """Return a number as text with its sign and four decimals; "–" for None."""
    return "–" if value is None else f"{value:+.4f}".replace("-", "−")


def _static(name: str) -> str:
    return resources.files(STATIC).joinpath("static", name).read_text("utf-8")


def _hash(script: str) -> str:
    """Return the hash of a script, which the page's content security policy lists to allow it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
