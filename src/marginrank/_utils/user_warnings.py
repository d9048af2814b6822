"""Warnings that point to the line of the user's code, not to a line of this package."""

import sys
import warnings

PACKAGES = (__name__.partition(".")[0], "sklearn", "joblib")


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Emit a warning that points to the first caller outside of marginrank and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES
