"""Optional dependencies: imported where they are used, with a clear message if missing."""

from importlib import import_module
from types import ModuleType

# Extras that need more than one library.
TOGETHER = {"cli": "typer rich", "dask": "'dask[dataframe,distributed]'"}


def require(module: str, extra: str | None = None) -> ModuleType:
    """Return an optional module, or raise ImportError with the command that installs it.

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
