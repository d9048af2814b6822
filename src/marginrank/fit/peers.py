"""Fits that minimize the objectives of SVM^rank and LIBLINEAR-ranksvm.

Both programs have the options -c (weight of the loss) and -e (accuracy), with different meanings. A
fit stops once it meets -e and its objective is within a relative distance of :data:`CLOSE` of the
optimum.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters, fit_linear, make_objective
from marginrank.models.linear_model import LinearModel

CLOSE = 1e-6  # largest (F − F*) / F*
TIGHTER = 1e-2  # factor by which each attempt decreases tol
ATTEMPTS = 4  # with more attempts, tol would be below the precision of float64


def fit_like_svm_rank(
    data: RankingData, *, c: float, epsilon: float = 1e-3, by_query: bool = False
) -> LinearModel:
    """Minimize the objective of SVM^rank, ½‖w‖² + c/q Σ hinge loss over the pairs of q queries.

    `c` and `epsilon` are the options -c and -e of svm_rank_learn: the objective F at the result is
    at most `epsilon` F(0) above its minimum. With `by_query` (option -l 2), the loss of a query is
    divided by its number of pairs. Queries without a pair count in q, too.
    """
    # SVM^rank stops when no cutting plane is violated by more than ε times the largest possible
    # loss, and F* ≤ F(0).
    tol = min(epsilon, CLOSE)
    if by_query:  # the means of this package are over queries with pairs, not over all queries
        share = np.count_nonzero(data.queries.n_pairs) / data.n_queries
        parameters = Parameters(C=c * share, loss="hinge", normalization="query", tol=tol)
    else:
        parameters = Parameters(C=c / data.n_queries, loss="hinge", tol=tol)
    return fit_linear(data, parameters)


def fit_like_liblinear(data: RankingData, *, c: float, epsilon: float = 1e-3) -> LinearModel:
    """Minimize the objective of LIBLINEAR-ranksvm, ½‖w‖² + c Σ max(0, 1 − t)² over pairs.

    t is the score difference of a pair. `c` and `epsilon` are the options -c and -e of LIBLINEAR:
    the gradient of the objective F at the result w satisfies ‖∇F(w)‖ ≤ `epsilon` ‖∇F(0)‖.
    """
    parameters = Parameters(C=c, tol=CLOSE)
    start = make_objective(data, parameters).at(np.zeros(data.n_features))
    bound = 0.5 * (epsilon * float(np.linalg.norm(start.gradient))) ** 2
    model = fit_linear(data, parameters)
    for _ in range(ATTEMPTS):
        report = model.report
        assert report is not None
        if report.gap <= bound or not report.stop_reason.converged:  # the gap is ½‖∇F‖²
            break
        parameters = Parameters(C=c, tol=TIGHTER * parameters.tol)
        model = fit_linear(data, parameters, w0=model.coef)
    return model


def scores_by(coef: Floats, data: RankingData, threads: int = 1) -> Floats:
    """Return the scores Xw of documents that may have fewer or more features than the model.

    Features without a weight are ignored, as in SVM^rank and LIBLINEAR.
    """
    weights = np.zeros(data.n_features)
    known = min(coef.size, data.n_features)
    weights[:known] = coef[:known]
    return data.matrix.dot(weights, None, threads)
