"""The problems that other programs solve, as parameters of a fit.

What their -c weighs differs, and so does what their -e bounds. Here a fit comes as close to the
optimum as -e asks for, and never less close than :data:`CLOSE`.
"""

import numpy as np

from marginrank._utils.types import Floats
from marginrank.data.ranking_data import RankingData
from marginrank.fit.linear import Parameters, fit_linear, make_objective
from marginrank.models.linear_model import LinearModel

CLOSE = 1e-6  # (F − F*) / F*, at most
TIGHTER = 1e-2  # what a tolerance that was not enough is multiplied by
ATTEMPTS = 4  # then it is below what float64 can tell


def fit_like_svm_rank(
    data: RankingData, *, c: float, epsilon: float = 1e-3, by_query: bool = False
) -> LinearModel:
    """Minimise the objective of SVM^rank, ½‖w‖² + c/q Σ hinge(pair), over q queries.

    Parameters
    ----------
    data : RankingData
        The documents; queries without a pair count in q, too.
    c : float
        Its -c.
    epsilon : float
        Its -e: w is at most ε F(0) above the optimum, as its cutting planes end when none of them
        is violated by more than ε times the largest loss there is.
    by_query : bool
        Its -l 2: the sum over the pairs of a query is divided by their number.
    """
    return fit_linear(data, svm_rank_parameters(data, c=c, epsilon=epsilon, by_query=by_query))


def svm_rank_parameters(
    data: RankingData, *, c: float, epsilon: float = 1e-3, by_query: bool = False
) -> Parameters:
    """Return the parameters of :func:`fit_like_svm_rank`."""
    tol = min(epsilon, CLOSE)  # F* ≤ F(0)
    if by_query:  # means are taken over the queries that have pairs, not over all
        share = np.count_nonzero(data.queries.n_pairs) / data.n_queries
        return Parameters(C=c * share, loss="hinge", normalization="query", tol=tol)
    return Parameters(C=c / data.n_queries, loss="hinge", tol=tol)


def fit_like_liblinear(data: RankingData, *, c: float, epsilon: float = 1e-3) -> LinearModel:
    """Minimise the objective of LIBLINEAR-ranksvm, ½‖w‖² + c Σ max(0, 1 − t)² over pairs.

    Parameters
    ----------
    data : RankingData
        The documents.
    c : float
        Its -c.
    epsilon : float
        Its -e: ‖∇F(w)‖ is at most ε ‖∇F(0)‖.
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
    """Return scores of documents that may have fewer or more features than a model.

    Features that the model does not know are not looked at, as in the programs of the peers.
    """
    weights = np.zeros(data.n_features)
    known = min(coef.size, data.n_features)
    weights[:known] = coef[:known]
    return data.matrix.dot(weights, None, threads)
