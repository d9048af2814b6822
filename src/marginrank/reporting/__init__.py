"""Reports on how well a model ranks: a record of plain data, and an HTML page made from it."""

from marginrank.reporting.record import Report, report

__all__ = ["Report", "report"]
