"""A flag without effect raises an error before any work, in every command that reads data."""

import json

import pytest

from marginrank import load_letor, load_model

OF_TABLES = ("label", "qid", "features", "sample-weight", "query-weight", "comments")
OF_TEXT = ("group", "n-features", "zero-based", "missing", "layout", "dtype")
# Flags at their defaults, too: they say nothing either.
VALUES = {
    "label": ["label"],
    "qid": ["qid"],
    "n-features": ["6"],
    "zero-based": [],
    "missing": ["0"],
    "layout": ["auto"],
    "dtype": ["float32"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, invoke, train_txt, model_json):
    """Return a folder with the same data as text, table and store."""
    folder = tmp_path_factory.mktemp("flags")
    (folder / "d.txt").write_bytes(train_txt.read_bytes())
    (folder / "m.json").write_bytes(model_json.read_bytes())
    (folder / "sizes.txt").write_text("2\n")
    for name in ("d.csv", "d.store"):
        assert invoke("convert", folder / "d.txt", folder / name).returncode == 0
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


COMMANDS = (
    "train DATA --model out.json",
    "train-sparse DATA --model out.json",
    "train-additive DATA --model out.json",
    "tune DATA --model out.json",
    "predict m.json DATA",
    "evaluate m.json DATA",
    "compare DATA --model-a m.json --model-b m.json",
    "report m.json DATA --out out.html",
    "features DATA",
    "inspect DATA",
    "convert DATA out.store",
)


def given(flag):
    return [f"--{flag}", *VALUES.get(flag, ["sizes.txt"])]


def check_rejected(invoke, command, data, flag, reason):
    words = [data if word == "DATA" else word for word in command.split()]
    done = invoke(*words, *given(flag))
    assert (done.returncode, done.stdout) == (2, ""), command
    assert done.stderr == f"marginrank: --{flag} {reason}; drop --{flag}.\n", command


@pytest.mark.parametrize("flag", OF_TABLES)
def test_flags_of_tables_are_rejected_for_other_data(invoke, here, flag):
    check_rejected(invoke, "features DATA", "d.txt", flag, "is for tables, but d.txt is text")
    check_rejected(
        invoke, "features DATA", "d.store", flag, "is for tables, but d.store is a store"
    )


@pytest.mark.parametrize("flag", OF_TEXT)
def test_flags_of_text_are_rejected_for_other_data(invoke, here, flag):
    check_rejected(invoke, "features DATA", "d.csv", flag, "is for text, but d.csv is a table")
    check_rejected(invoke, "features DATA", "d.store", flag, "is for text, but d.store is a store")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_rejects_flags_of_another_kind_of_data(invoke, here, command):
    check_rejected(invoke, command, "d.txt", "comments", "is for tables, but d.txt is text")
    check_rejected(invoke, command, "d.csv", "layout", "is for text, but d.csv is a table")
    check_rejected(invoke, command, "d.store", "dtype", "is for text, but d.store is a store")
    assert not (here / "out.json").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_lists_of_flags_above_are_complete(command):
    from marginrank.cli import app
    from marginrank.cli.flags import shared

    name = command.split()[0]
    reading = {
        option.opts[0].removeprefix("--")
        for option in app.command(name).params
        if getattr(option, "rich_help_panel", None) in (shared.TABLES, shared.LETOR)
    }
    assert reading - {"valid-group", "test-group"} == {*OF_TABLES, *OF_TEXT}


def test_flags_of_either_data_are_kept_where_kinds_are_mixed(invoke, here):
    command = ("train", "d.txt", "--model", "mixed.json", "--valid", "d.csv")
    flags = ("--label", "label", "--n-features", "6", "--dtype", "float64")
    assert invoke(*command, *flags).returncode == 0
    assert "is for text" in invoke(*command, "--valid-group", "sizes.txt").stderr
    table_first = ("train", "d.csv", "--model", "mixed.json", "--valid", "d.txt")
    assert "is for text" in invoke(*table_first, "--group", "sizes.txt").stderr


def test_flags_of_what_convert_writes(invoke, here, tmp_path):
    for source in ("d.txt", "d.store"):
        out = tmp_path / f"{source}.csv"
        flags = ("--label", "grade", "--qid", "topic")
        assert invoke("convert", source, out, *flags).returncode == 0
        assert out.read_text().startswith('"grade","topic","f1"')
    out = tmp_path / "zero.txt"
    assert invoke("convert", "d.store", out, "--zero-based").returncode == 0
    assert " 0:" in out.read_text().splitlines()[0]
    assert "is for tables" in invoke("convert", "d.txt", out, "--label", "grade").stderr


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("-C 1 --lam 0.5", "--C cannot be combined with --lam; drop one."),
        ("--metrics ndcg@3", "--metrics needs --valid."),
        ("--gain linear", "--gain needs --valid."),
        ("--discount letor", "--discount needs --valid."),
        ("--valid-group sizes.txt", "--valid-group needs --valid."),
        ("--radius 1", "--radius is a flag of train-sparse, not of train."),
        ("--l1-ratio 1.0", "--l1-ratio is a flag of train-sparse, not of train."),
        ("--positive", "--positive is a flag of train-sparse and fuse, not of train."),
        ("--path=5", "--path is a flag of train-sparse, not of train."),
        ("--method pair", "--method is a flag of train-online, not of train."),
        ("--budget 60", "--budget is a flag of tune, not of train."),
        ("--no-average", "--no-average is a flag of train-online, not of train."),
        ("--chunk-documents 9", "--chunk-documents is a flag of train-online, not of train."),
        (
            "--pairs p.txt --pair-selection all",
            "--pair-selection cannot be combined with --pairs; drop one.",
        ),
        (
            "--pairs p.txt --pair-cost gain",
            "--pair-cost cannot be combined with --pairs; drop one.",
        ),
        ("--pairs p.txt --margin label", "--margin cannot be combined with --pairs; drop one."),
        ("--n-features 0", "--n-features 0 must be an integer of at least 1."),
        # What only Python can give is not offered.
        ("--pair-cost x", "--pair-cost 'x' must be one of 'gain', 'ndcg'."),
        ("--margin x", "--margin 'x' must be one of 'unit', 'label', 'gain'."),
    ],
)
def test_flags_that_depend_on_others(invoke, here, flags, sentence):
    (here / "p.txt").write_text("0 1\n")
    done = invoke("train", "d.txt", "--model", "out.json", *flags.split())
    assert (done.returncode, done.stderr) == (2, f"marginrank: {sentence}\n")


def test_chunks_are_of_text(invoke, here):
    command = ("train-online", "d.store", "--model", "out.json", "--chunk-documents", "9")
    assert "--chunk-documents is for text, but d.store is a store" in invoke(*command).stderr


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("inspect m.json --top 0", "--top 0 must be an integer of at least 1."),
        ("inspect m.json --top -1", "--top -1 must be an integer of at least 1."),
        ("inspect d.txt --top 3", "--top is for models, but d.txt is data; drop --top."),
        ("inspect m.json --label x", "--label is for data, but m.json is a model; drop --label."),
        (
            "inspect m.json --dtype float64",
            "--dtype is for data, but m.json is a model; drop --dtype.",
        ),
        (
            "predict m.json d.txt --n-features 7",
            "--n-features 7 is given, but the model has 6 features; drop --n-features.",
        ),
    ],
)
def test_flags_of_models_and_of_data(invoke, here, command, sentence):
    done = invoke(*command.split())
    assert (done.returncode, done.stderr) == (2, f"marginrank: {sentence}\n")


def test_features_are_those_of_a_model_that_names_them(invoke, here):
    assert invoke("train", "d.csv", "--model", "named.json").returncode == 0
    done = invoke("predict", "named.json", "d.csv", "--features", "f1,f2")
    assert "the model knows the names of its features; drop --features." in done.stderr
    assert invoke("predict", "m.json", "d.csv", "--features", "f1,f2,f3,f4,f5,f6").returncode == 0


def test_columns_that_look_like_no_features_are_a_warning(invoke, here):
    command = ("train", "d.csv", "--model", "one.json")
    done = invoke(*command, "--qid", "", "--json")
    assert "the column 'qid' is used as a feature" in done.stderr
    assert json.loads(done.stdout)["data"]["features"] == 7
    done = invoke(*command, "--qid", "", "--features", "f1,f2", "--json")
    assert "taken as a feature" not in done.stderr
    assert "taken as a feature" not in invoke(*command).stderr


def test_threads_do_not_change_the_scores(invoke, here):
    one, two = (invoke("predict", "m.json", "d.txt", "--n-jobs", n).stdout for n in (1, 2))
    expected = load_model("m.json").predict(load_letor("d.txt").X)
    assert one == two == "".join(f"{score!r}\n" for score in expected.tolist())
    assert (
        "--n-jobs 0 must be an integer"
        in invoke("predict", "m.json", "d.store", "--n-jobs", "0").stderr
    )
