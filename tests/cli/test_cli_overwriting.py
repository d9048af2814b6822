"""An output that is an input raises an error, before any work and under any name."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch, invoke, train_txt, model_json):
    """Return a folder with an input of every kind."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.txt").write_bytes(train_txt.read_bytes())
    (tmp_path / "v.txt").write_bytes(train_txt.read_bytes())
    (tmp_path / "m.json").write_bytes(model_json.read_bytes())
    (tmp_path / "s.txt").write_text("1\n" * len(train_txt.read_text().splitlines()))
    (tmp_path / "plain.txt").write_text("1 1:1\n0 1:2\n")
    (tmp_path / "sizes.png").write_text("2\n")
    (tmp_path / "pairs.txt").write_text("0 1\n")
    (tmp_path / "plot.png").write_text("1 qid:1 1:1\n0 qid:1 1:2\n")
    assert invoke("convert", "d.txt", "d.store").returncode == 0
    os.symlink("d.txt", "link.txt")
    os.link("d.txt", "hard.txt")
    os.symlink("d.store", "link.store")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("command", "out", "source"),
    [
        ("train d.txt --model d.txt", "d.txt", "d.txt"),
        ("train d.txt --model ./d.txt", "./d.txt", "d.txt"),
        ("train d.txt --model link.txt", "link.txt", "d.txt"),
        ("train link.txt --model d.txt", "d.txt", "link.txt"),
        ("train d.txt --model hard.txt", "hard.txt", "d.txt"),
        ("train d.txt --valid v.txt --model v.txt", "v.txt", "v.txt"),
        ("train plain.txt v.txt --model v.txt", "v.txt", "v.txt"),
        ("train plain.txt --group sizes.png --model sizes.png", "sizes.png", "sizes.png"),
        ("train d.txt --pairs pairs.txt --model pairs.txt", "pairs.txt", "pairs.txt"),
        ("train d.store --model d.store/m.json", "d.store/m.json", "d.store"),
        ("train-online d.txt --model d.txt", "d.txt", "d.txt"),
        (
            "train-sparse d.txt --valid plot.png --path 3 --plot plot.png --model o.json",
            "plot.png",
            "plot.png",
        ),
        ("tune d.txt --test v.txt --model v.txt", "v.txt", "v.txt"),
        ("tune d.txt --valid plot.png --plot plot.png --model o.json", "plot.png", "plot.png"),
        ("predict m.json d.txt --out m.json", "m.json", "m.json"),
        ("predict m.json d.txt --out d.txt", "d.txt", "d.txt"),
        ("predict m.json d.store --out d.store/X.npy", "d.store/X.npy", "d.store"),
        ("predict m.json link.store --out d.store/y.npy", "d.store/y.npy", "link.store"),
        ("predict m.json plain.txt --group sizes.png --out sizes.png", "sizes.png", "sizes.png"),
        ("evaluate m.json v.txt --per-query v.txt", "v.txt", "v.txt"),
        ("evaluate m.json v.txt --per-query m.json", "m.json", "m.json"),
        ("evaluate --scores s.txt v.txt --per-query s.txt", "s.txt", "s.txt"),
        ("features plot.png --plot plot.png", "plot.png", "plot.png"),
        ("convert d.txt d.txt --overwrite", "d.txt", "d.txt"),
        ("convert d.txt hard.txt --overwrite", "hard.txt", "d.txt"),
        ("convert d.store link.store --overwrite", "link.store", "d.store"),
        ("convert d.store d.store --overwrite", "d.store", "d.store"),
        ("convert v.txt d.txt v.txt --overwrite", "v.txt", "v.txt"),
    ],
)
def test_inputs_are_kept(invoke, folder, command, out, source):
    before = contents(folder)
    done = invoke(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"marginrank: {out} would overwrite the input {source}; write to another file.\n"
    )
    assert contents(folder) == before


def test_two_outputs_are_two_files(invoke, folder):
    command = "train-sparse d.txt --valid v.txt --path 3 --plot o.png --model ./o.png"
    done = invoke(*command.split())
    assert done.stderr == "marginrank: o.png is given as two outputs; use different files.\n"
    assert not (folder / "o.png").exists()


@pytest.mark.parametrize("how", ["ab", "r+b"])
def test_standard_output_that_is_an_input(folder, how):
    before = contents(folder)
    command = [sys.executable, "-m", "marginrank", "predict", "m.json", "d.txt"]
    with open("d.txt", how) as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "marginrank: standard output goes to the input d.txt; redirect it elsewhere.\n"
    )
    assert contents(folder) == before


def test_standard_input_from_the_output(folder, run):
    before = contents(folder)
    command = [sys.executable, "-m", "marginrank", "train", "-", "--model", "d.txt"]
    with open("d.txt", "rb") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, text=True)
    assert done.stderr == (
        "marginrank: d.txt would overwrite the input -; write to another file.\n"
    )
    assert contents(folder) == before


def test_other_files_and_devices_are_written(invoke, folder):
    assert invoke("predict", "m.json", "d.txt", "--out", "s.txt").returncode == 0
    assert invoke("predict", "m.json", "d.txt", "--out", "/dev/null").returncode == 0
    assert invoke("train", "d.txt", "--model", "m.json").returncode == 0
    assert invoke("convert", "d.txt", "d.store", "--overwrite").returncode == 0
