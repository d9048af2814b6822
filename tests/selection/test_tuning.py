"""The choice of parameters: by folds or held-out data, in a given time, interrupted or nested."""

from itertools import count

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, RankSVMCV, make_ranking, metrics
from marginrank.fit.linear import Parameters, fit_linear, seed_from
from marginrank.selection import linear_paths
from marginrank.selection.exploration import Space
from marginrank.selection.folds import query_folds, rows_of
from marginrank.selection.selection import Search
from marginrank.selection.tuning import tune

X, Y, QID = make_ranking(30, 10, 5, noise=1.0, random_state=0)
DATA = RankingData(X, Y, QID)
SPACE = Space(Parameters(), {"loss": ["squared_hinge", "logistic"]}, [0.001, 0.1, 10.0])
FROM_DATA = Space(Parameters(), SPACE.axes, n_points=3)
SMALL = Space(Parameters(), {}, [0.001, 0.1, 10.0])


def ndcg(data, rows, w):
    return metrics.ndcg(data.y[rows], data.X[rows] @ w, qid=data.qid[rows], k=10, ties="average")


def interrupt_after(n):
    def on_trial(progress):
        if progress.done == n:
            raise KeyboardInterrupt

    return on_trial


def test_the_best_of_all_candidates_is_chosen():
    tuning = tune(DATA, SPACE, n_folds=3)
    folds = query_folds(DATA, 3, seed=seed_from(0))
    for candidate, mean in zip(tuning.selection.candidates, tuning.selection.mean, strict=True):
        scores = [
            ndcg(DATA, f.test, fit_linear(rows_of(DATA, f.train), candidate.parameters).coef)
            for f in folds
        ]
        assert mean == pytest.approx(np.mean(scores), abs=5e-3)
    assert len(tuning.selection.candidates) == 6
    chosen = tuning.selection.candidates[tuning.selection.best].parameters
    assert tuning.selection.mean[tuning.selection.best] == tuning.selection.mean.max()
    assert (tuning.parameters.C, tuning.parameters.loss) == (chosen.C, chosen.loss)
    assert tuning.parameters.tol == 1e-6
    assert (tuning.n_tried, tuning.n_combinations) == (2, 2)
    assert tuning.comparison.n_queries == 30
    assert not tuning.is_interrupted
    assert not tuning.is_out_of_time


def test_it_chooses_as_the_estimator_does():
    scales = [None, "query"]
    model = RankSVMCV(
        n_points=5, cv=3, random_state=1, tol=1e-3, scale=scales, normalization="none"
    ).fit(DATA)
    space = Space(Parameters(tol=1e-3), {"scale": scales}, n_points=5)
    tuning = tune(DATA, space, n_folds=3, random_state=1)
    np.testing.assert_array_equal(tuning.selection.mean, model.selection_.mean)
    assert model.best_params_["C"] == tuning.parameters.C
    assert tuning.comparison == model.comparison_


def test_held_out_data_decide_if_there_are_any():
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    tuning = tune(DATA, SMALL, validation=held_out)
    for candidate, mean in zip(tuning.selection.candidates, tuning.selection.mean, strict=True):
        model = RankSVM(C=candidate.parameters.C).fit(DATA)
        assert mean == pytest.approx(ndcg(held_out, slice(None), model.coef_), abs=5e-3)


def test_the_simplest_within_an_error_of_the_best():
    best, simple = (tune(DATA, SMALL, n_folds=3, rule=rule) for rule in ("best", "one_se"))
    assert simple.parameters.C <= best.parameters.C
    assert simple.rule == "one_se"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "two_se"}, "rule='two_se' must be one of 'best', 'one_se'"),
        ({"n_folds": 31}, "31 folds need as many queries, and there are 30; take fewer folds"),
        ({"n_folds": 30, "nested": True}, "nested divides what fold 1 leaves once more: 30 folds"),
        ({"budget": 0.0}, "budget=0.0 must be a finite number, more than 0"),
        ({"validation": DATA, "rule": "one_se"}, "rule='one_se' needs folds"),
        ({"validation": DATA, "nested": True}, "nested needs folds"),
        ({"validation": RankingData(X[:, :4], Y, QID)}, "validation has 4 features, but X has 5"),
        ({"metric": "ndgc"}, "metric 'ndgc' is not known"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tune(DATA, SMALL, **options)


def test_a_fold_without_pairs_is_named():
    y = np.where(QID == 3, Y, 0)
    folds = query_folds(RankingData(X, y, QID), 3, seed=seed_from(0))
    (number,) = [fold.number for fold in folds if (QID[fold.test] == 3).any()]
    with pytest.raises(ValueError, match=f"fold {number} has no pair to learn from"):
        tune(RankingData(X, y, QID), SMALL, n_folds=3)


def test_a_metric_without_a_value_anywhere_is_told():
    held_out = RankingData(X, np.zeros(len(Y)), QID)
    with pytest.raises(ValueError, match="auc has no value on any fold"):
        tune(DATA, SMALL, validation=held_out, metric="auc")


def test_a_C_that_nobody_gave_is_not_blamed_for_tiny_features():
    tiny = RankingData(X * 1e-100, Y, QID)
    with pytest.raises(ValueError, match="features of this scale; use scale='standard' or"):
        tune(tiny, Space(Parameters(), {}), n_folds=3)
    with pytest.raises(ValueError, match=r"C=1e\+200 times the weights of all pairs is"):
        tune(tiny, Space(Parameters(), {}, [1e200]), n_folds=3)
    scaled = tune(tiny, Space(Parameters(scale="standard"), {}), n_folds=3)
    assert np.isfinite(scaled.selection.mean).all()


class TestBudget:
    @pytest.fixture
    def clock(self):
        """Return a clock that goes on by a second whenever it is looked at."""
        seconds = count()
        return lambda: next(seconds)

    def test_all_combinations_come_before_finer_grids(self, clock):
        tuning = tune(DATA, FROM_DATA, n_folds=3, budget=1e6, clock=clock)
        candidates = tuning.selection.candidates
        assert [c.combination for c in candidates[:6]] == [0, 0, 0, 1, 1, 1]
        chosen = candidates[tuning.selection.best].combination
        assert len(candidates) > 6
        assert {c.combination for c in candidates[6:]} == {chosen}
        assert not tuning.is_out_of_time
        assert tuning.n_untried == 0

    def test_values_of_C_that_are_given_are_all_that_is_tried(self, clock):
        bounded = tune(DATA, SPACE, n_folds=3, budget=1e6, clock=clock).selection
        whole = tune(DATA, SPACE, n_folds=3).selection
        np.testing.assert_array_equal(bounded.scores, whole.scores)

    def test_it_ends_when_time_is_up(self, clock):
        tuning = tune(DATA, SPACE, n_folds=3, budget=3, clock=clock)
        assert tuning.is_out_of_time
        assert 1 <= len(tuning.selection.candidates) < 6
        assert (tuning.n_tried, tuning.n_combinations) == (1, 2)
        assert tuning.n_untried == 6 - len(tuning.selection.candidates)

    def test_nobody_knows_how_many_models_there_will_be(self, clock):
        seen = []
        tune(DATA, SPACE, n_folds=3, budget=3, clock=clock, on_trial=seen.append)
        assert {progress.planned for progress in seen} == {None}

    def test_the_least_time_is_enough_for_a_candidate(self, clock):
        tuning = tune(DATA, SPACE, n_folds=3, budget=1e-9, clock=clock)
        assert len(tuning.selection.candidates) == 1
        assert tuning.comparison is None

    def test_nested_searches_have_equal_shares(self):
        now = [0.0]
        ends = {}

        def on_trial(progress):
            ends[progress.outer_fold] = now[0]
            now[0] += 1.0

        space = Space(Parameters(), {"scale": [None, "query", "range"]}, [0.001, 0.1, 10.0])
        options = {"n_folds": 3, "nested": True, "clock": lambda: now[0], "on_trial": on_trial}
        tuning = tune(DATA, space, budget=60.0, **options)
        assert tuning.is_out_of_time
        assert list(ends.values()) == [14.0, 29.0, 44.0, 59.0]
        assert len(tuning.nested.parameters) == 3

    def test_default_grids_are_coarse(self, clock):
        space = Space(Parameters(), {})
        first = tune(DATA, space, n_folds=2, budget=1e6, clock=clock).selection.candidates[:11]
        octaves = np.log2([candidate.parameters.C for candidate in first])
        np.testing.assert_allclose(np.diff(octaves), 2.0)
        assert len(tune(DATA, space, n_folds=2).selection.candidates) == 21


class TestInterrupt:
    def test_the_best_so_far_is_chosen(self):
        tuning = tune(DATA, SPACE, n_folds=3, on_trial=interrupt_after(12))
        assert tuning.is_interrupted
        whole = tune(DATA, SPACE, n_folds=3).selection
        n = len(tuning.selection.candidates)
        assert 3 <= n < 6
        np.testing.assert_array_equal(tuning.selection.mean, whole.mean[:n])
        assert SMALL.Cs[int(np.argmax(whole.mean[:n])) % 3] == tuning.parameters.C

    @pytest.mark.parametrize("options", [{"solver": "tron"}, {"loss": "hinge"}], ids=str)
    def test_solvers_that_work_alone_complete_one_candidate_after_another(self, options):
        space = Space(Parameters(**options), {}, SMALL.Cs)
        tuning = tune(DATA, space, n_folds=3, on_trial=interrupt_after(4))
        assert [one.parameters.C for one in tuning.selection.candidates] == [0.001]

    def test_with_nothing_complete_there_is_no_choice(self):
        with pytest.raises(KeyboardInterrupt):
            tune(DATA, SPACE, n_folds=3, on_trial=interrupt_after(1))

    def test_the_choice_stays_when_its_estimate_is_interrupted(self):
        tuning = tune(DATA, SMALL, n_folds=3, nested=True, on_trial=interrupt_after(15))
        assert tuning.is_interrupted
        assert tuning.nested is None
        assert tuning.parameters == tune(DATA, SMALL, n_folds=3).parameters


class TestNested:
    def test_it_is_the_search_without_each_fold(self):
        """Each outer fold by hand: a copy of its training rows, and a search of its own."""
        space = Space(Parameters(), {"scale": [None, "query"]}, n_points=5)
        tuning = tune(DATA, space, n_folds=3, nested=True)
        nested = tuning.nested
        for fold in query_folds(DATA, 3, seed=seed_from(0)):
            own = rows_of(DATA, fold.train)
            chosen = tune(own, space, n_folds=3).parameters
            assert nested.parameters[fold.number - 1].C == chosen.C
            assert nested.parameters[fold.number - 1].scale == chosen.scale
            score = ndcg(DATA, fold.test, fit_linear(own, chosen).coef)
            assert nested.scores[fold.number - 1] == pytest.approx(score, abs=5e-3)
        assert nested.mean == pytest.approx(nested.scores.mean())
        assert nested.error == pytest.approx(nested.scores.std(ddof=1) / np.sqrt(3))

    def test_queries_of_a_fold_have_no_part_in_its_choice(self):
        space = Space(Parameters(), {"scale": [None, "standard"]}, n_points=5)
        fold = query_folds(DATA, 3, seed=seed_from(0))[1]
        spoilt = X.copy()
        spoilt[fold.test] *= -100.0
        before, after = (
            tune(RankingData(features, Y, QID), space, n_folds=3, nested=True).nested
            for features in (X, spoilt)
        )
        assert after.parameters[1] == before.parameters[1]
        assert after.scores[1] < before.scores[1]

    def test_documents_are_not_copied(self, monkeypatch):
        monkeypatch.setattr(linear_paths, "rows_of", None)
        assert tune(DATA, SMALL, n_folds=3, nested=True).nested is not None

    def test_progress_counts_all_models(self):
        seen = []
        tune(DATA, SMALL, n_folds=3, nested=True, on_trial=seen.append)
        assert {progress.planned for progress in seen} == {3 * 3 + 3 * 3 * 3}
        assert seen[-1].done == seen[-1].planned
        assert [p.outer_fold for p in seen] == [None] * 9 + [1] * 9 + [2] * 9 + [3] * 9

    def test_the_documents_of_a_single_query_are_divided(self):
        data = RankingData(X[:60], np.arange(60) % 3)
        assert tune(data, SMALL, n_folds=2, nested=True, metric="ndcg@5").nested


def test_progress_knows_the_best_so_far():
    seen = []
    tuning = tune(DATA, SPACE, n_folds=3, on_trial=seen.append)
    assert [progress.done for progress in seen] == list(range(1, 19))
    assert seen[0].best is None
    assert seen[-1].mean == pytest.approx(tuning.selection.mean.max())
    assert seen[-1].best.parameters == tuning.selection.parameters
    means = [progress.mean for progress in seen]
    assert means == sorted(means)


def test_a_best_C_at_the_end_of_its_grid_is_told():
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    best = tune(DATA, SMALL, validation=held_out)
    by_C = dict(zip(SMALL.Cs, best.selection.mean, strict=True))
    ordered = sorted(by_C, key=by_C.get)
    worst, top = ordered[0], ordered[-1]
    message = tune(DATA, Space(Parameters(), {}, [worst, top]), validation=held_out).edge_message()
    side, more = ("largest", "larger") if top > worst else ("smallest", "smaller")
    assert (
        str(message)
        == f"the best C, {top:g}, is the {side} that was tried; try {more} ones with C."
    )
    alone = tune(DATA, Space(Parameters(), {}, [top]), validation=held_out)
    assert alone.edge_message() is None


@pytest.mark.parametrize("n_done", [2, 3])
def test_an_end_that_was_merely_not_reached_is_no_end(n_done):
    """Interrupted after some of three values of C, of which the last so far is the best."""
    held_out = RankingData(*make_ranking(20, 10, 5, noise=1.0, random_state=1))
    rising = iter([0.1, 0.2, 0.3])
    options = {"validation": held_out, "metric": lambda y, scores, qid, **_: next(rising)}
    space = Space(Parameters(solver="tron"), {}, SMALL.Cs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Search, "compare", lambda *_: None)
        tuning = tune(DATA, space, on_trial=interrupt_after(n_done), **options)
    assert len(tuning.selection.candidates) == n_done
    assert (tuning.edge_message() is None) == (n_done == 2)


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
        chosen = tune(data, Space(Parameters(), {}, grid), validation=valid).parameters
        w = fit_linear(data, chosen, seed=seed_from(0)).coef
        expected = ndcg(test, slice(None), by_protocol.coef_)
        assert ndcg(test, slice(None), w) >= expected - allowed


def test_folds_without_a_pair_to_judge_by_are_left_out():
    y = np.where(QID < 4, Y, 0)
    data = RankingData(X, y, QID)
    folds = query_folds(data, 6, seed=seed_from(0))
    without = [fold.number for fold in folds if not (QID[fold.test] < 4).any()]
    assert without
    numbers = ", ".join(map(str, without))
    with pytest.warns(UserWarning, match=f"ndcg@10 has no value on folds {numbers} of 6"):
        found = tune(data, SMALL, n_folds=6, nested=True)
    kept = [k for k in range(6) if k + 1 not in without]
    np.testing.assert_allclose(found.selection.mean, found.selection.scores[:, kept].mean(axis=1))
    assert np.flatnonzero(np.isnan(found.nested.scores)).tolist() == [k - 1 for k in without]
    assert found.nested.mean == pytest.approx(np.mean(found.nested.scores[kept]))
