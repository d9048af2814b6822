"""Several objectives on the same documents in one sweep: each gets what it would have got alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.brute_force import BruteForce, explicit_pairs
from helpers.objectives import make_objective
from helpers.tables import each

from marginrank import RankingData, _core, make_ranking, operators
from marginrank.data.pair_lists import PairList
from marginrank.objective.losses import LOSSES
from marginrank.objective.pair_weights import gain_difference
from marginrank.objective.together import hess_vecs, make_gradients, points_at, scores_of

LOSS_NAMES = ["squared_hinge", "huber", "hinge"]
SIZES = {
    "short": np.arange(1, 40) % 9 + 1,
    "mixed": np.arange(60) * 7 % 50 + 1,
    "long": np.array([30, 1500, 1, 40, 700, 3]),  # two are cut into blocks
    "one": np.array([1100]),
}


def csr64(X):
    """Return X as CSR with indices of 64 bits."""
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


LAYOUTS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csr float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "csr64": csr64,
}


def make_data(sizes, n_features=21, layout=np.asarray, shuffled=False, levels=4):
    rng = np.random.default_rng(len(sizes))
    n_rows = int(np.sum(sizes))
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(np.float64)
    X[rng.random(X.shape) < 0.3] = 0.0
    y, qid = rng.integers(levels, size=n_rows), np.repeat(np.arange(len(sizes)), sizes)
    order = rng.permutation(n_rows) if shuffled else np.arange(n_rows)
    return RankingData(layout(X[order]), y[order], qid[order])


def without_fold(objective, fold, n_folds=5):
    """Return an objective with no weight on every fifth query."""
    left_out = np.arange(objective.pairs.n_queries) % n_folds == fold
    return objective.on(pairs=objective.pairs.without(left_out))


def make_problems(data, count, threads=1):
    """Return objectives that differ in all they may: C, loss, weights, margins and folds."""
    n_rows = len(data.y)
    kinds = [
        {},
        {"margins": np.linspace(-1.0, 1.0, n_rows)},
        {"pair_weights": gain_difference(data.y, lambda y: y)},
        {"pair_selection": "adjacent"},
    ]
    problems = [
        make_objective(
            data, LOSSES[LOSS_NAMES[k % 3]], C=0.1 * (k + 1), threads=threads, **kinds[k % 4]
        )
        for k in range(count)
    ]
    return [problems[0], *(without_fold(o, k % 7) for k, o in enumerate(problems[1:]))]


def vectors(problems, shift=0.0):
    n = problems[0].n_features
    return [np.cos(np.arange(n) * (k + 1.0) + shift) * 0.3 for k in range(len(problems))]


def one_by_one(problems, ws, vs):
    """Return all results of each objective by itself."""
    results = []
    for o, w, v in zip(problems, ws, vs, strict=True):
        seen = o.design.evaluate(o.pair_loss, w, None)
        product, moved = o.design.hess_vec(o.pair_loss, seen.state, v)
        again = o.design.evaluate(o.pair_loss, v, seen.state)
        combined = o.design.transpose_dot(seen.scores)
        results.append([*numbers(seen), *numbers(again), product, moved, moved, combined])
    return results


def in_one_sweep(problems, ws, vs):
    """Return the same from shared sweeps."""
    shared = problems[0].design.share([o.design for o in problems])
    losses = [o.pair_loss for o in problems]
    seen = shared.evaluate(losses, ws, [None] * len(ws))
    products = shared.hess_vec(losses, [e.state for e in seen], vs)
    again = shared.evaluate(losses, vs, [e.state for e in seen])
    scores, combined = shared.dot(vs), shared.transpose_dot([e.scores for e in seen])
    return [
        [*numbers(seen[k]), *numbers(again[k]), *products[k], scores[k], combined[k]]
        for k in range(len(problems))
    ]


def numbers(evaluation):
    return [evaluation.by_query, evaluation.score_gradient, evaluation.gradient, evaluation.scores]


def assert_same_numbers(found, expected):
    for result, alone in zip(found, expected, strict=True):
        for a, b in zip(result, alone, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max(initial=0.0))


def assert_same_bits(found, expected):
    for result, alone in zip(found, expected, strict=True):
        for a, b in zip(result, alone, strict=True):
            np.testing.assert_array_equal(a, b)


def assert_shared(problems):
    ws, vs = vectors(problems), vectors(problems, 1.0)
    assert_same_numbers(in_one_sweep(problems, ws, vs), one_by_one(problems, ws, vs))


@pytest.fixture
def instruction_sets():
    names = _core.instruction_sets()
    yield names
    _core.use_instruction_set(names[-1])


@each("layout", LAYOUTS.values())
@each("shuffled", [False, True])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_each_gets_what_it_gets_alone(sizes, shuffled, layout):
    assert_shared(make_problems(make_data(sizes, layout=layout, shuffled=shuffled), 7))


@pytest.mark.parametrize("n_features", [150, 700])
def test_chunks_shorter_than_blocks(n_features):
    # 21 columns let all queries of a block be one chunk
    assert_shared(make_problems(make_data(SIZES["mixed"], n_features), 7))


@pytest.mark.parametrize("count", range(1, 18))
def test_any_number_of_problems(count):
    assert_shared(make_problems(make_data(SIZES["mixed"]), count))


@pytest.mark.parametrize("n_features", [1, 3, 4, 8, 15, 16, 17, 136])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_features(n_features, dtype):
    data = make_data(SIZES["mixed"], n_features, lambda X: X.astype(dtype))
    assert_shared(make_problems(data, 5))


@pytest.mark.parametrize("n_features", [20_000, 70_000])
def test_many_features_in_few_sweeps(n_features):
    """Sums by block of five problems take too much memory, or those of one."""
    rng = np.random.default_rng(0)
    n_rows = int(SIZES["mixed"].sum())
    X = sp.random_array((n_rows, n_features), density=5e-4, random_state=rng, format="csr")
    qid = np.repeat(np.arange(len(SIZES["mixed"])), SIZES["mixed"])
    assert_shared(make_problems(RankingData(X, rng.integers(4, size=n_rows), qid), 5, threads=2))


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("layout", ["float32", "csr"])
def test_listed_pairs_and_levels_in_one_sweep(layout, shuffled):
    data = make_data(np.array([20, 600, 35, 30]), layout=LAYOUTS[layout], shuffled=shuffled)
    levels = make_problems(data, 3)
    pairs = explicit_pairs(data.y, data.qid)
    everything = PairList(np.column_stack([pairs.preferred, pairs.other]))
    listed = [
        make_objective(data, LOSSES[loss], C=0.2, pairs=everything)
        for loss in ("huber", "squared_hinge")
    ]
    listed[1] = without_fold(listed[1], 1, 4)
    assert_shared([levels[0], listed[0], levels[1], listed[1], levels[2]])


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("layout", ["float32", "csr"])
def test_the_number_of_threads_does_not_change_the_bits(sizes, layout):
    data = make_data(sizes, layout=LAYOUTS[layout])
    results = []
    for threads in (1, 2, 3):
        problems = make_problems(data, 6, threads)
        results.append(in_one_sweep(problems, vectors(problems), vectors(problems, 1.0)))
    assert_same_bits(results[1], results[0])
    assert_same_bits(results[2], results[0])


@each("layout", LAYOUTS.values())
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_the_company_does_not_change_the_bits(sizes, layout, instruction_sets):
    problems = make_problems(make_data(sizes, layout=layout), 9)
    ws, vs = vectors(problems), vectors(problems, 1.0)
    companies = [[k] for k in range(9)] + [[8, 1, 4], [3, 2], [7, 6, 5, 4, 3, 2, 1, 0], [5, 5, 0]]
    for name in instruction_sets:
        _core.use_instruction_set(name)
        together = in_one_sweep(problems, ws, vs)
        for company in companies:
            chosen = [[part[k] for k in company] for part in (problems, ws, vs)]
            assert_same_bits(in_one_sweep(*chosen), [together[k] for k in company])


def test_all_instruction_sets_agree_to_rounding(instruction_sets):
    problems = make_problems(make_data(SIZES["mixed"], layout=LAYOUTS["float32"]), 7)
    ws, vs = vectors(problems), vectors(problems, 1.0)
    for name in instruction_sets:
        _core.use_instruction_set(name)
        assert_same_numbers(in_one_sweep(problems, ws, vs), one_by_one(problems, ws, vs))


def test_scores_that_are_not_finite_stay_with_their_problem():
    problems = make_problems(make_data(SIZES["mixed"]), 3)
    ws, vs = vectors(problems), vectors(problems, 1.0)
    expected = in_one_sweep(problems, ws, vs)
    found = in_one_sweep(problems, [ws[0], np.full_like(ws[1], np.inf), ws[2]], vs)
    assert np.isnan(found[1][2]).all()
    assert_same_bits([found[0], found[2]], [expected[0], expected[2]])


def test_dropped_scores_are_not_overwritten_while_in_use():
    """Memory of scores that nobody holds is used again, and no other."""
    problems = make_problems(make_data(SIZES["mixed"]), 2)
    shared = problems[0].design.share([o.design for o in problems])
    losses = [o.pair_loss for o in problems]
    states = [e.state for e in shared.evaluate(losses, vectors(problems), [None, None])]
    kept = [scores for _, scores in shared.hess_vec(losses, states, vectors(problems))]
    expected = [scores.copy() for scores in kept]
    shared.hess_vec(losses, states, vectors(problems, 1.0))
    shared.hess_vec(losses, states, vectors(problems, 2.0))
    del problems, shared, losses, states
    for scores, before in zip(kept, expected, strict=True):
        np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("backend", ["native", "toy"])
def test_against_explicit_pairs(backend, monkeypatch):
    monkeypatch.setitem(operators.BACKENDS, "toy", "helpers.toy_backend:ToyMatrix.of")
    X, y, qid = make_ranking(7, (2, 9), 5, random_state=0)
    data = RankingData(X, y, qid)
    problems, judges = [], []
    for k in range(6):
        loss, C = LOSSES[LOSS_NAMES[k % 2]], 0.1 * (k + 1)
        objective = make_objective(data, loss, C=C, backend=backend)
        problems.append(without_fold(objective, k))
        weight = (np.unique(qid, return_inverse=True)[1] % 5 != k).astype(float)
        judges.append(BruteForce(X, explicit_pairs(y, qid, query_weight=weight), loss, C))
    ws, vs = vectors(problems), vectors(problems, 1.0)
    before = problems[0].sweeps
    points = points_at(problems, ws, [None] * 6)
    products, scores = hess_vecs(points, vs), scores_of(problems, vs)
    moved = [p.move(0.5, v, s) for p, v, s in zip(points, vs, scores, strict=True)]
    make_gradients(moved)
    assert problems[0].sweeps == before + 4
    for k, judge in enumerate(judges):
        there = ws[k] + 0.5 * vs[k]
        assert points[k].value == pytest.approx(judge.value(ws[k]), rel=1e-10)
        np.testing.assert_allclose(points[k].gradient, judge.gradient(ws[k]), atol=1e-10)
        np.testing.assert_allclose(products[k][0], judge.hessian(ws[k]) @ vs[k], atol=1e-10)
        np.testing.assert_allclose(moved[k].gradient, judge.gradient(there), atol=1e-10)


@pytest.mark.parametrize("operation", ["evaluate", "dot", "transpose_dot", "hess_vec"])
@pytest.mark.parametrize("sizes", [[5, 4, 6], [4, 5, 6, 1], [4, 5, 7]])
def test_other_documents_are_refused(operation, sizes):
    data, other = make_data([4, 5, 6], layout=np.asarray), make_data(sizes)
    pairs = [make_problems(d, 1)[0] for d in (data, other)]
    ws = vectors(pairs)
    designs, losses = [o.design for o in pairs], [o.pair_loss for o in pairs]
    seen = [d.evaluate(*at, None) for d, *at in zip(designs, losses, ws, strict=True)]
    arguments = {
        "evaluate": (losses, ws, [None, None]),
        "dot": (ws,),
        "transpose_dot": ([e.scores for e in seen],),
        "hess_vec": (losses, [e.state for e in seen], ws),
    }
    with pytest.raises(ValueError, match="must have the same documents in the same queries"):
        getattr(designs[0].share(designs), operation)(*arguments[operation])


def test_other_rows_are_refused():
    data = make_data(SIZES["short"])
    shuffled = RankingData(data.X[::-1], data.y[::-1], data.qid[::-1])
    problems = [make_problems(d, 1)[0] for d in (data, shuffled)]
    with pytest.raises(ValueError, match="must have the same documents in the same queries"):
        scores_of(problems, vectors(problems))


def test_a_vector_for_each_problem_is_required():
    problems = make_problems(make_data(SIZES["short"]), 2)
    ws = vectors(problems)
    with pytest.raises(ValueError, match="each problem needs a v with one entry per column"):
        scores_of(problems, ws[:1])
    with pytest.raises(ValueError, match="each problem needs a w with one entry per column"):
        points_at(problems, [ws[0], ws[1][:-1]], [None, None])
