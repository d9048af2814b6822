"""Hints for unknown keywords of constructors and of fit."""

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import Any

# What to pass instead of keywords of other libraries and of other estimators here.
HINTS = {
    "fit": {
        "groups": "pass query ids as qid=, or sizes of contiguous queries as group=",
        "query_id": "pass query ids as qid=",
        **dict.fromkeys(
            ("eval_set", "eval_qid", "eval_group"),
            "this fit does not use validation data; SGDRankSVM.fit does",
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
    called = method.__name__
    known = {name.lower(): name for name in inspect.signature(method).parameters if name != "self"}

    @functools.wraps(method)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        for name in kwargs.keys() - known.values():
            matches = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
            hint = f"; did you mean {known[matches[0]]!r}?" if matches else "."
            if name in HINTS[called]:
                hint = f"; {HINTS[called][name]}."
            where = type(self).__name__ + ("" if called == "__init__" else f".{called}")
            raise TypeError(f"{where}() got an unexpected keyword argument {name!r}{hint}")
        return method(self, *args, **kwargs)

    return checked
