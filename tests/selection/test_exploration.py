"""What there is to try, and in which order it is tried."""

import numpy as np
import pytest

from marginrank import RankingData, make_ranking
from marginrank.fit.linear import Parameters
from marginrank.selection.exploration import FINEST, Count, Exploration, Space, midpoints
from marginrank.selection.folds import query_folds
from marginrank.selection.judges import FoldJudge
from marginrank.selection.selection import Search

DATA = RankingData(*make_ranking(30, 10, 5, noise=1.0, random_state=0))
FOLDS = query_folds(DATA, 3)


def exploration(is_time_up=None, metric="ndcg@5", *, refines=False):
    search = Search(DATA, FoldJudge(DATA, FOLDS, metric, None))
    return Exploration(search, is_time_up, refines=refines)


def test_a_space_has_all_combinations_and_the_precision_of_a_search():
    space = Space(Parameters(tol=1e-9), {"loss": ["huber"], "scale": [None, "query"]}, [1.0, 0.1])
    space.check()
    assert space.varied == ["scale"]
    assert [one.scale for one in space.combinations] == [None, "query"]
    assert {(one.loss, one.tol) for one in space.combinations} == {("huber", 1e-5)}
    assert space.n_candidates(99) == 4
    for grid in space.grids(DATA, 99, None):
        np.testing.assert_array_equal(grid.Cs, [0.1, 1.0])


def test_a_looser_fit_needs_no_tighter_search():
    assert Space(Parameters(tol=1e-2), {}).combinations[0].tol == 1e-2


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (Space(Parameters(), {"loss": ["hinge", "hingee"]}), "hingee"),
        (Space(Parameters(solver="newton"), {"loss": ["huber", "hinge"]}), "newton"),
        (Space(Parameters(), {}, [1.0, -1.0]), "C=-1.0"),
        (Space(Parameters(), {}, n_points=0), "n_points=0"),
    ],
)
def test_wrong_values_are_refused(space, message):
    with pytest.raises(ValueError, match=message):
        space.check()


def test_grids_come_from_the_rows_that_are_looked_at():
    """Documents of other queries have no say in the grid, however large they are."""
    rows = FOLDS[0].train
    X = np.array(DATA.X)
    X[FOLDS[0].test] *= 1000.0
    other = RankingData(X, DATA.y, DATA.query_ids[DATA.qid])
    space = Space(Parameters(), {"scale": [None, "standard"]})
    for a, b in zip(space.grids(DATA, 5, rows), space.grids(other, 5, rows), strict=True):
        np.testing.assert_array_equal(a.Cs, b.Cs)
    whole = next(space.grids(other, 5, None))
    assert whole.Cs[0] < next(space.grids(DATA, 5, None)).Cs[0]


def test_without_a_limit_every_candidate_is_tried_once():
    space = Space(Parameters(), {"scale": [None, "query"]}, [0.01, 1.0])
    count, run = Count(12), exploration()
    tried = [
        (c.combination, c.parameters.C) for c in run.explore(space.grids(DATA, 0, None), count)
    ]
    assert len(tried) == count.done == 12
    assert set(tried) == {(k, C) for k in (0, 1) for C in (0.01, 1.0)}
    assert [combination for combination, _ in tried] == [0] * 6 + [1] * 6
    assert not run.is_out_of_time
    complete = run.search.candidates
    assert run.mean == max(candidate.scores.mean() for candidate in complete)
    assert run.best.scores.mean() == run.mean


def test_grids_become_finer_around_the_best():
    space = Space(Parameters(), {"scale": [None, "query"]}, [1e-4, 1e-2, 1.0])
    count, run = Count(None), exploration(lambda: False, refines=True)
    for _ in run.explore(space.grids(DATA, 0, None), count):
        pass
    assert count.done == 3 * len(run.search.candidates) > 18
    coarse, finer = run.search.candidates[:6], run.search.candidates[6:]
    assert {candidate.combination for candidate in finer} == {run.best.combination}
    assert max(c.scores.mean() for c in coarse) <= run.mean
    own = [c.parameters.C for c in run.search.candidates if c.combination == run.best.combination]
    octaves = np.sort(np.log2(own))
    k = int(np.searchsorted(octaves, np.log2(run.best.parameters.C)))
    assert np.diff(octaves[max(k - 1, 0) : k + 2]).max() <= FINEST + 1e-9
    assert not run.is_out_of_time


@pytest.mark.parametrize("n_looks", [1, 2, 5])
def test_a_limit_ends_it_but_not_before_a_candidate_is_complete(n_looks):
    looks = []

    def is_time_up():
        looks.append(None)
        return len(looks) >= n_looks

    space = Space(Parameters(), {}, [1e-4, 1e-2, 1.0])
    count, run = Count(9), exploration(is_time_up)
    is_complete = [c.is_complete for c in run.explore(space.grids(DATA, 0, None), count)]
    assert run.is_out_of_time
    # It is not asked whether time is up before that.
    first = is_complete.index(True) + 1
    assert first + n_looks - 1 == len(is_complete) == count.done < 9


def test_the_best_so_far_is_the_one_that_would_be_chosen():
    """Of equals, the smallest C: grids become finer around it."""

    def constant(y, scores, qid=None, per_query=False):
        return 0.5

    run = exploration(metric=constant, refines=True)
    space = Space(Parameters(), {"scale": [None, "query"]}, [0.5, 1.0])
    for _ in run.explore(space.grids(DATA, 0, None), Count(12)):
        chosen = run.search.selection().parameters if run.has_complete else None
        assert chosen == (None if run.best is None else run.best.parameters)
    assert run.best.parameters.C == 0.5


def test_midpoints_are_between_neighbours():
    Cs = np.array([1.0, 4.0, 64.0])
    np.testing.assert_allclose(midpoints(Cs, 4.0), [2.0, 16.0])
    np.testing.assert_allclose(midpoints(Cs, 1.0), [2.0])
    np.testing.assert_allclose(midpoints(Cs, 64.0), [16.0])
    close = 2.0 ** np.array([0.0, 0.25, 0.75])
    np.testing.assert_allclose(midpoints(close, close[1]), [2.0**0.5])
    assert midpoints(close, 1.0).size == 0
    assert midpoints(np.ones(1), 1.0).size == 0
