"""marginrank tune."""

import io
import json
import re
import shlex
from dataclasses import asdict
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from marginrank import RankingData, load_letor, load_model, make_ranking, metrics
from marginrank.cli.support import bars as _bars
from marginrank.cli.support import progress as _progress
from marginrank.cli.support.search_results import MOST_ROWS, Reporter, sentences, shown_candidates
from marginrank.selection import search as engine
from marginrank.selection.results import SearchProgress

CS = "0.001,0.1,10"


@pytest.fixture
def tune(invoke, tmp_path, train_txt):
    """Return a function that tunes on train.txt, into m.json, and returns what was printed."""

    def tune(*flags, code=0):
        command = ("tune", train_txt, "--model", tmp_path / "m.json")
        done = invoke(*command, *[word for text in flags for word in str(text).split()])
        assert done.returncode == code, done.stderr
        return done

    return tune


def of_json(done):
    return json.loads(done.stdout)


def content(model):
    """Return what is in a model file, but for the time that each iteration took."""
    found = json.loads(model.read_text())
    seconds = found["history"]["columns"].index("seconds")
    for row in found["history"]["rows"]:
        del row[seconds]
    return found


@pytest.mark.parametrize(
    "flags",
    [
        "-C 0.001,0.1,10 --folds 3",
        "--points 3 --folds 3 --scale standard --tol 1e-9 --random-state 3 --n-jobs 1",
        "-C 0.3 --loss hinge,huber --pair-cost ndcg,gain --normalization query --dtype float64",
        "-C 0.3 --margin label --pair-selection adjacent --solver tron --max-iter 500 --folds 2",
    ],
)
def test_the_model_is_that_of_the_train_command_it_prints(invoke, tune, tmp_path, flags):
    result = of_json(tune(flags, "--json"))
    model = tmp_path / "m.json"
    written = content(model)
    model.unlink()
    program, *words = shlex.split(result["repeat"])
    assert program == "marginrank"
    assert invoke(*words).returncode == 0
    assert content(model) == written


def test_the_highest_mean_is_chosen(tune):
    flags = f"-C {CS} --folds 3 --scale none,query --normalization none,pairs --metric ndcg@3"
    result = of_json(tune(flags, "--json"))
    selection = result["selection"]
    candidates = selection["candidates"]
    assert len(candidates) == 12
    assert selection["metric"] == "ndcg@3"
    assert selection["varied"] == ["C", "normalization", "scale"]
    chosen = candidates[selection["chosen"]]
    assert chosen["mean"] == max(candidate["mean"] for candidate in candidates)
    for candidate in candidates:
        assert candidate["mean"] == pytest.approx(np.mean(candidate["scores"]))
        error = np.std(candidate["scores"], ddof=1) / np.sqrt(3)
        assert candidate["error"] == pytest.approx(error)
    for name in selection["varied"]:
        assert result["parameters"][name] == chosen[name]
    comparison = selection["comparison"]
    runner_up = candidates[selection["runner_up"]]
    assert comparison["n_queries"] == 30
    # Queries count the same there, and folds here.
    assert comparison["difference"] == pytest.approx(chosen["mean"] - runner_up["mean"], abs=1e-9)
    assert 0 < comparison["t_test_p"] <= 1


def test_tables_and_sentences(tune):
    out = tune(f"-C {CS} --folds 3").stdout
    verdict, table = (part.splitlines() for part in out.split("\n\n")[:2])
    assert verdict[0].startswith("Selected C=")
    assert " ± " in verdict[0]
    assert table[0].startswith("Candidates, mean ± standard error")
    assert table[1].split() == ["C", "ndcg@10"]
    assert [line.split()[0] for line in table[2:]] == ["0.001", "0.1", "10"]
    assert all(" ± " in line for line in table[2:])
    assert sum(line.rstrip().endswith("best") for line in table[2:]) == 1
    assert " (p = " in out
    assert (" beats " in out) != ("no evidence of a difference." in out)
    assert "To repeat the fit: marginrank train " in out


def test_held_out_data_judge_and_others_test(tune, train_txt, test_txt, tmp_path):
    flags = f"-C {CS} --valid {train_txt} --test {test_txt} --metric err"
    result = of_json(tune(flags, "--json"))
    assert [len(one["scores"]) for one in result["selection"]["candidates"]] == [1, 1, 1]
    assert all(one["error"] is None for one in result["selection"]["candidates"])
    test = load_letor(test_txt)
    scores = load_model(tmp_path / "m.json").predict(test.X)
    assert next(iter(result["test"])) == "err"
    expected = metrics.ndcg(test.y, scores, qid=test.qid, k=10)
    assert result["test"]["ndcg@10"] == pytest.approx(expected)
    assert "valid" not in result
    out = tune(flags).stdout
    candidates, test_table = out.split("Test, ")
    assert "±" not in candidates
    assert "±" in test_table


def test_nested_folds_give_a_second_estimate(tune):
    flags = f"-C {CS} --folds 3 --nested"
    result = of_json(tune(flags, "--json"))
    nested = result["selection"]["nested"]
    assert len(nested["scores"]) == len(nested["chosen"]) == 3
    assert nested["mean"] == pytest.approx(np.mean(nested["scores"]))
    out = tune(flags).stdout
    assert f"(nested folds): {nested['mean']:.4f} ± {nested['error']:.4f}" in out


def test_one_standard_error(tune):
    flags = "-C 1e-6,1e-4,0.01,1 --folds 3 --rule one_se"
    selection = of_json(tune(flags, "--json"))["selection"]
    best = max(selection["candidates"], key=lambda candidate: candidate["mean"])
    chosen = selection["candidates"][selection["chosen"]]
    within = [
        one["C"] for one in selection["candidates"] if one["mean"] >= best["mean"] - best["error"]
    ]
    assert chosen["C"] == min(within) < best["C"]
    lines = tune(flags).stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.split()[-1:] in (["best"], ["chosen"])] == [
        "chosen",
        "best",
    ]


def test_a_plot(tune, tmp_path):
    tune(f"-C {CS} --folds 2 --scale none,query --plot {tmp_path / 'p.svg'}")
    assert (tmp_path / "p.svg").read_text().count("<svg") == 1


def test_a_budget_that_is_used_up(tune, monkeypatch):
    """Time stands still until the first candidate is complete, and is up then."""
    flags = "--points 3 --folds 2 --normalization none --scale none,query --budget"
    monkeypatch.setitem(engine.run_search.__kwdefaults__, "clock", lambda: 0.0)
    result = of_json(tune(flags, "1 --json"))["selection"]
    assert len(result["candidates"]) > 6
    assert not result["out_of_time"]
    ticks = iter(range(10**6))
    monkeypatch.setitem(engine.run_search.__kwdefaults__, "clock", lambda: next(ticks))
    result = of_json(tune(flags, "0.5 --json"))["selection"]
    assert len(result["candidates"]) == 1
    assert result["out_of_time"]
    assert (result["combinations_tried"], result["combinations"]) == (1, 2)
    done = tune(flags, "0.5")
    untried = "5 of 6 candidates were not tried, including all of 1 of 2 combinations"
    assert f"\n{untried}: the budget was used up.\n" in done.stdout
    assert "\n2 models; best so far: C=" in done.stderr
    assert "\n2 of 3 candidates were not tried: the budget was used up.\n" in (
        tune("--points 3 --folds 2 --normalization none --scale none --budget 0.5").stdout
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("-C 0.1,x", "--C 'x' must be a finite number, more than 0."),
        ("-C 0.1,,1", "--C '' must be a finite number, more than 0."),
        ("-C 0.1,-1", "--C -1.0 must be a finite number, more than 0."),
        ("-C 1,0.1,1.0", "--C 1.0 is given twice; drop one of them."),
        (
            "--loss logistic,hingee",
            "--loss 'hingee' must be one of 'squared_hinge', 'hinge', 'huber', 'logistic'.",
        ),
        ("--pair-cost none,x", "--pair-cost 'x' must be one of 'none', 'gain', 'ndcg'."),
        ("--scale none,none", "--scale 'none' is given twice; drop one of them."),
        ("--scale x", "--scale 'x' must be one of 'none', 'standard', 'range', 'query'."),
        ("--normalization query,x", "--normalization 'x' must be one of 'none', 'pairs', 'query'."),
        ("--margin unit,x", "--margin 'x' must be one of 'unit', 'label', 'gain'."),
        ("--rule x", "--rule 'x' must be one of 'best', 'one_se'."),
        ("--folds 1", "--folds 1 must be an integer from 2 to 1000."),
        ("--budget 0", "--budget 0.0 must be a finite number, more than 0."),
        ("--points 3 -C 1", "--points cannot be combined with --C; drop one."),
        ("--valid v.txt --folds 3", "--folds cannot be combined with --valid; drop one."),
        ("--valid v.txt --nested", "--nested cannot be combined with --valid; drop one."),
        (
            "--valid v.txt --rule one_se",
            "--rule one_se needs the standard error over folds; drop --valid.",
        ),
        ("--valid-group g.txt", "--valid-group needs --valid."),
        ("--test-group g.txt", "--test-group needs --test."),
        (
            "--test t.csv --test-group g.txt",
            "--test-group is for text, but t.csv is a table; drop --test-group.",
        ),
        ("--lam 1", "--lam is a flag of train and train-additive, not of tune."),
        ("--metric ndcg@3,err", "--metric ndcg@3,err names 2 metrics; pass one."),
    ],
)
def test_what_is_wrong_is_told_before_data_is_read(invoke, tmp_path, flags, sentence):
    done = invoke("tune", "not_read.txt", "--model", tmp_path / "m.json", *flags.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"marginrank: {sentence}\n"


def test_a_solver_that_cannot_do_one_of_the_losses(invoke, tmp_path):
    flags = ("--loss", "huber,hinge", "--solver", "newton")
    done = invoke("tune", "not_read.txt", "--model", tmp_path / "m.json", *flags)
    assert done.returncode == 2
    assert "newton" in done.stderr
    assert "hinge" in done.stderr
    assert "not_read" not in done.stderr


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--folds 31", "31 folds need as many queries, and there are 30; use fewer folds."),
        (
            "--folds 30 --nested",
            "--nested cross-validation cannot split the training rows of fold 1: 30 folds need as "
            "many queries, and there are 29; use fewer folds.",
        ),
    ],
)
def test_too_many_folds(tune, tmp_path, flags, sentence):
    assert tune(flags, code=2).stderr.endswith(f"\nmarginrank: {sentence}\n")
    assert not (tmp_path / "m.json").exists()


def test_a_fold_without_pairs(invoke, tmp_path):
    text = tmp_path / "one.txt"
    text.write_text("1 qid:1 1:1\n0 qid:1 1:2\n" + "0 qid:2 1:1\n0 qid:3 1:1\n")
    done = invoke("tune", text, "--model", tmp_path / "m.json", "--folds", "3")
    assert done.returncode == 2
    assert "has no pair to learn from: in its training rows" in done.stderr
    assert not (tmp_path / "m.json").exists()


def test_test_data_are_read_before_the_search(tune, tmp_path, monkeypatch):
    (tmp_path / "bad.txt").write_text("1 qid:1 7:0.5\n")
    monkeypatch.setattr(engine, "run_search", None)
    assert f"{tmp_path}/bad.txt:1:" in tune(f"--test {tmp_path}/bad.txt", code=2).stderr


def test_a_C_at_the_end_of_its_grid_is_a_warning(tune, train_txt):
    flags = f"--valid {train_txt} --metric pairwise_accuracy -C"
    assert "warning: the best C, 0.01, is the largest value tried; try larger values of --C." in (
        tune(flags, "1e-9,0.01").stderr
    )
    assert "warning" not in tune(flags, "0.01").stderr


def test_fits_that_stop_early_are_one_warning(tune):
    flags = "--loss hinge --solver bmrm --max-iter 2 --folds 2 --nested -C 0.1,1 --tol 1e-8"
    told = tune(flags).stderr
    assert told.count("12 of 12 fits of the search did not reach") == 1
    assert "--max-iter or --tol" in told


def candidate(combination, C, mean):
    return {"combination": combination, "C": C, "scale": None, "mean": mean, "error": 0.1}


def test_of_many_candidates_the_table_has_the_chosen_combination_and_the_best_of_others():
    per_grid = MOST_ROWS // 2
    candidates = [
        candidate(k, float(C), C * (k == 1) - C * (k == 2))
        for k in range(3)
        for C in range(per_grid)
    ]
    described = {"candidates": candidates, "chosen": 2 * per_grid - 1}
    assert shown_candidates(described) == [0, *range(per_grid, 2 * per_grid), 2 * per_grid]
    candidates[0]["mean"] = np.nan
    assert shown_candidates(described)[0] == 1
    few = {"candidates": candidates[::-1][:MOST_ROWS], "chosen": 0}
    assert len(shown_candidates(few)) == MOST_ROWS


def described(**more):
    """Return the description of two candidates, of which the second was chosen."""
    candidates = [candidate(0, 1.0, 0.5), candidate(0, 0.5, 0.6)]
    common = {"candidates": candidates, "metric": "ndcg", "varied": ["C", "scale"]}
    common |= {"chosen": 1, "runner_up": 0, "comparison": None, "nested": None}
    return common | {"candidates_untried": 0} | more


MEAN = "The mean ndcg of C=0.5 is"


@pytest.mark.parametrize(
    ("difference", "p", "interval", "sentence"),
    [
        (
            0.01,
            0.31,
            (-0.1, 0.25),
            "The mean ndcg with C=0.5 is 0.0100 higher than with C=1 (p = 0.31, 95%",
        ),
        (
            -0.01,
            0.31,
            (-0.1, 0.25),
            "The mean ndcg with C=0.5 is 0.0100 lower than with C=1 (p = 0.31, 95%",
        ),
        (
            -4e-5,
            0.31,
            (-0.1, 0.25),
            "The mean ndcg with C=0.5 is less than 0.0001 lower than with C=1 (p = 0.31, 95%",
        ),
        (0.2, 0.002, (0.1, 0.3), "C=0.5 beats C=1 by 0.2000 ndcg (p = 0.002, 95%"),
    ],
)
def test_the_choice_against_the_runner_up(difference, p, interval, sentence):
    comparison = {"difference": difference, "t_test_p": p, "confidence": 0.95, "interval": interval}
    (told,) = sentences(described(comparison=comparison))
    verdict = "." if p < 0.05 else ", which is no evidence of a difference."
    low, high = interval
    assert told == f"{sentence} confidence interval {low:.4f} … {high:.4f}){verdict}"


def test_the_runner_up_may_have_the_same_score():
    comparison = {"difference": 0.0, "t_test_p": 1.0, "confidence": 0.95, "interval": (-0.1, 0.1)}
    assert sentences(described(comparison=comparison)) == ["C=0.5 and C=1 have the same ndcg."]


def test_few_queries_are_judged_by_the_interval_that_is_told():
    """Five differences of the same sign: no random swaps can be below 2/2⁵."""
    y, qid = np.tile([1, 0, 0, 0], 5), np.repeat(np.arange(5), 4)
    worse = np.array([[4 + k, 5, 6, 7] for k in (0, 0, 0, 0, 1.5)]).ravel()
    found = metrics.compare(y, np.tile([4, 3, 2, 1], 5), worse, qid=qid)
    assert found.randomization_p > 0.05
    assert found.interval[0] > 0
    (told,) = sentences(described(comparison=asdict(found)))
    assert " beats " in told
    assert "no evidence" not in told


@pytest.mark.parametrize(
    ("mean", "known"),
    [
        (0.59, "is optimistic."),
        (0.6, "is not optimistic here."),
        (0.61, "is not optimistic here."),
    ],
)
def test_the_nested_estimate_beside_that_of_the_choice(mean, known):
    (told,) = sentences(described(nested={"mean": mean, "error": 0.01}))
    assert told.startswith(f"Expected ndcg on new queries (nested folds): {mean:.4f} ± 0.0100.")
    assert told.endswith(f", 0.6000 ± 0.1000, {known}")


def test_progress_is_a_line_a_combination(tune):
    lines = tune(f"-C {CS} --folds 2 --scale none,query --nested").stderr.splitlines()
    told = [line for line in lines if " models; best so far: C=" in line]
    planned = 12 + 2 * 12
    assert [line.split(";")[0] for line in told] == [
        f"{done} of {planned} models" for done in (6, 12, 24, 36)
    ]
    lines = tune(f"-C {CS} --folds 2 --verbose").stderr.splitlines()
    assert sum(line.startswith("C=") and "ndcg@10 0." in line for line in lines) == 3


def test_progress_is_a_bar_on_a_terminal(tune, monkeypatch):
    class Terminal(_progress.Phases):
        def __init__(self, import_seconds):
            super().__init__(import_seconds)
            self.on_terminal = True

    monkeypatch.setattr("marginrank.cli.app.Phases", Terminal)
    done = tune(f"-C {CS} --folds 2")
    assert " models; best so far" not in done.stderr
    told = []
    reporter = Reporter(lambda *told_now: told.append(told_now), ["loss"], verbose=False)
    parameters = SimpleNamespace(C=0.5, loss="huber")
    best = SimpleNamespace(parameters=parameters, combination=0, is_complete=True)
    reporter(SearchProgress(3, 9, best, None, 0, "ndcg", None))
    reporter(SearchProgress(4, 9, best, best, 0.25, "ndcg", 1))
    reporter.end()
    assert told == [(3, 9, ""), (4, 9, "best so far: C=0.5, loss=huber, ndcg 0.2500")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return data on which a tight fit takes a while."""
    X, y, qid = make_ranking(
        500, 100, 60, heavy_tail=1.0, correlation=0.9, dtype=np.float32, random_state=0
    )
    path = tmp_path_factory.mktemp("tune") / "data.store"
    RankingData(X, y, qid).save(path)
    return path


@pytest.fixture
def tuned(paused, store, tmp_path):
    """Return a function that interrupts a search at some lines, and returns its process."""

    def tuned(beginnings, *flags):
        flags = [*flags, "--folds", "2", "--solver", "tron", "--verbose", "--json"]
        process = paused(beginnings, "tune", store, "--model", tmp_path / "m.json", *flags)
        for _ in beginnings:
            process.read_to_pause()
            process.interrupt()
        return process

    return tuned


def printed_by(process):
    """Return what was printed; the process must have ended as one that was interrupted."""
    code, out = process.end()
    assert code == 130, process.lines
    assert "Traceback" not in "".join(process.lines)
    return out


class TestInterrupt:
    def test_the_best_so_far_is_fitted_and_written(self, invoke, tuned, tmp_path):
        process = tuned(["C="])
        result = json.loads(printed_by(process))
        (told,) = [line for line in process.lines if line.startswith("marginrank: interrupted")]
        assert "so far is kept: C=" in told
        selection = result["selection"]
        assert selection["interrupted"]
        assert 1 <= len(selection["candidates"]) < 21
        written = content(tmp_path / "m.json")
        assert written["parameters"] == result["parameters"]
        assert load_model(tmp_path / "m.json").predict(np.ones((1, 60))).shape == (1,)
        assert invoke(*shlex.split(result["repeat"])[1:]).returncode == 0
        assert content(tmp_path / "m.json") == written

    def test_twice_ends_without_a_model(self, tuned, tmp_path):
        process = tuned(["C=", "iter "], "--tol", "1e-14", "-C", "1e-6,1")
        assert printed_by(process) == ""
        assert process.lines[-1] == "marginrank: interrupted; no file is half-written"
        assert list(tmp_path.iterdir()) == []

    def test_in_nested_folds_the_choice_is_complete_and_its_estimate_is_missing(
        self, tune, monkeypatch
    ):
        def estimate(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("marginrank.selection.search._Driver._estimate", estimate)
        done = tune(f"-C {CS} --folds 2 --nested --json", code=130)
        assert "the best of 3 candidates so far is kept: C=" in done.stderr
        assert (
            "; there is no estimate by nested cross-validation; press Ctrl-C again" in done.stderr
        )
        assert of_json(done)["selection"]["nested"] is None

    def test_before_a_candidate_is_complete(self, tune, tmp_path, monkeypatch):
        def fit_paths(*_, **__):
            raise KeyboardInterrupt

        monkeypatch.setattr("marginrank.selection.linear_paths.LinearLearner.fit_paths", fit_paths)
        done = tune(f"-C {CS}", code=130)
        assert done.stdout == ""
        assert done.stderr.splitlines()[-1] == (
            "marginrank: interrupted before a candidate was selected; no model is written"
        )
        assert list(tmp_path.iterdir()) == []


def test_the_best_so_far_is_shown_whole_on_a_narrow_terminal(monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, width=60, force_terminal=True)
    monkeypatch.setattr(_bars, "_stderr", lambda: console)
    best = "best so far: C=0.00390625, loss=squared_hinge, normalization=pairs, scale=query, 0.4712"
    with _bars.searching_bar() as update:
        update(3, 40, best)
    seen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "3/40 models" in seen
    assert all(word in seen for word in best.split())
