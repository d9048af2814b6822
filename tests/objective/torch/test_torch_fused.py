"""The Triton kernels for sums over pairs, under Triton's interpreter, and what they launch.

Sums of PyTorch's operations are the truth: test_torch_pair_sums.py compares them with the native
kernels. The interpreter takes a second per point, so problems are tiny; `pytest -m triton` runs all
of test_backends.py on these kernels, and compiles them.
"""

import json
import math
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.torch_problems import labels_of
from helpers.triton_backend import on_cpu, speed_up

from marginrank import RankingData
from marginrank.fit.inputs import choose_pairs, objective_on
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_weights import gain_difference
from marginrank.operators.torch.kernels import LevelPlan
from marginrank.operators.torch.matrix import TorchMatrix
from marginrank.solvers import find_solver

pytest.importorskip("triton")
LAUNCHES = Path(__file__).parents[3] / "benchmarks" / "launches.py"
LaunchCount = runpy.run_path(str(LAUNCHES))["LaunchCount"]
N_FEATURES = 3
TO_THE_HOST = ("_local_scalar_dense", "item", "nonzero", "unique", "is_nonzero")


def small_data(sizes=(40, 5, 1), k=5, weights=False):
    """Return documents of a few queries, the first longer than a chunk."""
    rng = np.random.default_rng(0)
    n = sum(sizes)
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    X[::3] = np.round(X[::3])  # ties
    weight = rng.uniform(0.5, 2.0, n) if weights else None
    return RankingData(X, labels_of(k, n, rng), group=sizes, sample_weight=weight)


def points(data, loss, **options):
    """Return the same point by PyTorch's operations, and by the Triton kernels."""
    chosen = choose_pairs(data, LOSSES[loss], **options)
    w = np.linspace(-1.0, 1.0, N_FEATURES)
    scores = torch.as_tensor(np.asarray(data.X, dtype=np.float64) @ w)
    matrices = TorchMatrix.of(data), on_cpu(data)
    return [objective_on(data, chosen, matrix=matrix).at(w, scores) for matrix in matrices]


@pytest.mark.parametrize(
    ("kind", "loss", "k"),
    [("plain", "squared_hinge", 5), ("weighted", "huber", 5), ("adjacent", "hinge", "l")],
)
def test_bits_are_those_of_the_operations(kind, loss, k):
    data = small_data(k=k, weights=kind == "weighted")
    options = {"pair_selection": "adjacent", "margin": "label"} if kind == "adjacent" else {}
    if kind == "weighted":
        options["factors"] = gain_difference(data.y)
    expected, found = points(data, loss, **options)
    assert found.losses == expected.losses
    assert torch.equal(found.score_gradient, expected.score_gradient)
    assert torch.equal(found._evaluation.by_query, expected._evaluation.by_query)
    u = torch.as_tensor(np.random.default_rng(1).normal(size=data.n_documents))
    images = found.hess_vec_scores(u), expected.hess_vec_scores(u)
    # The interpreter rounds twice where a GPU and PyTorch's addcmul round once.
    torch.testing.assert_close(*images, rtol=1e-15, atol=1e-15 * float(images[1].abs().max()))


def test_a_score_that_is_no_number_is_that_of_its_query_alone():
    data = small_data((4, 3))
    kernel = (
        on_cpu(data).plans.of(choose_pairs(data, LOSSES["huber"]).pairs).kernel(LOSSES["huber"])
    )
    for bad in (math.nan, math.inf):
        scores = torch.tensor([1.0, bad, 0.0, 2.0, 0.5, 0.25, 1.0], dtype=torch.float64)
        found = kernel.evaluate(scores)
        assert found.slopes.isnan().tolist() == [True] * 4 + [False] * 3
        assert found.totals[:3].isnan().all()


def test_totals_are_right_to_the_last_digit():
    from marginrank.operators.torch.triton_sums import total

    speed_up()
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000) * 10.0 ** rng.integers(-9, 9, 5000)
    assert float(total(torch.as_tensor(values))) == pytest.approx(math.fsum(values), rel=1e-15)
    assert math.isnan(float(total(torch.tensor([1.0, math.inf], dtype=torch.float64))))


def test_long_queries_have_the_operations_that_sort():
    data = small_data((3000, 2))
    plan = on_cpu(data).plans.of(choose_pairs(data, LOSSES["huber"]).pairs)
    assert isinstance(plan, LevelPlan)


def launched(call):
    with LaunchCount() as count:
        call()
    return count.names


@pytest.fixture(scope="module")
def five_levels():
    data = small_data((6, 5))
    objective = objective_on(data, choose_pairs(data, LOSSES["squared_hinge"]), matrix=on_cpu(data))
    return objective, objective.at(np.ones(N_FEATURES))


def test_launches_of_a_point(five_levels):
    """Two more are copies, of w and of the numbers, which the CPU does not need."""
    objective, _ = five_levels
    names = launched(lambda: objective.at(np.zeros(N_FEATURES)))
    assert names == [
        *("_dot", "_keys", "_evaluate", "_segment_sums", "_table_totals"),
        *("_transpose_dot", "_add_blocks", "cat"),
    ]


def test_launches_of_a_line_search_step(five_levels):
    """A value, a slope and a curvature; two more are copies of numbers to the host."""
    objective, point = five_levels
    v = np.ones(N_FEATURES)
    scores = objective.scores(v)

    def step():
        moved = point.move(0.5, v, scores)
        return moved.slope(v, scores), moved.curvature(v, scores)

    names = launched(step)
    assert len(names) <= 15
    assert names.count("_local_scalar_dense") == 1  # of the curvature


def test_launches_of_a_product(five_levels):
    """Two more are copies of v and of the product; one of them waits for the device."""
    _, point = five_levels
    names = launched(lambda: point.hess_vec(np.ones(N_FEATURES)))
    assert names == ["_dot", "_product", "_transpose_dot", "_add_blocks"]
    assert not any(name in TO_THE_HOST for name in names)


def test_launches_of_a_fit():
    """Each step of tron has a point, moved along known scores, its gradient, and products."""
    data = small_data((5, 4), k=3)
    objective = objective_on(data, choose_pairs(data, LOSSES["squared_hinge"]), matrix=on_cpu(data))
    found = []
    names = launched(
        lambda: found.append(find_solver("tron", objective.loss)(objective, tol=1e-2, max_iter=3))
    )
    lines = found[0].history
    products = sum(line.inner_iterations for line in lines)
    assert names.count("_product") == products
    assert len(names) <= 8 * 2 + 17 * len(lines) + 7 * products


def test_several_vectors_have_the_bits_of_each_alone():
    data = small_data((40, 5))
    for matrix in (TorchMatrix.of(data), on_cpu(data)):
        features = matrix.features
        rng = np.random.default_rng(1)
        vs = torch.as_tensor(rng.normal(size=(3, N_FEATURES)))
        zs = torch.as_tensor(rng.normal(size=(3, data.n_documents)))
        together = features.dots(vs), features.transpose_dots(zs)
        for k in range(3):
            assert torch.equal(together[0][k], features.dot(vs[k]))
            assert torch.equal(together[1][k], features.transpose_dot(zs[k]))


COMPILE = """
import json
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from marginrank.operators.torch import triton_features as f, triton_pairs as p, triton_sums as s

reals, integers, counts = "*fp64", "*i64", "i32"
of_pairs = {name: reals for name in "u keys query_weight pieces preferred other curvature".split()}
of_pairs |= {"image": reals, "columns": reals, "levels": "*i32", "chunks": integers}
of_pairs |= {name: counts for name in "n_pieces n_ranks n_documents width".split()}
tiles = {"WEIGHTED": True, "DOCUMENTS": p.DOCUMENTS, "PARTNERS": p.PARTNERS}
of_features = {name: reals for name in "v z scores sums totals".split()} | {"X": "*fp32"}
of_features |= {name: counts for name in "n_rows n_columns n_blocks".split()}
rows = {"ROWS": f.ROWS, "COLUMNS": f.COLUMNS, "ROWS_OF_A_SUM": f.ROWS_OF_A_SUM, "SUMS": f.SUMS}
of_sums = {name: reals for name in "scores margins keys slopes weight table values sums".split()}
of_sums |= {"columns": reals, "totals": reals, "offsets": integers, "counting": "*i32"}
of_sums |= {name: counts for name in "n_entries n_rows n_columns".split()}
sizes = {"HAS_MARGINS": True, "TILE": s.TILE, "BLOCK": s.BLOCK, "ROWS": s.ROWS}
made = {}
for kernel, types, constants in (
    (p._keys, of_sums, sizes), (p._evaluate, of_pairs, tiles), (p._product, of_pairs, tiles),
    (s._segment_sums, of_sums, sizes), (s._block_sums, of_sums, sizes),
    (s._table_totals, of_sums, sizes), (f._dot, of_features, rows),
    (f._transpose_dot, of_features, rows), (f._add_blocks, of_features, rows),
):
    fixed = {name: constants[name] for name in kernel.arg_names if name in constants}
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    for target in (GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)):
        source = ASTSource(kernel, signature, constexprs=fixed)
        done = triton.compile(source, target=target, options={"enable_fp_fusion": False})
        made.setdefault(kernel.__name__, []).extend(done.asm)
print(json.dumps(made))
"""


@pytest.mark.triton
def test_kernels_compile_for_gpus(tmp_path):
    """For an A100 and an MI300, without one: to machine code."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, check=True, capture_output=True, text=True
    )
    made = json.loads(done.stdout)
    assert len(made) == 9
    assert all({"cubin", "hsaco"} <= set(kinds) for kinds in made.values())
