"""Errors for unknown keywords that say which one to use."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any

# Keywords of other libraries, and of other estimators here.
HINTS = {
    "fit": {
        "groups": "pass query ids as qid=, or sizes of contiguous queries as group=",
        "query_id": "pass query ids as qid=",
        **dict.fromkeys(
            ("eval_set", "eval_qid", "eval_group"),
            "this fit has no use for validation data, so drop it; SGDRankSVM.fit takes it",
        ),
    },
    "__init__": {
        "objective": 'pass pair_cost="ndcg" to weight pairs by NDCG, or fit the estimator without '
        "CV in its name with objective= and best_params_",
        "kernel": "use KernelRankSVM",
        "metric": "pass scoring= to an estimator that has it, such as RankSVMCV",
    },
}


class KeywordHints:
    """Mixin: unknown keywords of the constructor and of fit raise a TypeError with a hint."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Wrap the methods that the class defines."""
        super().__init_subclass__(**kwargs)
        for name in HINTS.keys() & vars(cls).keys():
            setattr(cls, name, _with_hints(vars(cls)[name]))


def _with_hints(method: Callable[..., Any]) -> Callable[..., Any]:
    known = [name for name in inspect.signature(method).parameters if name != "self"]

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                where = type(self).__name__ + ("" if is_constructor else f".{method.__name__}")
                raise TypeError(
                    f"{where}() got an unexpected keyword argument {name!r}"
                    + _hint(method.__name__, name, known)
                )
        return method(self, *args, **kwargs)

    is_constructor = method.__name__ == "__init__"
    return checked


def _hint(method: str, name: str, known: list[str]) -> str:
    """Return what to pass instead of an unknown keyword, as the end of a sentence."""
    if name in HINTS[method]:
        return f"; {HINTS[method][name]}."
    near = {other.lower(): other for other in known}
    matches = difflib.get_close_matches(name.lower(), near, n=1, cutoff=0.7)
    return f"; did you mean {near[matches[0]]!r}?" if matches else "."
