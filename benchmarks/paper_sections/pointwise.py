"""Paper 1, tables 3 to 7: C by validation, regression and trees; paper 5, table 3."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from paper_sections.report import Figures, digits, percent, power, show, times
from paper_sections.stopping import fit_to_rule, slope_at_zero
from paper_sections.study import Split, Study, fit, seconds
from sklearn.ensemble import RandomForestRegressor
from sklearn.svm import LinearSVR

from marginrank import RankingData, RankSVM, metrics
from marginrank.models import foreign_scores

METRICS = {"pairwise accuracy": metrics.pairwise_accuracy, "mean NDCG": metrics.letor_mean_ndcg}
FORMATS = {"pairwise accuracy": percent, "mean NDCG": digits}
EXPONENTS = range(-15, 11)
RULE = "RankSVM, L2 loss, rule (38)"
# Of MQ2008 fold 1, by accuracy and by NDCG: C (tables 3 and 4) and what it has in the test (5).
PAPER_C = {
    "RankSVM, L1 loss": (2.0**8, 2.0**-6),
    "RankSVM, L2 loss": (2.0**7, 2.0**7),
    RULE: (2.0**7, 2.0**7),
    "SVR, L1 loss": (2.0**8, 2.0**8),
    "SVR, L2 loss": (2.0**-1, 2.0**-4),
}
PAPER_TEST = {
    "RankSVM, L1 loss": (None, None),
    "RankSVM, L2 loss": (0.8270, 0.4571),
    RULE: (0.8270, 0.4571),
    "SVR, L1 loss": (0.7772, 0.4153),
    "SVR, L2 loss": (0.8217, 0.4450),
    "random forest, 40 trees": (0.8036, 0.4541),  # table 6
    "boosted trees, 100": (0.8283, 0.4706),
    "random forest, 1000 trees": (0.8260, 0.4675),  # table 7
    "boosted trees, 1000": (0.7978, 0.4491),
}
# Training times over that of L2-loss RankSVM, 0.5 s with either C.
PAPER_TIMES = {
    "SVR, L1 loss": 3.4 / 0.5,
    "SVR, L2 loss": 0.3 / 0.5,
    "random forest, 40 trees": 2.3 / 0.5,
    "boosted trees, 100": 0.4 / 0.5,
    "random forest, 1000 trees": 52.0 / 0.5,
    "boosted trees, 1000": 3.6 / 0.5,
}
PAPER_5 = 0.8024
NOTES = (
    "Of several C that are equally good on the validation part the smallest is taken.",
    "Rule (38) ends tron where LIBLINEAR's default tolerance ends the paper's: that is what the "
    "paper's figures are of. The other RankSVMs are at their optima, to 1e-6.",
    "The paper's L1-loss SVR ended at a limit of 1,000 iterations; so does this one for large C.",
)

Learner = Callable[[float, RankingData], Any]


def rank_svm(C: float, data: RankingData, loss: str) -> RankSVM:
    """Return RankSVM at its optimum."""
    return fit(RankSVM(C=C, loss=loss), data)


def svr(C: float, data: RankingData, loss: str, tol: float) -> LinearSVR:
    """Return LIBLINEAR's linear regression with ε = 0 and no bias, with its own tolerance."""
    primal = loss == "squared_epsilon_insensitive"
    model = LinearSVR(
        C=C, epsilon=0, loss=loss, dual=not primal, tol=tol, fit_intercept=False, random_state=0
    )
    return fit(model, data)


def learners(data: RankingData) -> dict[str, Learner]:
    """Return all models with a C; what depends on the training data alone is computed here."""
    return {
        "RankSVM, L1 loss": partial(rank_svm, loss="hinge"),
        "RankSVM, L2 loss": partial(rank_svm, loss="squared_hinge"),
        RULE: partial(fit_to_rule, slope=slope_at_zero(data)),
        "SVR, L1 loss": partial(svr, loss="epsilon_insensitive", tol=0.1),
        "SVR, L2 loss": partial(svr, loss="squared_epsilon_insensitive", tol=1e-3),
    }


@dataclass(frozen=True)
class Curve:
    """Figures of one metric at each C, ascending."""

    grid: Sequence[float]
    valid: Sequence[float]
    test: Sequence[float]

    @property
    def best(self) -> int:
        """The smallest C with the best figure on the validation part."""
        return int(np.argmax(self.valid))


def judge(model: Any, data: RankingData) -> dict[str, float]:
    """Return the metrics of a model on documents it has not seen."""
    scores = foreign_scores(model, data.X)
    return {name: float(metric(data.y, scores, qid=data.qid)) for name, metric in METRICS.items()}


def curves(learner: Learner, split: Split, grid: Sequence[float]) -> dict[str, Curve]:
    """Return the scores of a learner over the grid."""
    models = [learner(C, split.train) for C in grid]
    valid = [judge(model, split.valid) for model in models]
    test = [judge(model, split.test) for model in models]
    return {
        name: Curve(grid, [v[name] for v in valid], [t[name] for t in test]) for name in METRICS
    }


def grid_of(name: str, quick: bool) -> list[float]:
    """Return the paper's grid; a part of it is enough to see that the script works."""
    exponents = EXPONENTS[::5] if quick else EXPONENTS
    return sorted({2.0**k for k in exponents} | set(PAPER_C[name]))


def selection(study: Study) -> Figures:
    """Tables 3, 4 and 5, and the same models over five folds and on OHSUMED."""
    figures: Figures = {}
    for dataset in ("MQ2008", "OHSUMED"):
        by_fold = []
        for split in study.folds(dataset):
            by_fold.append(
                {
                    name: curves(learner, split, grid_of(name, study.quick))
                    for name, learner in learners(split.train).items()
                }
            )
        if dataset == "MQ2008":
            _show_first_fold(by_fold[0])
        figures[dataset] = _show_means(dataset, by_fold)
        figures[dataset]["fold 1"] = {
            name: {metric: vars(curve) for metric, curve in of.items()}
            for name, of in by_fold[0].items()
        }
    return figures


def _show_first_fold(by_name: dict[str, dict[str, Curve]]) -> None:
    rows = []
    for k, metric in enumerate(METRICS):
        form = FORMATS[metric]
        for name, of in by_name.items():
            curve, theirs = of[metric], PAPER_C[name][k]
            at = curve.grid.index(theirs)
            figures = (curve.valid[curve.best], curve.valid[at], curve.test[curve.best])
            rows.append(
                [f"{metric}: {name}", power(curve.grid[curve.best]), power(theirs)]
                + [form(value) for value in (*figures, curve.test[at], PAPER_TEST[name][k])]
            )
    header = "|C|paper's C|valid|valid at paper's C|test|test at paper's C|paper's test"
    title = "Paper 1, tables 3, 4 and 5: C by the validation part of MQ2008 fold 1"
    show(title, header.split("|"), rows, NOTES)


def _show_means(dataset: str, by_fold: list[dict[str, dict[str, Curve]]]) -> Figures:
    means: Figures = {}
    for name in PAPER_C:
        means[name] = {
            metric: float(np.mean([of[name][metric].test[of[name][metric].best] for of in by_fold]))
            for metric in METRICS
        }
    rows = [
        [name, *(FORMATS[metric](value) for metric, value in of.items())]
        for name, of in means.items()
    ]
    title = f"{dataset}, mean test figures, folds: {len(by_fold)}, C by validation in each"
    show(title, ["", *METRICS], rows, ("The paper has the first fold of MQ2008 only.",))
    return {"mean test": means}


def boosting(n_trees: int) -> Callable[[int], Any] | None:
    """Return LightGBM's regression with the paper's depth and rate, if it is installed."""
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return None
    return lambda seed: LGBMRegressor(
        n_estimators=n_trees,
        learning_rate=0.1,
        max_depth=4,
        num_leaves=16,
        random_state=seed,
        n_jobs=-1,
        verbose=-1,
    )


def forest(n_trees: int) -> Callable[[int], Any]:
    """Return a random forest with √n features a split."""
    return lambda seed: RandomForestRegressor(
        n_trees, max_features="sqrt", random_state=seed, n_jobs=-1
    )


def trees(study: Study) -> Figures:
    """Tables 6 and 7, and the times of table 5: pointwise models beside RankSVM."""
    split = study.fold("MQ2008")
    ranker = RankSVM(C=PAPER_C["RankSVM, L2 loss"][0])
    base = seconds(lambda: fit(ranker, split.train), study.repeats)
    figures = {"RankSVM, L2 loss": {**judge(ranker, split.test), "time": 1.0}}
    for name in ("SVR, L1 loss", "SVR, L2 loss"):
        learner, C = learners(split.train)[name], PAPER_C[name][0]
        spent = seconds(lambda learner=learner, C=C: learner(C, split.train), study.repeats)
        figures[name] = {**judge(learner(C, split.train), split.test), "time": spent / base}
    for n_trees, n_rounds, seeds in ((40, 100, range(study.repeats)), (1000, 1000, range(1))):
        if study.quick and n_trees > 40:
            continue
        makers = {
            f"random forest, {n_trees} trees": forest(n_trees),
            f"boosted trees, {n_rounds}": boosting(n_rounds),
        }
        for name, make in makers.items():
            if make is None:
                print(f"\n{name}: left out, as LightGBM is not installed")
            else:
                figures[name] = _mean_of_seeds(make, split, seeds, base)
    _show_trees(figures)
    return figures


def _mean_of_seeds(make: Callable[[int], Any], split: Split, seeds: range, base: float) -> Figures:
    models = [make(seed) for seed in seeds]
    spent = min(seconds(lambda model=model: fit(model, split.train), 1) for model in models)
    judged = [judge(model, split.test) for model in models]
    means = {name: float(np.mean([of[name] for of in judged])) for name in METRICS}
    return {**means, "time": spent / base}


def _show_trees(figures: Figures) -> None:
    rows = []
    for name, of in figures.items():
        row = [name]
        for metric, theirs in zip(METRICS, PAPER_TEST[name], strict=True):
            row += [FORMATS[metric](of[metric]), FORMATS[metric](theirs)]
        rows.append([*row, times(of["time"]), times(PAPER_TIMES.get(name, 1.0))])
    header = "|accuracy|paper|mean NDCG|paper|time / RankSVM's|paper"
    title = "Paper 1, tables 5 to 7: pointwise models, test part of MQ2008 fold 1"
    notes = (
        "RankSVM and SVR are at the paper's C by accuracy; the paper's NDCG is at its C by NDCG.",
        "Forests and boosted trees have the paper's parameters, no selection; means over seeds. "
        "LightGBM and scikit-learn stand for pGBRT and Rt-Rank: other trees, other random numbers. "
        "LightGBM bins features and wants 20 documents in a leaf.",
        "Times: here on all cores, but SVR on one; in the paper trees on eight, all else on one.",
    )
    show(title, header.split("|"), rows, notes)


def accuracy(study: Study) -> Figures:
    """Paper 5, table 3: pairwise accuracy with C = 1."""
    split = study.fold("MQ2008")
    model = fit(RankSVM(C=1.0), split.train)
    figures = {
        name: judge(model, data)["pairwise accuracy"] for name, data in split._asdict().items()
    }
    row = ["MQ2008 fold 1", *map(percent, figures.values()), percent(PAPER_5)]
    note = "The paper does not name its part; its figure is that of the training documents."
    show("Paper 5, table 3: pairwise accuracy, C = 1", ["", *figures, "paper"], [row], (note,))
    return figures
