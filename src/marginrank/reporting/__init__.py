"""Reports on how well a model ranks: a record of plain data, and the HTML page that shows it."""

from marginrank.reporting.record import Report, report

__all__ = ["Report", "report"]
