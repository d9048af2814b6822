"""benchmarks/papers.py runs, and what it prints agrees with fits made here."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.brute_force import BruteForce, explicit_pairs

from marginrank import RankingData, RankSVM, dump_letor, load_letor, make_ranking, metrics
from marginrank.fit.linear import Parameters, make_objective
from marginrank.objective.losses import LOSSES

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "papers.py"
# Trains as LIBLINEAR-ranksvm and SVM^rank do, and takes their arguments.
TRAINER = """#!{python}
import sys
from marginrank import RankSVM, load_letor
*options, source, target = sys.argv[1:]
c = float(options[options.index("-c") + 1])
data = load_letor(source, dtype="float64")
assert all(a < b for a, b in zip(data.query_ids, data.query_ids[1:])), "queries must ascend"
if "-s" in options:
    model, format = RankSVM(C=c, tol=1e-9), "liblinear"
else:
    model, format = RankSVM(loss="hinge", C=c / data.n_queries, tol=1e-8), "svmrank"
model.fit(data).save(target, format=format)
"""


def write_stand_in(folder):
    """Write small data in the places of MQ2008, OHSUMED and cadata."""
    for seed, name in enumerate(("MQ2008", "OHSUMED")):
        (folder / name).mkdir()
        X, y, qid = make_ranking(40, 12, 5, n_levels=3, noise=1.0, random_state=seed)
        for k in range(5):
            rows = qid % 5 == k
            data = RankingData(X[rows], y[rows], qid[rows])
            dump_letor(data, folder / name / f"S{k + 1}.txt.gz")
    (folder / "cadata").mkdir()
    X, y, _ = make_ranking(1, 2100, 4, n_levels=None, random_state=0)
    dump_letor(RankingData(X, y, group=[2100]), folder / "cadata" / "cadata.txt.gz")


def run(data, results, *arguments):
    """Run the script on a small scale; return what it did and its figures."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--json", str(results), *arguments],
        env={**os.environ, "MARGINRANK_DATA": str(data)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done, json.loads(results.read_text())


def write_program(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_stand_in(folder)
    return folder


@pytest.fixture(scope="module")
def outcome(stand_in, tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    trainer = write_program(folder / "train", TRAINER.format(python=sys.executable))
    done, figures = run(
        stand_in, folder / "results.json", "--liblinear-ranksvm", trainer, "--svm-rank", trainer
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, figures


def test_chosen_C_is_the_best_on_the_validation_part(stand_in, outcome):
    printed, figures = outcome
    parts = [stand_in / "MQ2008" / f"S{k}.txt.gz" for k in range(1, 6)]
    train, valid = (load_letor(part, dtype=np.float64) for part in (parts[:3], parts[3]))
    curve = figures["selection"]["MQ2008"]["fold 1"]["RankSVM, L2 loss"]["mean NDCG"]
    scores = [RankSVM(C=C).fit(train).predict(valid.X) for C in curve["grid"]]
    values = [metrics.letor_mean_ndcg(valid.y, s, qid=valid.qid) for s in scores]
    np.testing.assert_allclose(curve["valid"], values, atol=1e-12)
    best = curve["grid"][int(np.argmax(values))]
    row = re.search(r"^mean NDCG: RankSVM, L2 loss +2\^(\S+)", printed, re.MULTILINE)
    assert 2.0 ** int(row[1]) == best


def test_solvers_end_at_the_same_objective(outcome):
    for problem, by_solver in outcome[1]["convergence"].items():
        for pair in (("tron", "newton"), ("ocas", "smoothing")):
            first, second = (by_solver[solver]["objective"] for solver in pair)
            assert first == pytest.approx(second, rel=1e-6), problem


def test_explicit_pairs_have_the_optimum_of_levels(outcome):
    assert outcome[1]["losses"]["pairs against levels"] < 1e-6
    assert all(abs(of["difference"]) < 1e-6 for of in outcome[1]["auc"].values())


def test_adjacent_pairs_are_fewer_and_rank_worse(outcome):
    all_pairs, adjacent = (outcome[1]["adjacent"][name] for name in ("all", "adjacent"))
    assert adjacent["pairs"] < all_pairs["pairs"] / 100
    assert adjacent["valid"] < all_pairs["valid"]


def test_models_of_programs_are_read_and_judged(outcome):
    figures = outcome[1]["programs"]
    assert {name.partition(": ")[2] for name in figures} == {"LIBLINEAR-ranksvm", "SVM^rank"}
    for of in figures.values():
        assert of["theirs"] == pytest.approx(0, abs=1e-7)


def test_without_programs_it_says_so(stand_in, tmp_path):
    done, figures = run(stand_in, tmp_path / "results.json", "--only", "programs")
    assert done.returncode == 0
    assert figures == {"programs": {}}
    assert "LIBLINEAR-ranksvm is left out" in done.stdout
    assert "SVM^rank is left out" in done.stdout


def test_a_program_that_fails_ends_the_run_with_its_message(stand_in, tmp_path):
    broken = write_program(tmp_path / "train", "#!/bin/sh\necho 'wrong qid' >&2\nexit 3\n")
    options = ("--only", "programs", "--svm-rank", broken)
    done, figures = run(stand_in, tmp_path / "results.json", *options)
    assert done.returncode == 1
    assert done.stderr.strip() == f"programs: {broken} ended with 3 and wrote no model: wrong qid"
    assert figures == {}


def test_real_data_give_the_figures_of_papers_1_and_5(real_folder, stand_in, tmp_path):
    """About as printed: L2-loss RankSVM by rule (38) and L2-loss SVR; accuracy with C = 1."""
    data = tmp_path / "data"
    data.mkdir()
    for folder in (real_folder / "MQ2008", stand_in / "OHSUMED", stand_in / "cadata"):
        (data / folder.name).symlink_to(folder.resolve())
    figures = run(data, tmp_path / "results.json", "--only", "selection", "accuracy")[1]
    assert figures["accuracy"]["train"] == pytest.approx(0.8024, abs=5e-5)
    by_name = figures["selection"]["MQ2008"]["fold 1"]
    for metric, C, value in (("pairwise accuracy", 2**-1, 0.8217), ("mean NDCG", 2**-4, 0.4450)):
        curve = by_name["SVR, L2 loss"][metric]
        assert curve["test"][curve["grid"].index(C)] == pytest.approx(value, abs=1.5e-4)
        assert curve["grid"][int(np.argmax(curve["valid"]))] == C
    # The rule ends tron before or after one more iteration, as the last digits of X have it: with
    # X off by one part in 10^16, figures move by up to 0.0015 and the best C by two powers.
    for metric, C, value in (("pairwise accuracy", 2**7, 0.8270), ("mean NDCG", 2**7, 0.4571)):
        curve = by_name["RankSVM, L2 loss, rule (38)"][metric]
        at = curve["grid"].index(C)
        assert curve["test"][at] == pytest.approx(value, abs=2.5e-3)
        assert curve["valid"][at] > max(curve["valid"]) - 7e-3


def test_direct_counting_multiplies_as_the_kernels_and_explicit_pairs_do(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from paper_sections.direct_counting import DirectCounting

    rng = np.random.default_rng(0)
    for n_levels in (2, 5, 40, None):
        X, y, _ = make_ranking(1, 200, 3, n_levels=n_levels, random_state=0)
        point = make_objective(RankingData(X, y, group=[200]), Parameters()).at(rng.normal(size=3))
        scores, u = np.asarray(point.scores), rng.normal(size=200)
        product = DirectCounting(y, scores).hess_vec(u)
        np.testing.assert_allclose(product, point.hess_vec_scores(u), atol=1e-9)
        pairs = explicit_pairs(y, np.zeros(200))
        judge = BruteForce(np.eye(200), pairs, LOSSES["squared_hinge"], 1.0)
        np.testing.assert_allclose(product, judge.hessian(scores) @ u - u, atol=1e-9)
