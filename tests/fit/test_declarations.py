"""The declarations of the parameters, and what must agree with them."""

import inspect
import subprocess
import sys
from dataclasses import fields

import pytest

from marginrank import (
    AdditiveRankSVM,
    FusionRanker,
    KernelRankSVM,
    RankSVM,
    RankSVMCV,
    SGDRankSVM,
    SparseRankSVM,
    SparseRankSVMCV,
    linear_path,
    sparse_path,
)
from marginrank._utils.parameters import ParameterError, declared
from marginrank.additive.fit import AdditiveParameters
from marginrank.fit.fusion import FusionParameters
from marginrank.fit.linear import Parameters
from marginrank.fit.online_learner import OnlineParameters
from marginrank.fit.sparse import SparseParameters
from marginrank.models.kernels import Kernel
from marginrank.models.parameters import ESTIMATOR_ONLY, MARGINS, PAIR_COSTS, LinearDeclaration
from marginrank.objective.losses import LOSSES
from marginrank.solvers import solver_names

KINDS = (Parameters, SparseParameters, OnlineParameters, FusionParameters)
ESTIMATORS = (RankSVM, SparseRankSVM, SGDRankSVM, FusionRanker)


def defaults(kind):
    return {field.name: field.default for field in fields(kind)}


@pytest.mark.parametrize(
    ("estimator", "kind"), list(zip(ESTIMATORS, KINDS, strict=True)), ids=lambda kind: kind.__name__
)
def test_estimators_have_the_declared_names_and_defaults(estimator, kind):
    arguments = inspect.signature(estimator.__init__).parameters
    shown = {name: p.default for name, p in arguments.items() if name != "self"}
    assert shown == defaults(kind) | ESTIMATOR_ONLY[estimator.__name__]


def test_the_additive_estimator_has_the_declared_names_and_defaults():
    expected = defaults(AdditiveParameters) | {"verbose": 0, "random_state": 0}
    assert AdditiveRankSVM().get_params() == expected


def test_the_kernel_estimator_has_the_parameters_of_the_linear_one():
    shown = KernelRankSVM().get_params()
    kernel = defaults(Kernel)
    expected = defaults(LinearDeclaration) | {"verbose": 0, "random_state": 0}
    expected |= {"kernel": "rbf", "n_components": None, "device": None}
    expected |= {name: kernel[name] for name in ("degree", "coef0")}
    # Chosen by benchmarks/defaults.py.
    expected |= {"gamma": "auto", "scale": "auto", "C": 100.0, "normalization": "query"}
    assert shown == expected


@pytest.mark.parametrize("function", [sparse_path, SparseRankSVMCV.__init__])
def test_paths_have_the_defaults_of_sparse_models(function):
    shown = inspect.signature(function).parameters
    expected = defaults(SparseParameters)
    # As below for the objective.
    others = {"C", "radius", "tol", "objective", "solver", "variant", "device"}
    for name in set(expected) - others:
        assert shown[name].default == expected[name]


@pytest.mark.parametrize("function", [linear_path, RankSVMCV.__init__])
def test_paths_over_C_have_the_parameters_of_linear_models(function):
    shown = inspect.signature(function).parameters
    expected = defaults(LinearDeclaration)
    # All of a path share their pairs: an objective that weighs them anew has no place there.
    others = set(expected) - {"C", "lam", "tol", "objective"}
    if function is RankSVMCV.__init__:  # tries several
        others -= {"normalization", "scale"}
    for name in others:
        assert shown[name].default == expected[name]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_declared_and_its_default_is_right(kind):
    assert list(declared(kind)) == [field.name for field in fields(kind)]
    kind()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_checked_by_name(kind):
    for name in declared(kind):
        if name == "pair_cost":  # an object may be a matrix, which only the labels can refuse
            continue
        wrong = -1 if name != "n_jobs" else 0
        with pytest.raises(ParameterError, match=name) as refused:
            kind(**{name: wrong})
        assert refused.value.parameter == name


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_help_names_what_there_is_to_choose_from(kind):
    solvers = () if kind is OnlineParameters else solver_names(regularized=kind is SparseParameters)
    functions = {"pair_cost": PAIR_COSTS, "margin": MARGINS, "loss": LOSSES, "solver": solvers}
    for name, parameter in declared(kind).items():
        assert parameter.help.endswith("."), name
        choices = {*parameter.constraint.names(), *functions.get(name, ())}
        assert all(choice in parameter.help for choice in choices), name


def test_declarations_need_no_numpy():
    code = (
        "import sys, marginrank.models.parameters; "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'sklearn')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
