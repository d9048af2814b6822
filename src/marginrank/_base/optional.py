"""Optional dependencies: imported where they are used, with a clear message if missing."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, or say which extra of marginrank installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{package} is not installed; get it with: pip install 'marginrank[{extra}]'"
        ) from error
