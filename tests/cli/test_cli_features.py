"""marginrank features."""

import json
import os
import subprocess
import sys

import pytest

from marginrank import load_letor, rank_features


@pytest.fixture(scope="module")
def ranking(train_txt):
    return rank_features(load_letor(train_txt))


def test_the_values_of_the_api(run, train_txt, ranking):
    result = json.loads(run("features", train_txt, "--json").stdout)
    assert result["metric"] == "ndcg@10"
    assert result["chance"] == ranking.chance
    assert result["data"]["features"] == 6
    assert {"read", "features"} <= result["seconds"].keys()
    names = [ranking.feature_names[j] for j in ranking.order]
    assert [one["feature"] for one in result["features"]] == names
    assert sorted(names) == ["f1", "f2", "f3", "f4", "f5", "f6"]
    for one in result["features"]:
        j = ranking.feature_names.index(one["feature"])
        assert one["value"] == one[one["direction"]] == ranking.best[j]
        assert one["descending"] == ranking.descending[j]
        assert one["ascending"] == ranking.ascending[j]


def test_table(run, train_txt, ranking):
    done = run("features", train_txt, "--top", "3")
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert lines[:2] == [["Best", "of", "6", "features"], ["feature", "direction", "ndcg@10"]]
    directions = {1: "descending", -1: "ascending"}
    assert lines[2:-1] == [
        [f"f{j + 1}", directions[ranking.direction[j]], f"{ranking.best[j]:.4f}"]
        for j in ranking.order[:3]
    ]
    assert lines[-1] == ["random", "order", "-", f"{ranking.chance:.4f}"]


def test_metric_and_its_options(run, train_txt):
    flags = ("--metric", "ndcg@3", "--gain", "linear", "--json")
    result = json.loads(run("features", train_txt, *flags).stdout)
    assert result["metric"] == "ndcg@3(gain='linear')"


def test_names_of_a_table_and_of_text_that_counts_from_zero(run, tmp_path):
    (tmp_path / "t.csv").write_text("label,qid,bm25,length\n1,a,2.5,1\n0,a,0.5,7\n")
    result = json.loads(run("features", tmp_path / "t.csv", "--json").stdout)
    best, other = result["features"]
    assert (best["feature"], best["direction"]) == ("bm25", "descending")
    assert (other["feature"], other["direction"]) == ("length", "ascending")
    (tmp_path / "t.txt").write_text("1 qid:1 0:2.5 1:1\n0 qid:1 0:0.5 1:1\n")
    result = json.loads(run("features", tmp_path / "t.txt", "--zero-based", "--json").stdout)
    assert [one["feature"] for one in result["features"]] == ["f1", "f2"]


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("SVG", b"<?xml")])
def test_plot(run, train_txt, tmp_path, ending, magic):
    run("features", train_txt, "--plot", tmp_path / f"plot.{ending}")
    assert (tmp_path / f"plot.{ending}").read_bytes().startswith(magic)
    assert os.listdir(tmp_path) == [f"plot.{ending}"]


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--metric", "ngcd"), "use one of"),
        (("--metric", "ndcg,auc"), "--metric ndcg,auc names 2 metrics"),
        (("--metric", "auc", "--gain", "linear"), "--gain applies to ndcg"),
        (("--top", "0"), "--top 0 must be an integer of at least 1"),
        (("--plot", "plot.xyz"), ".png"),
        (("--plot", "plot"), ".png"),
        (("--plot", "no/such/folder.png"), "does not exist"),
    ],
)
def test_refused_before_any_data_is_read(run, flags, word):
    done = run("features", "no_such_file.txt", *flags, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("marginrank: ")
    assert word in done.stderr


def test_a_missing_matplotlib_is_named(train_txt, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError(name='matplotlib')")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "marginrank", "features", train_txt]
    environment = {**os.environ, "PYTHONPATH": paths}
    plot = ["--plot", tmp_path / "plot.png"]
    done = subprocess.run([*command, *plot], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.endswith("get it with: pip install matplotlib\n")
    assert subprocess.run(command, capture_output=True, env=environment).returncode == 0


def test_scikit_learn_is_not_imported(train_txt, tmp_path):
    code = (
        "import sys\n"
        "from marginrank.cli import main\n"
        f"sys.argv = ['marginrank', 'features', {str(train_txt)!r}, "
        f"'--plot', {str(tmp_path / 'plot.png')!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'sklearn', 'pandas', 'matplotlib.pyplot'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
