"""Imports of optional dependencies, with an error that says how to install a missing one."""

from importlib import import_module
from types import ModuleType

# Extras that need more than one library.
TOGETHER = {"cli": "typer rich", "dask": "'dask[dataframe,distributed]'"}


def require(module: str, extra: str | None = None) -> ModuleType:
    """Import and return a module; if it is missing, raise ImportError with the install command.

    Parameters
    ----------
    module : str
        Name of the module; its top level has the name of the library.
    extra : str, optional
        Extra of marginrank that lists the library, if there is one.
    """
    try:
        return import_module(module)
    except ImportError as error:
        library = module.split(".")[0]
        needed = TOGETHER.get(extra or "", library)
        raise ImportError(
            f"{library} is not installed; get it with: pip install {needed}"
        ) from error
