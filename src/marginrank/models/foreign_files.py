"""Model files of LightGBM, XGBoost and, with skops, scikit-learn; nothing in them is executed."""

import re
import zipfile
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from marginrank._utils.optional import require
from marginrank.models.foreign import ForeignModel
from marginrank.models.kernel_model import UNREADABLE
from marginrank.models.ubjson import is_complete

# What skops does not load unasked, but is data only: no file can make these call anything.
TRUSTED = frozenset(
    [
        "collections.OrderedDict",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRanker",
        "lightgbm.sklearn.LGBMRegressor",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRanker",
        "xgboost.sklearn.XGBRegressor",
    ]
)

LIGHTGBM = re.compile(rb"tree\n")
# Text of JSON with the first key of XGBoost's, or binary: a length in place of the quote.
XGBOOST = re.compile(rb'\{(\s*"(learner"|version"\s*:\s*\[)|[iUIlL]\0*\x07(learner|version))')
ZIP = re.compile(rb"PK\x03\x04")


class ForeignFormat(NamedTuple):
    """A format of another library: how its files begin, what reads them, and how.

    `module` is the one that must be there, from the extra `extra` of marginrank.
    """

    beginning: re.Pattern[bytes]
    module: str
    extra: str
    read: Callable[[ModuleType, str], Any]


def foreign_format(path: str) -> str | None:
    """Return the name of the library that wrote a file, None if it is none of these."""
    with open(path, "rb") as file:
        beginning = file.read(256)
    for name, format in FOREIGN_FORMATS.items():
        if format.beginning.match(beginning):
            return name if name != "skops" or _has_schema(path) else None
    return None


def load_foreign(path: str) -> ForeignModel:
    """Read a file without a trial; a damaged one may end the process."""
    return ForeignModel(_format_of(path).read(library_of(path), path))


def library_of(path: str) -> ModuleType:
    """Return the library that reads a file.

    Raises
    ------
    ValueError
        If the file is none that :func:`foreign_format` knows.
    ImportError
        If the library is not installed.
    """
    format = _format_of(path)
    return require(format.module, format.extra)


def _format_of(path: str) -> ForeignFormat:
    name = foreign_format(path)
    if name is None:
        raise ValueError(f"{path} is no model file of {', '.join(FOREIGN_FORMATS)}.")
    return FOREIGN_FORMATS[name]


def _read_lightgbm(lightgbm: ModuleType, path: str) -> Any:
    with open(path, "rb") as file:
        content = file.read()
    _check_trees(path, content)
    text = content.decode("utf-8", "replace")
    try:
        return lightgbm.Booster(model_str=text)
    except lightgbm.basic.LightGBMError as error:
        raise _unreadable(path, "LightGBM", error) from error


def _check_trees(path: str, content: bytes) -> None:
    """Refuse a cut or edited file with a better reason than LightGBM's crash."""
    sizes = re.search(rb"^tree_sizes=((?:\d{1,18} ?)*)\n\n", content, re.MULTILINE)
    end = sizes.end() + sum(map(int, sizes[1].split())) if sizes else 0
    rest = content[end:]
    if not rest.startswith(b"end of trees\n") or b"\nend of parameters\n" not in rest:
        raise ValueError(
            f"{path} is damaged: its trees or parameters do not end where they should; save the "
            "model again."
        )


def _read_xgboost(xgboost: ModuleType, path: str) -> Any:
    with open(path, "rb") as file:
        content = bytearray(file.read())  # from memory, as a path is judged by its ending
    # XGBoost reads beyond the end of a binary file that was cut.
    if b'"' not in content[:16] and not is_complete(bytes(content)):
        raise ValueError(f"{path} is damaged: it does not end where it should; save it again.")
    booster = xgboost.Booster()
    try:
        booster.load_model(content)
    except xgboost.core.XGBoostError as error:
        raise _unreadable(path, "XGBoost", error) from error
    return booster


def _read_skops(skops: ModuleType, path: str) -> Any:
    try:
        found = skops.get_untrusted_types(file=path)
    except Exception as error:
        raise _unreadable(path, "skops", error) from error
    unknown = sorted(set(found) - TRUSTED)
    if unknown:
        raise ValueError(
            f"{path} holds types that are not known to be harmless: {', '.join(unknown)}; write "
            "the scores of the model to a file instead."
        )
    try:
        return skops.load(path, trusted=found)
    except Exception as error:
        raise _unreadable(path, "skops", error) from error


def _has_schema(path: str) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "schema.json" in archive.namelist()
    except (*UNREADABLE, OSError) as error:
        if getattr(error, "filename", None) is not None:  # it cannot be opened
            raise
        raise ValueError(
            f"{path} is damaged: it begins as a zip archive but does not end as one; save the "
            "model again."
        ) from error


def _unreadable(path: str, library: str, error: Exception) -> ValueError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]  # a stack trace follows
    return ValueError(f"{path} is damaged: {library} cannot read it ({reason}).")


FOREIGN_FORMATS = {
    "LightGBM": ForeignFormat(LIGHTGBM, "lightgbm", "lightgbm", _read_lightgbm),
    "XGBoost": ForeignFormat(XGBOOST, "xgboost", "xgboost", _read_xgboost),
    "skops": ForeignFormat(ZIP, "skops.io", "skops", _read_skops),
}
