"""LIBLINEAR-ranksvm and SVM^rank as programs, and what their models are worth."""

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from paper_sections.report import Figures, show, times
from paper_sections.study import Study, fit, part

from marginrank import RankingData, RankSVM, dump_letor, load_letor, load_model
from marginrank.fit.linear import Parameters, make_objective

LIMIT = 120  # seconds a program may take; larger data is then left out


class ProgramError(Exception):
    """A program did not do what it was asked for."""


class OutOfTimeError(ProgramError):
    """A program took too long."""


class Program(NamedTuple):
    """A trainer: what it minimizes, and its arguments before the files."""

    option: str
    loss: str
    arguments: Callable[[float], list[str]]


PROGRAMS = {
    "LIBLINEAR-ranksvm": Program(
        "liblinear_ranksvm", "squared_hinge", lambda C: ["-s", "8", "-c", repr(C), "-q"]
    ),
    # Its c is divided by the number of queries, which the caller has multiplied C by.
    "SVM^rank": Program("svm_rank", "hinge", lambda c: ["-c", repr(c), "-v", "0"]),
}


def train(path: str, arguments: list[str], data: Path, folder: Path) -> tuple[RankSVM, float]:
    """Run a trainer on a file; return its model and its seconds."""
    model = folder / "model.txt"
    model.unlink(missing_ok=True)
    start = time.perf_counter()
    try:
        done = subprocess.run(
            [path, *arguments, str(data), str(model)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # where SVM^rank writes its errors
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=LIMIT,
            check=False,
        )
    except OSError as error:
        raise ProgramError(f"{path} cannot be run: {error.strerror}.") from error
    except subprocess.TimeoutExpired:
        raise OutOfTimeError(f"{path} has not ended after {LIMIT} s") from None
    spent = time.perf_counter() - start
    if done.returncode != 0 or not model.exists():
        said = done.stdout.strip().splitlines()[-1:] or ["no message"]
        raise ProgramError(f"{path} ended with {done.returncode} and wrote no model: {said[0]}")
    return load_model(model), spent


def programs(study: Study) -> Figures:
    """Objectives and times of the programs beside this library's, on cadata and MQ2008."""
    given = {name: p for name, p in PROGRAMS.items() if getattr(study, p.option)}
    for name, program in PROGRAMS.items():
        if name not in given:
            print(f"\n{name} is left out: --{program.option.replace('_', '-')} names no program")
    if not given:
        return {}
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as folder:
        for problem, data in _problems(study).items():
            path = Path(folder) / "data.txt"
            # SVM^rank wants the numbers of the queries to ascend.
            dump_letor(RankingData(data.X, data.y, data.qid + 1), path)
            C = 1.0 if data.n_queries > 1 else 100 / data.n_pairs
            for name, program in list(given.items()):
                executable = getattr(study, program.option)
                try:
                    figures[f"{problem}: {name}"] = _compare(program, executable, path, C)
                except OutOfTimeError as error:
                    print(f"\n{problem}: {error}; it is left out from here on")
                    del given[name]
    _show(figures)
    return figures


def _problems(study: Study) -> dict[str, RankingData]:
    data = study.cadata()
    sizes = (500,) if study.quick else (1000, 2000, 4000, 8000, 16000, data.n_documents)
    problems = {f"cadata, {size:,}": part(data, slice(size)) for size in sizes}
    return {"MQ2008 fold 1": study.fold("MQ2008").train, **problems}


def _compare(program: Program, executable: str, path: Path, C: float) -> Figures:
    """Return times from the text to the model, and how far above the optimum the models are."""
    start = time.perf_counter()
    data = load_letor(path, dtype="float64")
    ours = fit(RankSVM(C=C, loss=program.loss), data)
    spent = time.perf_counter() - start
    factor = data.n_queries if program.loss == "hinge" else 1
    theirs, their_time = train(executable, program.arguments(C * factor), path, path.parent)
    objective = make_objective(data, Parameters(C=C, loss=program.loss))
    optimum = fit(RankSVM(C=C, loss=program.loss, tol=1e-9), data).objective_
    return {
        "time": their_time / spent,
        "theirs": objective.at(theirs.coef_).value / optimum - 1,
        "ours": ours.objective_ / optimum - 1,
    }


def _show(figures: Figures) -> None:
    rows = [
        [name, times(of["time"]), f"{of['theirs']:.1e}", f"{of['ours']:.1e}"]
        for name, of in figures.items()
    ]
    notes = (
        "Times are from the text to the model, of the program over marginrank's. C = 1, and on "
        "cadata 100 over the number of pairs. The programs run with their own tolerances.",
        "Distances are (F - F*) / F*, by this library's F of both models.",
    )
    header = ["", "time / marginrank's", "its distance", "marginrank's distance"]
    show("Programs of others on the same text", header, rows, notes)
