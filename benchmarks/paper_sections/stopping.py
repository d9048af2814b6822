"""The stopping rule of paper 1, (38): the gradient has fallen to ε of that at w = 0.

`tron` stops on the distance to the optimum instead. Where it would have stopped by the rule is read
from its history, and a second fit ends there.
"""

from collections.abc import Sequence

import numpy as np
from paper_sections.study import fit
from scipy.stats import rankdata

from marginrank import Iteration, RankingData, RankSVM

EPSILON = 1e-3  # the paper's and LIBLINEAR's default


def slope_at_zero(data: RankingData) -> float:
    """Return ‖∇F(0)‖ for C = 1: every pair has a loss of 1, and a slope of -2."""
    wins = np.empty(data.n_documents)  # of each document, less what it loses
    for query in range(data.n_queries):
        rows = data.qid == query
        wins[rows] = 2 * rankdata(data.y[rows]) - 1 - np.count_nonzero(rows)
    return 2 * float(np.linalg.norm(data.X.T @ wins))


def line_of_rule(history: Sequence[Iteration], initial_slope: float) -> Iteration:
    """Return the first iteration that satisfies the rule, or the last one."""
    reached = (line for line in history if line.gradient_norm <= EPSILON * initial_slope)
    return next(reached, history[-1])


def fit_to_rule(C: float, data: RankingData, slope: float) -> RankSVM:
    """Return the iterate at which the rule stops `tron`; `slope` is |∇F(0)| for C = 1."""
    # tol = ε² makes its own rule at least as strict.
    model = fit(RankSVM(C=C, solver="tron", tol=EPSILON**2), data)
    line = line_of_rule(model.history_, C * slope)
    return fit(model.set_params(max_iter=line.iteration), data)
