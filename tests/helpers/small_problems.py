"""Random small problems of every kind that a fit must tell the truth about."""

from dataclasses import dataclass

import numpy as np

from helpers.brute_force import ExplicitPairs, explicit_pairs
from helpers.oracle import LONG, Oracle
from helpers.pair_kinds import within
from marginrank import RankSVM
from marginrank.objective.losses import exact, get_loss
from marginrank.objective.pair_weights import pair_cost
from marginrank.solvers import solvers_for

SHAPES = ("plain", "separable", "tied", "scaled", "tiny", "wide")
LOSSES = ("squared_hinge", "hinge", "hinge", "huber", "logistic")


@dataclass
class SmallProblem:
    """Data, parameters and the same thing over explicit pairs."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    parameters: dict
    fit_parameters: dict
    pairs: ExplicitPairs

    @property
    def has_pairs(self):
        """Whether there is a pair to learn from."""
        return self.pairs.weight.size > 0 and float(self.pairs.weight.max()) > 0

    @property
    def judge(self):
        """The independent judge of it."""
        loss = get_loss(self.parameters["loss"])
        loss = loss if self.fit_parameters.get("pairs") is None else exact(loss)
        margin = self.fit_parameters.get("pair_margin", self.parameters["margin"])
        if not (isinstance(margin, str) and margin == "unit"):
            loss = loss.shifted(-loss.margin)
        return Oracle(self.X, self.pairs, loss, self.parameters["C"])

    def fit(self):
        """Return the fitted model."""
        return RankSVM(**self.parameters).fit(self.X, self.y, **self.fit_parameters)


def small_problem(seed):
    """Draw a problem; C and the scales of features are 1e-6 to 1e6, and some C are far above."""
    rng = np.random.default_rng(seed)
    X, y, qid = _draw_data(rng)
    loss = str(rng.choice(LOSSES))
    listed = rng.random() < 0.1
    cost = rng.choice(["none", "gain", "ndcg"], p=[0.6, 0.2, 0.2])
    parameters = {
        "C": float(10.0 ** rng.uniform(-6, 6)),
        "loss": loss,
        "solver": str(rng.choice(["auto", *solvers_for(get_loss(loss))])),
        "tol": float(rng.choice([1e-3, 1e-6, 1e-9])),
        "normalization": str(rng.choice(["none", "pairs", "query"])),
        "pair_cost": None if cost == "none" or listed else str(cost),
        "margin": "unit" if listed else str(rng.choice(["unit", "label"], p=[0.8, 0.2])),
        "pair_selection": "adjacent" if not listed and rng.random() < 0.1 else "all",
    }
    huge = np.random.default_rng([seed, 1])
    if huge.random() < 0.05:
        parameters["C"] = float(10.0 ** huge.uniform(8, 14))
    if parameters["pair_cost"] == "ndcg":
        y = np.abs(y)
    weight = rng.uniform(0.1, 3.0, len(y)) if rng.random() < 0.2 else None
    pairs = _weighted_pairs(
        y,
        qid,
        weight,
        parameters,
        margin=y if parameters["margin"] == "label" else None,
        close=within(y, qid, 1) if parameters["pair_selection"] == "adjacent" else None,
    )
    fit_parameters = {"qid": qid, "sample_weight": weight}
    if listed:
        rows = np.column_stack([pairs.preferred, pairs.other])
        fit_parameters["pairs"] = rows if len(rows) else None
    return SmallProblem(X, y, qid, parameters, fit_parameters, pairs)


def rescaled_problem(seed):
    """Draw a problem with margins of two labels, of close pairs, or of listed ones."""
    problem = small_problem(seed)
    rng = np.random.default_rng([seed, 2])
    y, qid = np.round(problem.y), problem.qid
    kind, d = rng.choice(["all", "within", "label-within", "listed"]), int(rng.integers(1, 3))
    labels = np.unique(y)
    table = np.abs(rng.normal(size=(labels.size, labels.size)))
    if rng.random() < 0.5:
        table = np.round(table)  # equal margins, some of them zero
    close = {
        "within": within(y, qid, d),
        "label-within": lambda i, j: y[i] - y[j] <= d,
    }.get(kind)
    parameters = problem.parameters | {
        "pair_selection": f"{kind}:{d}" if close else "all",
        "pair_cost": None if kind == "listed" else problem.parameters["pair_cost"],
        "margin": "unit" if kind == "listed" else table,
    }
    pairs = _weighted_pairs(
        y,
        qid,
        problem.fit_parameters["sample_weight"],
        parameters,
        margin=lambda a, b: table[np.searchsorted(labels, a), np.searchsorted(labels, b)],
        close=close,
    )
    fit_parameters = problem.fit_parameters | {"pairs": None}
    if kind == "listed" and pairs.weight.size:
        rows = np.column_stack([pairs.preferred, pairs.other])
        fit_parameters |= {"pairs": rows, "pair_margin": pairs.shift}
    return SmallProblem(problem.X, y, qid, parameters, fit_parameters, pairs)


def _draw_data(rng):
    shape = rng.choice(SHAPES)
    n_queries, per_query = int(rng.integers(1, 4)), int(rng.integers(2, 9))
    n = int(rng.integers(10, 30)) if shape == "wide" else int(rng.integers(1, 6))
    if shape == "tiny":
        n_queries, per_query, n = 1, int(rng.integers(2, 4)), int(rng.integers(1, 3))
    size = n_queries * per_query
    X = rng.normal(size=(size, n))
    if shape == "tied":
        X = rng.integers(-1, 2, size=(size, n)).astype(float)
    y = rng.integers(0, int(rng.integers(2, 5)), size).astype(float)
    if shape == "separable":
        y = np.round(2 * X[:, 0])
    if rng.random() < 0.2:
        y = rng.normal(size=size).round(3)
    if rng.random() < 0.5:
        X *= 10.0 ** rng.uniform(-6, 6)
    if shape == "scaled":
        X *= 10.0 ** rng.uniform(-6, 6, size=n)
    if rng.random() < 0.2:
        X += 10.0 ** rng.uniform(0, 4) * rng.normal(size=n)
    return X, y, np.repeat(np.arange(n_queries), per_query)


def _weighted_pairs(y, qid, sample_weight, parameters, *, margin=None, close=None):
    """List the pairs with cost and normalisation in their weights."""
    pairs = explicit_pairs(y, qid, sample_weight=sample_weight, margin=margin, close=close)
    factors = pair_cost(parameters["pair_cost"], y, qid)
    weight = pairs.weight.astype(LONG)
    if factors is not None:
        products = factors.preferred.astype(LONG)[pairs.preferred] * factors.other[pairs.other]
        weight *= np.maximum(products.sum(axis=1), 0)
    if parameters["normalization"] == "pairs" and weight.sum() > 0:
        weight /= weight.sum()
    elif parameters["normalization"] == "query":
        query = qid[pairs.preferred]
        totals = {q: weight[query == q].sum() for q in np.unique(query)}
        n_counting = sum(total > 0 for total in totals.values())
        for q, total in totals.items():
            if total > 0:
                weight[query == q] /= total * n_counting
    pairs.weight = weight
    return pairs
