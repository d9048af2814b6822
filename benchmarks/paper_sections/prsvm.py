"""Paper 2: losses on OHSUMED (figure 1, tables 3 and 4) and AUC (figure 3)."""

from typing import Any

import numpy as np
from paper_sections.report import Figures, digits, exponent, show, times
from paper_sections.study import Split, Study, explicit_pairs, fit, part, seconds

from marginrank import RankingData, RankSVM, metrics

FIXED_C = 1e-4  # the best of figure 1
LETOR_C = (0.01, 0.001, 0.0001, 0.6, 0.1)  # by fold, of the LETOR site; table 2
GRID = tuple(10.0**k for k in range(-6, 2))
PAIRS = "squared hinge, explicit pairs"
LOSSES = {
    "squared hinge": "squared_hinge",
    PAIRS: "squared_hinge",
    "hinge": "hinge",
    "Huber": "huber",
    "logistic": "logistic",
}
# NDCG@10 with C fixed and by LETOR, and the time of table 3 over that of PRSVM+.
PAPER = {
    "squared hinge": (0.454, 0.452, 1.0),  # PRSVM+
    PAIRS: (0.454, 0.452, 9.6 / 1.5),  # PRSVM
    "hinge": (0.454, 0.442, 81097 / 1.5),  # SVMLight
}


def ndcg(model: Any, data: RankingData) -> float:
    """Return NDCG@10 as the LETOR site has it."""
    scores = model.predict(data.X)
    return float(metrics.ndcg(data.y, scores, qid=data.qid, k=10, discount="letor"))


def losses(study: Study) -> Figures:
    """Figure 1 and tables 3 and 4: NDCG@10 of losses and of ways to choose C."""
    folds = study.folds("OHSUMED")
    by_C = _influence_of_C(folds, study)
    by_loss = {name: _one_loss(name, folds, study) for name in LOSSES}
    unit = by_loss["squared hinge"]["seconds"]
    rows = []
    for name, of in by_loss.items():
        fixed, letor, ratio = PAPER.get(name, (None, None, None))
        ours = [f"{of[key]:.4f}" for key in ("fixed", "LETOR", "validated")]
        rows.append([name, ours[0], fixed, ours[1], letor, ours[2]])
        rows[-1] += [times(of["seconds"] / unit), times(ratio)]
    header = "|C = 1e-4|paper|LETOR's C|paper|C by validation|time|paper's time"
    notes = (
        "The paper's rows are PRSVM+, PRSVM and SVMLight; it has no figures for Huber and "
        "logistic. Its SVMLight with a limit of 5,000 "
        "iterations, the LETOR site's, has 0.384 and 0.414.",
        "C by validation, NDCG@10 again, is not in the paper, which fixes C or takes LETOR's.",
        "The time of explicit pairs is that of the fit, without listing them.",
        "TD2004, the other half of both tables, is not among the data.",
    )
    title = f"Paper 2, tables 3 and 4: OHSUMED, mean test NDCG@10 {_over(folds)}"
    show(title, header.split("|"), rows, notes)
    levels, pairs = (by_loss[name]["objectives"] for name in ("squared hinge", PAIRS))
    difference = float(np.max(np.abs(np.divide(pairs, levels) - 1)))
    print(f"- Objectives of levels and of explicit pairs differ by {difference:.0e} at most.")
    return {"C": by_C, "losses": by_loss, "pairs against levels": difference}


def _influence_of_C(folds: list[Split], study: Study) -> Figures:
    figures: Figures = {}
    for C in GRID[::3] if study.quick else GRID:
        models = [fit(RankSVM(C=C), split.train) for split in folds]
        values = [ndcg(model, split.test) for model, split in zip(models, folds, strict=True)]
        sweeps = float(np.mean([model.history_[-1].sweeps for model in models]))
        figures[f"{C:g}"] = {"ndcg": float(np.mean(values)), "sweeps": sweeps}
    rows = [[f"C = {C}", f"{of['ndcg']:.4f}", of["sweeps"]] for C, of in figures.items()]
    notes = (
        "The paper's curve is highest at 1e-4, and its training time rises with C.",
        "Newton's system is solved directly here, so that the sweeps grow slowly with C.",
    )
    title = f"Paper 2, figure 1: OHSUMED, squared hinge, mean {_over(folds)}"
    show(title, ["", "test NDCG@10", "sweeps"], rows, notes)
    return figures


def _one_loss(name: str, folds: list[Split], study: Study) -> Figures:
    """Return NDCG@10 by the three ways to choose C, and what the fits with the fixed one took."""
    values, objectives, spent = [], [], 0.0
    for split, letor_C in zip(folds, LETOR_C, strict=False):
        keywords = {"pairs": explicit_pairs(split.train)} if name == PAIRS else {}

        def fitted(C: float, data: RankingData = split.train, pairs: Any = keywords) -> RankSVM:
            return fit(RankSVM(C=C, loss=LOSSES[name]), data, **pairs)

        fixed = [fitted(FIXED_C) for _ in range(study.repeats)]
        grid = [fitted(C) for C in (GRID[::3] if study.quick else GRID)]
        valid = [ndcg(model, split.valid) for model in grid]
        chosen = grid[int(np.argmax(valid))]
        values.append([ndcg(m, split.test) for m in (fixed[0], fitted(letor_C), chosen)])
        objectives.append(fixed[0].objective_)
        spent += min(model.history_[-1].seconds for model in fixed)
    means = dict(
        zip(("fixed", "LETOR", "validated"), np.mean(values, axis=0).tolist(), strict=True)
    )
    return {**means, "objectives": objectives, "seconds": spent}


def _over(folds: list[Split]) -> str:
    return "over five folds" if len(folds) == 5 else "on fold 1"


def auc(study: Study) -> Figures:
    """Figure 3: training time by the number of documents, sorted scores against explicit pairs."""
    data = study.cadata()
    y = (data.y > np.median(data.y)).astype(float)
    dear = RankingData(data.X, y, group=[data.n_documents])
    sizes = [300, 600] if study.quick else [1200, 2400, 4800, 9600, 19200]
    test = part(dear, slice(sizes[-1], None))
    figures: Figures = {}
    for size in sizes:
        train = part(dear, slice(size))
        figures[f"{size:,}"] = _one_size(train, test, study, listed=size < 19200)
    unit = figures[f"{sizes[0]:,}"]["levels"]
    rows = []
    for size, of in figures.items():
        spent = [value and times(value / unit) for value in (of["levels"], of["listed"])]
        areas = [digits(of[key]) for key in ("auc", "hinge")]
        rows.append([f"{size} documents", f"{of['pairs']:,}", *spent, *areas])
    exponents = [
        exponent(sizes, [of[way] for of in figures.values()]) for way in ("levels", "listed")
    ]
    header = "|pairs|time, sorted scores|time, explicit pairs|test AUC|hinge's"
    notes = (
        "The paper separates CCAT of RCV1, 47,236 sparse features, with C = 0.005. That is not "
        "among the data: here cadata above its median price, the same sizes and C. Times are "
        f"the pairs of {sizes[0]:,} documents, sorted scores; the fit without listing the pairs.",
        "The paper's PRSVM had no memory for 19,200 documents; that fit is left out here, too.",
        "hinge: the loss of SVMPerf, the paper's third curve.",
        "Times grow with the documents to the power of {:.2f} and {:.2f}.".format(*exponents),
    )
    show("Paper 2, figure 3: AUC, training time and test AUC", header.split("|"), rows, notes)
    return figures


def _one_size(train: RankingData, test: RankingData, study: Study, listed: bool) -> Figures:
    model = RankSVM(C=0.005)
    figures: Figures = {
        "levels": seconds(lambda: fit(model, train), study.repeats),
        "pairs": model.n_pairs_,
        "auc": metrics.auc(test.y, model.predict(test.X), qid=test.qid),
        "listed": None,
    }
    if listed:
        pairs = explicit_pairs(train)
        explicit = fit(RankSVM(C=0.005), train, pairs=pairs)
        figures["listed"] = explicit.history_[-1].seconds
        figures["difference"] = explicit.objective_ / model.objective_ - 1
    hinge = fit(RankSVM(C=0.005, loss="hinge"), train)
    figures["hinge"] = metrics.auc(test.y, hinge.predict(test.X), qid=test.qid)
    return figures
