"""What a product does, seen operation by operation: proven without a card.

Floating-point prefix sums and scattered additions are not the same from run to run on a card, every
word to the host makes it wait, and memory is what a product costs.
"""

import numpy as np
import pytest
import torch
from helpers.torch_problems import N_FEATURES, both, make_data
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_weights import gain_difference
from marginrank.operators.torch.levels import AdjacentLevels, AllLevels

UNORDERED = ("cumsum", "cumprod", "index_add", "scatter_add", "scatter_reduce", "index_reduce")
TO_THE_HOST = ("_local_scalar_dense", "item", "nonzero", "unique", "is_nonzero")
N = 20_000
V = np.array([1.0, 0.3, -0.7, 0.1])


def bytes_of(tensors):
    return sum(t.numel() * t.element_size() for t in tensors)


class Watch(TorchDispatchMode):
    """Writes operations down, and the memory they touch."""

    def __init__(self):
        super().__init__()
        self.operations, self.unordered, self.to_the_host = [], [], []
        self.bytes = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if function.is_view or "empty" in str(function) or "detach" in str(function):
            return result
        name = function.overloadpacket.__name__
        given = [t for t in tree_leaves(args) if isinstance(t, torch.Tensor)]
        made = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        self.operations.append(name)
        if any(word in name for word in UNORDERED) and made[0].is_floating_point():
            self.unordered.append(name)
        if any(word == name for word in TO_THE_HOST):
            self.to_the_host.append(name)
        if name == "index_select":  # no more of the source than comes out
            given = [min(given[0], made[0], key=lambda t: t.numel()), given[1]]
        self.bytes += bytes_of(given) + bytes_of(made)
        return result


def watched(call, *args):
    with Watch() as watch:
        call(*args)
    return watch


@pytest.fixture(params=["plain", "weighted", "adjacent", "logistic"])
def point(request):
    options, loss = {}, "squared_hinge"
    data = make_data(5, N, 200, weights=request.param == "weighted")
    if request.param == "weighted":
        options["pair_weights"] = gain_difference(data.y)
    elif request.param == "adjacent":
        options["pair_selection"] = "adjacent"
    elif request.param == "logistic":
        loss = "logistic"
    return both(data, LOSSES[loss], **options)[1].at(V)


def test_nothing_is_added_in_an_order_of_the_devices_own(point):
    design, loss = point.objective.design, point.objective.pair_loss
    for call in (
        lambda: design.hess_vec(loss, point.state, V),
        lambda: design.evaluate(loss, V, None),
        lambda: design.space.dot(point.scores, point.scores),
    ):
        assert watched(call).unordered == []


def test_a_product_does_not_wait_for_the_device(point):
    """One copy to the host brings the product itself."""
    design, loss = point.objective.design, point.objective.pair_loss
    watch = watched(design.product, loss, point.state, torch.as_tensor(V))
    assert watch.to_the_host == []
    assert watched(design.evaluate, loss, V, None).to_the_host == []


def test_a_product_is_few_operations_and_little_memory():
    """At five levels; matrix products at 136 features in float32 read 1,088 bytes a document."""
    point = both(make_data(5, N, 200, layout=np.float32), LOSSES["squared_hinge"])[1].at(V)
    design, loss = point.objective.design, point.objective.pair_loss
    assert len(watched(design.hess_vec, loss, point.state, V).operations) <= 60
    pairs = watched(loss.hess_vec, point.state, point.scores)
    assert pairs.bytes / N < 420
    assert len(pairs.operations) <= 40


def test_the_watch_sees_what_it_looks_for():
    values, index = torch.rand(9), torch.arange(9)
    assert watched(lambda: values.cumsum(0)).unordered == ["cumsum"]
    assert watched(lambda: torch.zeros(9).index_add_(0, index, values)).unordered
    assert watched(lambda: index.cumsum(0)).unordered == []
    assert watched(lambda: values.sum().item()).to_the_host


@pytest.mark.parametrize("k", [5, 300, "l"])
def test_a_state_is_small(k):
    data = make_data(k, N, 20)
    objective = both(data, LOSSES["squared_hinge"])[1]
    point = objective.at(V)
    state = point.state.state
    kept = [state.curvature]
    for ranges in state.ranges:
        kept += [ranges.source, ranges.starts, *ranges.stops]
    levels = state.ranges[0].levels
    kept += [levels.leaves.leaf, levels.leaves.level, levels.leaves.first]
    allowed = 12 * levels.leaves.n_bits + 100
    assert bytes_of(kept) / N <= allowed


def to_meta(thing, seen=None):
    """Return the same object with all its tensors on meta."""
    seen = {} if seen is None else seen
    if isinstance(thing, torch.Tensor):
        return thing.to("meta")
    if isinstance(thing, tuple) and hasattr(thing, "_fields"):
        return type(thing)(*(to_meta(value, seen) for value in thing))
    if isinstance(thing, (list, tuple)):
        return type(thing)(to_meta(value, seen) for value in thing)
    if not type(thing).__module__.startswith("marginrank.operators.torch"):
        return thing
    if id(thing) not in seen:
        other = seen[id(thing)] = object.__new__(type(thing))
        for name, value in vars(thing).items():
            other.__dict__[name] = to_meta(value, seen)
    return seen[id(thing)]


def test_products_run_on_meta(point):
    """No value is ever looked at, and no tensor of another device comes in."""
    seen = {}
    here = point.objective.design, point.objective.pair_loss, point.state
    design, loss, state = (to_meta(x, seen) for x in here)
    assert isinstance(state.state.ranges[0].levels, (AllLevels, AdjacentLevels))
    v = torch.empty(N_FEATURES, dtype=torch.float64, device="meta")
    product, scores = design.product(loss, state, v)
    assert product.device.type == scores.device.type == "meta"
    assert product.shape == (N_FEATURES,)
    assert scores.shape == (N,)
    assert product.dtype == scores.dtype == torch.float64
