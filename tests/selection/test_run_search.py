"""The choice of parameters: by folds or held-out data, in a given time, interrupted or nested."""

from itertools import count

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, RankSVMCV, make_ranking, metrics
from marginrank.fit.linear import Parameters, fit_linear, seed_from
from marginrank.selection import linear_paths
from marginrank.selection.folds import query_folds, rows_of
from marginrank.selection.scoring import SplitScorer
from marginrank.selection.search import run_search
from marginrank.selection.space import SearchSpace

X, Y, QID = make_ranking(30, 10, 5, noise=1.0, random_state=0)
DATA = RankingData(X, Y, QID)
SPACE = SearchSpace(Parameters(), {"loss": ["squared_hinge", "logistic"]}, [0.001, 0.1, 10.0])
FROM_DATA = SearchSpace(Parameters(), SPACE.axes, n_points=3)
SMALL = SearchSpace(Parameters(), {}, [0.001, 0.1, 10.0])


def ndcg(data, rows, w):
    return metrics.ndcg(data.y[rows], data.X[rows] @ w, qid=data.qid[rows], k=10, ties="average")


def interrupt_after(n):
    def on_fit(progress):
        if progress.done == n:
            raise KeyboardInterrupt

    return on_fit


def test_the_best_of_all_candidates_is_chosen():
    found = run_search(DATA, SPACE, cv=3)
    folds = query_folds(DATA, 3, seed=0)
    for candidate, mean in zip(found.candidates, found.mean, strict=True):
        scores = [
            ndcg(DATA, f.test, fit_linear(rows_of(DATA, f.train), candidate.parameters).coef)
            for f in folds
        ]
        assert mean == pytest.approx(np.mean(scores), abs=5e-3)
    assert len(found.candidates) == 6
    chosen = found.candidates[found.best_index].parameters
    assert found.mean[found.best_index] == found.mean.max()
    assert (found.parameters.C, found.parameters.loss) == (chosen.C, chosen.loss)
    assert found.parameters.tol == 1e-6
    assert (found.n_tried, found.n_combinations) == (2, 2)
    assert found.comparison.n_queries == 30
    assert not found.is_interrupted
    assert not found.is_out_of_time


def test_it_chooses_as_the_estimator_does():
    scales = [None, "query"]
    model = RankSVMCV(
        n_points=5, cv=3, random_state=1, tol=1e-3, scale=scales, normalization="none"
    ).fit(DATA)
    space = SearchSpace(Parameters(tol=1e-3), {"scale": scales}, n_points=5)
    found = run_search(DATA, space, cv=3, seed=seed_from(1))
    np.testing.assert_array_equal(found.mean, model.search_.mean)
    assert model.best_params_["C"] == found.parameters.C
    assert found.comparison == model.comparison_


def test_held_out_data_decide_if_there_are_any():
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    found = run_search(DATA, SMALL, validation=held_out)
    for candidate, mean in zip(found.candidates, found.mean, strict=True):
        model = RankSVM(C=candidate.parameters.C).fit(DATA)
        assert mean == pytest.approx(ndcg(held_out, slice(None), model.coef_), abs=5e-3)


def test_the_simplest_within_an_error_of_the_best():
    best, simple = (run_search(DATA, SMALL, cv=3, rule=rule) for rule in ("best", "one_se"))
    assert simple.parameters.C <= best.parameters.C
    assert simple.rule == "one_se"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "two_se"}, "rule='two_se' must be one of 'best', 'one_se'"),
        ({"cv": 31}, "31 folds need as many queries, and there are 30"),
        (
            {"cv": 30, "nested": True},
            "nested cross-validation cannot split the training rows of fold 1: 30",
        ),
        ({"budget": 0.0}, "budget=0.0 must be a finite number, more than 0"),
        ({"validation": DATA, "rule": "one_se"}, "rule='one_se' .*folds"),
        ({"validation": DATA, "nested": True}, "nested .*folds"),
        ({"validation": RankingData(X[:, :4], Y, QID)}, "validation has 4 features, but X has 5"),
        ({"metric": "ndgc"}, "metric 'ndgc' is not known"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run_search(DATA, SMALL, **options)


def test_a_fold_without_pairs_is_named():
    y = np.where(QID == 3, Y, 0)
    folds = query_folds(RankingData(X, y, QID), 3, seed=0)
    (number,) = [fold.number for fold in folds if (QID[fold.test] == 3).any()]
    with pytest.raises(ValueError, match=f"fold {number} has no pair to learn from"):
        run_search(RankingData(X, y, QID), SMALL, cv=3)


def test_a_metric_without_a_value_anywhere_is_told():
    held_out = RankingData(X, np.zeros(len(Y)), QID)
    with pytest.raises(ValueError, match=r"auc .*every fold"):
        run_search(DATA, SMALL, validation=held_out, metric="auc")


def test_a_C_that_nobody_gave_is_not_blamed_for_tiny_features():
    tiny = RankingData(X * 1e-100, Y, QID)
    with pytest.raises(ValueError, match="features of this scale; use scale='standard' or"):
        run_search(tiny, SearchSpace(Parameters(), {}), cv=3)
    with pytest.raises(ValueError, match=r"C=1e\+200 times the weights of all pairs is"):
        run_search(tiny, SearchSpace(Parameters(), {}, [1e200]), cv=3)
    scaled = run_search(tiny, SearchSpace(Parameters(scale="standard"), {}), cv=3)
    assert np.isfinite(scaled.mean).all()


class TestBudget:
    @pytest.fixture
    def clock(self):
        """Return a clock that goes on by a second whenever it is looked at."""
        seconds = count()
        return lambda: next(seconds)

    def test_all_combinations_come_before_finer_grids(self, clock):
        found = run_search(DATA, FROM_DATA, cv=3, budget=1e6, clock=clock)
        candidates = found.candidates
        assert [c.combination for c in candidates[:6]] == [0, 0, 0, 1, 1, 1]
        chosen = candidates[found.best_index].combination
        assert len(candidates) > 6
        assert {c.combination for c in candidates[6:]} == {chosen}
        assert not found.is_out_of_time
        assert found.n_untried == 0

    def test_values_of_C_that_are_given_are_all_that_is_tried(self, clock):
        bounded = run_search(DATA, SPACE, cv=3, budget=1e6, clock=clock)
        whole = run_search(DATA, SPACE, cv=3)
        np.testing.assert_array_equal(bounded.scores, whole.scores)

    def test_it_ends_when_time_is_up(self, clock):
        found = run_search(DATA, SPACE, cv=3, budget=3, clock=clock)
        assert found.is_out_of_time
        assert 1 <= len(found.candidates) < 6
        assert (found.n_tried, found.n_combinations) == (1, 2)
        assert found.n_untried == 6 - len(found.candidates)

    def test_nobody_knows_how_many_models_there_will_be(self, clock):
        seen = []
        run_search(DATA, SPACE, cv=3, budget=3, clock=clock, on_fit=seen.append)
        assert {progress.planned for progress in seen} == {None}

    def test_the_least_time_is_enough_for_a_candidate(self, clock):
        found = run_search(DATA, SPACE, cv=3, budget=1e-9, clock=clock)
        assert len(found.candidates) == 1
        assert found.comparison is None

    def test_nested_searches_have_equal_shares(self):
        now = [0.0]
        ends = {}

        def on_fit(progress):
            ends[progress.outer_fold] = now[0]
            now[0] += 1.0

        space = SearchSpace(Parameters(), {"scale": [None, "query", "range"]}, [0.001, 0.1, 10.0])
        options = {"cv": 3, "nested": True, "clock": lambda: now[0], "on_fit": on_fit}
        found = run_search(DATA, space, budget=60.0, **options)
        assert found.is_out_of_time
        assert list(ends.values()) == [14.0, 29.0, 44.0, 59.0]
        assert len(found.nested.parameters) == 3

    def test_default_grids_are_coarse(self, clock):
        space = SearchSpace(Parameters(), {})
        first = run_search(DATA, space, cv=2, budget=1e6, clock=clock).candidates[:11]
        octaves = np.log2([candidate.parameters.C for candidate in first])
        np.testing.assert_allclose(np.diff(octaves), 2.0)
        assert len(run_search(DATA, space, cv=2).candidates) == 21


class TestInterrupt:
    def test_the_best_so_far_is_chosen(self):
        found = run_search(DATA, SPACE, cv=3, on_fit=interrupt_after(12), keep_interrupted=True)
        assert found.is_interrupted
        whole = run_search(DATA, SPACE, cv=3)
        n = len(found.candidates)
        assert 3 <= n < 6
        np.testing.assert_array_equal(found.mean, whole.mean[:n])
        assert SMALL.values[int(np.argmax(whole.mean[:n])) % 3] == found.parameters.C

    @pytest.mark.parametrize("options", [{"solver": "tron"}, {"loss": "hinge"}], ids=str)
    def test_solvers_that_work_alone_complete_one_candidate_after_another(self, options):
        space = SearchSpace(Parameters(**options), {}, SMALL.values)
        found = run_search(DATA, space, cv=3, on_fit=interrupt_after(4), keep_interrupted=True)
        assert [one.parameters.C for one in found.candidates] == [0.001]

    def test_with_nothing_complete_there_is_no_choice(self):
        with pytest.raises(KeyboardInterrupt):
            run_search(DATA, SPACE, cv=3, on_fit=interrupt_after(1), keep_interrupted=True)

    def test_it_is_raised_unless_the_best_so_far_is_asked_for(self):
        with pytest.raises(KeyboardInterrupt):
            run_search(DATA, SPACE, cv=3, on_fit=interrupt_after(12))

    def test_the_choice_stays_when_its_estimate_is_interrupted(self):
        found = run_search(
            DATA, SMALL, cv=3, nested=True, on_fit=interrupt_after(15), keep_interrupted=True
        )
        assert found.is_interrupted
        assert found.nested is None
        assert found.parameters == run_search(DATA, SMALL, cv=3).parameters


class TestNested:
    def test_it_is_the_search_without_each_fold(self):
        """Each outer fold by hand: a copy of its training rows, and a search of its own."""
        space = SearchSpace(Parameters(), {"scale": [None, "query"]}, n_points=5)
        found = run_search(DATA, space, cv=3, nested=True)
        nested = found.nested
        for fold in query_folds(DATA, 3, seed=0):
            own = rows_of(DATA, fold.train)
            chosen = run_search(own, space, cv=3).parameters
            assert nested.parameters[fold.number - 1].C == chosen.C
            assert nested.parameters[fold.number - 1].scale == chosen.scale
            score = ndcg(DATA, fold.test, fit_linear(own, chosen).coef)
            assert nested.scores[fold.number - 1] == pytest.approx(score, abs=5e-3)
        assert nested.mean == pytest.approx(nested.scores.mean())
        assert nested.error == pytest.approx(nested.scores.std(ddof=1) / np.sqrt(3))

    def test_queries_of_a_fold_have_no_part_in_its_choice(self):
        space = SearchSpace(Parameters(), {"scale": [None, "standard"]}, n_points=5)
        fold = query_folds(DATA, 3, seed=0)[1]
        spoilt = X.copy()
        spoilt[fold.test] *= -100.0
        before, after = (
            run_search(RankingData(features, Y, QID), space, cv=3, nested=True).nested
            for features in (X, spoilt)
        )
        assert after.parameters[1] == before.parameters[1]
        assert after.scores[1] < before.scores[1]

    def test_documents_are_not_copied(self, monkeypatch):
        monkeypatch.setattr(linear_paths, "rows_of", None)
        assert run_search(DATA, SMALL, cv=3, nested=True).nested is not None

    def test_progress_counts_all_models(self):
        seen = []
        run_search(DATA, SMALL, cv=3, nested=True, on_fit=seen.append)
        assert {progress.planned for progress in seen} == {3 * 3 + 3 * 3 * 3}
        assert seen[-1].done == seen[-1].planned
        assert [p.outer_fold for p in seen] == [None] * 9 + [1] * 9 + [2] * 9 + [3] * 9

    def test_the_documents_of_a_single_query_are_divided(self):
        data = RankingData(X[:60], np.arange(60) % 3)
        assert run_search(data, SMALL, cv=2, nested=True, metric="ndcg@5").nested


def test_progress_knows_the_best_so_far():
    seen = []
    found = run_search(DATA, SPACE, cv=3, on_fit=seen.append)
    assert [progress.done for progress in seen] == list(range(1, 19))
    assert seen[0].best is None
    assert seen[-1].mean == pytest.approx(found.mean.max())
    assert seen[-1].best is found.candidates[found.best_index]
    means = [progress.mean for progress in seen]
    assert means == sorted(means)


def test_a_best_C_at_the_end_of_its_grid_is_told():
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    best = run_search(DATA, SMALL, validation=held_out)
    by_C = dict(zip(SMALL.values, best.mean, strict=True))
    ordered = sorted(by_C, key=by_C.get)
    worst, top = ordered[0], ordered[-1]
    message = run_search(
        DATA, SearchSpace(Parameters(), {}, [worst, top]), validation=held_out
    ).edge_message()
    side, more = ("largest", "larger") if top > worst else ("smallest", "smaller")
    assert (
        str(message) == f"the best C, {top:g}, is the {side} value tried; try {more} values of C."
    )
    alone = run_search(DATA, SearchSpace(Parameters(), {}, [top]), validation=held_out)
    assert alone.edge_message() is None


@pytest.mark.parametrize("n_done", [2, 3])
def test_an_end_that_was_merely_not_reached_is_no_end(n_done):
    """Interrupted after some of three values of C, of which the last so far is the best."""
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    rising = iter([0.1, 0.2, 0.3])
    options = {"validation": held_out, "metric": lambda y, scores, qid, **_: next(rising)}
    space = SearchSpace(Parameters(solver="tron"), {}, SMALL.values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SplitScorer, "compare", lambda *_: None)
        found = run_search(
            DATA, space, on_fit=interrupt_after(n_done), keep_interrupted=True, **options
        )
    assert len(found.candidates) == n_done
    assert (found.edge_message() is None) == (n_done == 2)


@pytest.mark.parametrize("first", [1, 4])
def test_mq2008_is_ranked_as_well_as_by_the_protocol_of_the_papers(real_data, first):
    """C from 2⁻¹⁵ … 2¹⁰ by the validation data of a fold, then tested."""
    names = [f"MQ2008/S{(first + k - 1) % 5 + 1}.txt.gz" for k in range(5)]
    data = RankingData(*real_data(*names[:3]))
    valid, test = (RankingData(*real_data(name)) for name in names[3:])
    Cs = 2.0 ** np.arange(-15, 11)
    models = [RankSVM(C=C).fit(data) for C in Cs]
    by_protocol = max(models, key=lambda model: ndcg(valid, slice(None), model.coef_))
    for grid, allowed in ((Cs.tolist(), 0.0), (None, 0.002)):
        chosen = run_search(data, SearchSpace(Parameters(), {}, grid), validation=valid).parameters
        w = fit_linear(data, chosen, seed=0).coef
        expected = ndcg(test, slice(None), by_protocol.coef_)
        assert ndcg(test, slice(None), w) >= expected - allowed


def test_folds_without_a_pair_to_judge_by_are_left_out():
    y = np.where(QID < 4, Y, 0)
    data = RankingData(X, y, QID)
    folds = query_folds(data, 6, seed=0)
    without = [fold.number for fold in folds if not (QID[fold.test] < 4).any()]
    assert without
    numbers = ", ".join(map(str, without))
    with pytest.warns(UserWarning, match=f"ndcg@10 .*folds {numbers} of 6"):
        found = run_search(data, SMALL, cv=6, nested=True)
    kept = [k for k in range(6) if k + 1 not in without]
    np.testing.assert_allclose(found.mean, found.scores[:, kept].mean(axis=1))
    assert np.flatnonzero(np.isnan(found.nested.scores)).tolist() == [k - 1 for k in without]
    assert found.nested.mean == pytest.approx(np.mean(found.nested.scores[kept]))
