"""Signatures of public functions and methods, as a notebook shows them."""

import inspect

import pytest
from helpers.tables import each

import marginrank
import marginrank.dask
import marginrank.models
import marginrank.plots

LONGEST = 400  # characters
PER_PARAMETER = 40  # where there are more than ten of them


def is_written_in_python(value):
    return inspect.isfunction(value) or inspect.ismethod(value)


def public_callables():
    """Yield the names and the callables of the public functions, classes and methods."""
    places = [(name, getattr(marginrank, name)) for name in marginrank.__all__]
    for module in (marginrank.metrics, marginrank.models, marginrank.dask, marginrank.plots):
        places += [(f"{module.__name__}.{name}", value) for name, value in vars(module).items()]
    for name, value in places:
        if not callable(value) or not value.__module__.startswith("marginrank"):
            continue
        if name.rpartition(".")[2].startswith("_"):
            continue
        yield name, value
        if inspect.isclass(value):
            yield from (
                (f"{name}.{method}", function)
                for method, function in inspect.getmembers(value, is_written_in_python)
                if not method.startswith("_") and not method.endswith("_request")  # scikit-learn's
            )


CALLABLES = dict(public_callables())


def test_all_public_names_are_looked_at():
    assert {"RankSVM.fit", "marginrank.metrics.ndcg", "sparse_path", "RankingData"} <= {*CALLABLES}


@each("name", sorted(CALLABLES))
def test_a_signature_is_short_enough_to_read(name):
    signature = inspect.signature(CALLABLES[name])
    shown = str(signature)
    assert len(shown) <= max(LONGEST, PER_PARAMETER * len(signature.parameters)), shown


@each("name", sorted(CALLABLES))
def test_queries_and_weights_are_keywords(name):
    """Weights in the third place, as in scikit-learn, must not be taken for queries."""
    if name == "RankingData":
        return
    parameters = inspect.signature(CALLABLES[name]).parameters
    by_keyword = {"qid", "group", "sample_weight", "query_weight"}
    kinds = {parameters[key].kind for key in by_keyword & {*parameters}}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}


def test_weights_by_position_are_an_error():
    X, y, _ = marginrank.make_ranking(3, 5, 2, random_state=0)
    with pytest.raises(TypeError, match="positional"):
        marginrank.RankSVM().fit(X, y, y)
