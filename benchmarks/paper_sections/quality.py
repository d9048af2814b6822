"""Paper 1, figures 5 and 6: test accuracy and NDCG against time and CG iterations.

A callback keeps the weights of each iteration; they are evaluated after the fit.
"""

from typing import NamedTuple

import numpy as np
from paper_sections.pointwise import FORMATS, METRICS, PAPER_C
from paper_sections.report import Figures, show, times
from paper_sections.stopping import line_of_rule, slope_at_zero
from paper_sections.study import Split, Study, fit, part

from marginrank import Iteration, RankingData, RankSVM
from marginrank._utils.threads import serial_blas
from marginrank.fit.linear import Parameters, make_objective
from marginrank.solvers import find_solver

SOLVERS = {"tron": "squared_hinge", "newton": "squared_hinge", "bmrm": "hinge"}
DISTANCES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6)
NOTES = (
    "The first iterate within each relative distance to the optimum of its loss. Times are for "
    "tron until rule (38) stops it. Steps are CG iterations, or planes of bmrm, as in the "
    "supplement of the paper; newton has preconditioned ones, or solves its systems directly.",
    "cadata is here in place of the list sets; NDCG overflows there, too.",
)


class Iterate(NamedTuple):
    """An iteration on all documents, the steps so far, and the weights."""

    line: Iteration
    steps: int
    w: np.ndarray


def iterates(data: RankingData, solver: str, C: float, limit: int) -> list[Iterate]:
    """Return the iterations of a solver, each with the best weights so far."""
    parameters = Parameters(C=C, loss=SOLVERS[solver], solver=solver)
    objective = make_objective(data, parameters)
    found: list[Iterate] = []

    def keep(line: Iteration) -> None:
        if line.fraction == 1.0 and objective.journal.w is not None:
            before = found[-1].steps if found else 0
            steps = before + (1 if solver == "bmrm" else line.inner_iterations)
            found.append(Iterate(line, steps, objective.journal.w.copy()))

    with serial_blas():
        solve = find_solver(solver, objective.loss)
        solve(objective, w0=None, tol=1e-7, max_iter=limit, seed=0, callback=keep)
    return found


def quality(study: Study) -> Figures:
    """Figures 5 and 6: what the iterates are worth on the test part."""
    data = study.cadata()
    last = min(data.n_documents, 3000) if study.quick else data.n_documents
    cut = int(0.8 * last)
    cadata = Split(*(part(data, slice(*ends)) for ends in ((0, cut), (cut, last), (cut, last))))
    mq2008 = study.fold("MQ2008")
    chosen = {
        "squared_hinge": PAPER_C["RankSVM, L2 loss"][0],
        "hinge": PAPER_C["RankSVM, L1 loss"][0],
    }
    return {
        "MQ2008": _curves("MQ2008 fold 1", mq2008, chosen, list(METRICS), study),
        "cadata": _curves(
            "cadata", cadata, dict.fromkeys(chosen, 2.0**-4), ["pairwise accuracy"], study
        ),
    }


def _curves(
    name: str, split: Split, Cs: dict[str, float], metrics: list[str], study: Study
) -> Figures:
    slope = slope_at_zero(split.train)
    figures: Figures = {}
    rows = []
    for solver, loss in SOLVERS.items():
        C = Cs[loss]
        optimum = fit(RankSVM(C=C, loss=loss, tol=1e-9), split.train).objective_
        found = iterates(split.train, solver, C, 100 if study.quick else 500)
        if solver == "tron":
            unit = line_of_rule([one.line for one in found], C * slope).seconds
        lowest = np.minimum.accumulate([one.line.objective for one in found])
        figures[solver] = []
        for distance in DISTANCES:
            reached = np.flatnonzero(lowest / optimum - 1 <= distance)
            if reached.size:
                one = found[reached[0]]
                of = {metric: _value(metric, split.test, one.w) for metric in metrics}
                figures[solver].append({"distance": distance, "steps": one.steps, **of})
                shown = [FORMATS[metric](value) for metric, value in of.items()]
                spent = times(one.line.seconds / unit)
                rows.append([f"{solver}, to {distance:g}", one.steps, spent, *shown])
    title = f"Paper 1, figures 5 and 6: {name}, test part, C = {Cs['squared_hinge']:g}"
    show(title, ["", "steps", "time", *metrics], rows, NOTES if name == "cadata" else ())
    return figures


def _value(metric: str, data: RankingData, w: np.ndarray) -> float:
    return float(METRICS[metric](data.y, data.X @ w, qid=data.qid))
