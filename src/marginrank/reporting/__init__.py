"""Reports: a record of everything that a report shows, and the page that shows it."""

from marginrank.reporting.record import Report, report

__all__ = ["Report", "report"]
