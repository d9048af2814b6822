"""What there is to try, and in which order it is tried."""

import numpy as np
import pytest

from marginrank import RankingData, make_ranking
from marginrank.fit.linear import Parameters
from marginrank.selection.folds import query_folds
from marginrank.selection.scoring import SplitScorer, fold_splits
from marginrank.selection.search import FitCount, Search
from marginrank.selection.space import FINEST, SearchSpace, midpoints

DATA = RankingData(*make_ranking(30, 10, 5, noise=1.0, random_state=0))
FOLDS = query_folds(DATA, 3)


def search_of(space, is_time_up=None, metric="ndcg@5", n_fits=None):
    scorer = SplitScorer(fold_splits(DATA, FOLDS), metric)
    return Search(DATA, space, scorer, is_time_up=is_time_up, count=FitCount(n_fits))


def test_a_space_has_all_combinations_and_the_precision_of_a_search():
    space = SearchSpace(
        Parameters(tol=1e-9), {"loss": ["huber"], "scale": [None, "query"]}, [1.0, 0.1]
    )
    assert space.varied == ["scale"]
    assert [one.scale for one in space.combinations] == [None, "query"]
    assert {(one.loss, one.tol) for one in space.combinations} == {("huber", 1e-4)}
    assert space.n_candidates(coarse=False) == 4
    for grid in space.grids(DATA, None, coarse=False):
        np.testing.assert_array_equal(grid.values, [0.1, 1.0])


def test_a_looser_fit_needs_no_tighter_search():
    assert SearchSpace(Parameters(tol=1e-2), {}).combinations[0].tol == 1e-2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": {"loss": ["hinge", "hingee"]}}, "hingee"),
        ({"base": Parameters(solver="newton"), "axes": {"loss": ["huber", "hinge"]}}, "newton"),
        ({"values": [1.0, -1.0]}, "C=-1.0"),
        ({"n_points": 0}, "n_points=0"),
    ],
)
def test_wrong_values_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SearchSpace(**({"base": Parameters(), "axes": {}} | options))


def test_grids_come_from_the_rows_that_are_looked_at():
    """Documents of other queries have no say in the grid, however large they are."""
    rows = FOLDS[0].train
    X = np.array(DATA.X)
    X[FOLDS[0].test] *= 1000.0
    other = RankingData(X, DATA.y, DATA.query_ids[DATA.qid])
    space = SearchSpace(Parameters(), {"scale": [None, "standard"]}, n_points=5)
    ours, others = (space.grids(data, rows, coarse=False) for data in (DATA, other))
    for a, b in zip(ours, others, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
    whole, own = (next(space.grids(data, None, coarse=False)) for data in (other, DATA))
    assert whole.values[0] < own.values[0]


def test_without_a_limit_every_candidate_is_tried_once():
    space = SearchSpace(Parameters(), {"scale": [None, "query"]}, [0.01, 1.0])
    run = search_of(space, n_fits=12)
    tried = [(c.combination, c.parameters.C) for c in run.run()]
    assert len(tried) == run.count.done == 12
    assert set(tried) == {(k, C) for k in (0, 1) for C in (0.01, 1.0)}
    assert [combination for combination, _ in tried] == [0] * 6 + [1] * 6
    assert not run.is_out_of_time
    complete = run.candidates
    assert run.mean == max(candidate.scores.mean() for candidate in complete)
    assert run.best.scores.mean() == run.mean


def test_grids_become_finer_around_the_best():
    space = SearchSpace(Parameters(), {"scale": [None, "query"]}, n_points=3)
    run = search_of(space, lambda: False)
    for _ in run.run():
        pass
    assert run.count.done == 3 * len(run.candidates) > 18
    coarse, finer = run.candidates[:6], run.candidates[6:]
    assert {candidate.combination for candidate in finer} == {run.best.combination}
    assert max(c.scores.mean() for c in coarse) <= run.mean
    own = [c.parameters.C for c in run.candidates if c.combination == run.best.combination]
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

    space = SearchSpace(Parameters(), {}, [1e-4, 1e-2, 1.0])
    run = search_of(space, is_time_up)
    is_complete = [c.is_complete for c in run.run()]
    assert run.is_out_of_time
    # It is not asked whether time is up before that.
    first = is_complete.index(True) + 1
    assert first + n_looks - 1 == len(is_complete) == run.count.done < 9


def test_the_best_so_far_is_the_one_that_would_be_chosen():
    """Of equals, the smallest C: grids become finer around it."""

    def constant(y, scores, qid=None, per_query=False):
        return 0.5

    space = SearchSpace(Parameters(tol=1e-4), {"scale": [None, "query"]}, n_points=2)
    run = search_of(space, lambda: False, metric=constant)
    for _ in run.run():
        best = run.result(compare=False).parameters if run.has_complete else None
        assert best == (None if run.best is None else run.best.parameters)
    assert run.best.value == min(c.value for c in run.candidates if c.combination == 0)


def test_midpoints_are_between_neighbours():
    Cs = np.array([1.0, 4.0, 64.0])
    np.testing.assert_allclose(midpoints(Cs, 4.0), [2.0, 16.0])
    np.testing.assert_allclose(midpoints(Cs, 1.0), [2.0])
    np.testing.assert_allclose(midpoints(Cs, 64.0), [16.0])
    close = 2.0 ** np.array([0.0, 0.25, 0.75])
    np.testing.assert_allclose(midpoints(close, close[1]), [2.0**0.5])
    assert midpoints(close, 1.0).size == 0
    assert midpoints(np.ones(1), 1.0).size == 0
