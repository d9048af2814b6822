"""Paper 1, figure 4 and table 10: levels and trees, all pairs and pairs of adjacent levels."""

import time
from itertools import pairwise

import numpy as np
from paper_sections.direct_counting import DirectCounting
from paper_sections.pointwise import EXPONENTS
from paper_sections.report import Figures, percent, power, show, times
from paper_sections.study import Split, Study, explicit_pairs, fit, part, seconds

from marginrank import RankingData, RankSVM

FEW = 5  # levels, as in MSLR and YAHOO LTRC; the unit of the times
DIRECT = 7  # levels up to which the kernels count directly


def counting(study: Study) -> Figures:
    """Figure 4: the time of a sweep by the number of levels, on the same documents."""
    data = study.cadata()
    if study.quick:
        data = part(data, slice(4000))
    few_documents = part(data, slice(1000 if study.quick else 4000))
    levels = (2, FEW, DIRECT, DIRECT + 1, 64, 512, None)
    counted = {k: _seconds_a_sweep(_with_levels(data, k), study) for k in levels}
    direct = {k: _seconds_of_direct_counting(_with_levels(data, k), study) for k in levels}
    unit = _seconds_a_sweep(_with_levels(few_documents, FEW), study)
    listed = {
        k: _seconds_a_sweep(_with_levels(few_documents, k), study, listed=True) / unit
        for k in (2, FEW, None)
    }
    figures: Figures = {}
    for k in levels:
        n_levels = len(np.unique(_with_levels(data, k).y))
        figures[str(n_levels)] = {
            "time": counted[k] / counted[FEW],
            "direct": direct[k] / direct[FEW],
            "listed": listed.get(k),
        }
    rows = [
        [
            f"{int(k):,} levels",
            "direct counting" if int(k) <= DIRECT else "Fenwick tree",
            times(of["time"]),
            times(of["direct"]),
            times(of["listed"]),
        ]
        for k, of in figures.items()
    ]
    title = f"Paper 1, figure 4: a sweep of tron on cadata, {data.n_documents:,} documents"
    header = ["", "counts by", f"time / {FEW} levels'", "direct counting", "explicit pairs"]
    notes = (
        "Labels are cut into levels of equal size. The kernels choose by the number of levels. "
        "Times are processor times on one thread. "
        "Direct counting (paper 2's PRSVM+, O(l k)) is measured with a reference in NumPy: its own "
        f"time of a product over that for {FEW} levels. The paper finds it slow for 1,268 levels "
        "and more, and all kinds of trees alike.",
        f"Explicit pairs (paper 2's PRSVM) on {few_documents.n_documents:,} documents, over the "
        f"time of {FEW} levels there.",
    )
    show(title, header, rows, notes)
    return figures


def _with_levels(data: RankingData, n_levels: int | None) -> RankingData:
    """Cut the labels into levels of equal size; None leaves them as they are."""
    if n_levels is None:
        return data
    inner = np.quantile(data.y, np.arange(1, n_levels) / n_levels)
    y = np.searchsorted(inner, data.y, side="right").astype(float)
    return RankingData(data.X, y, group=[data.n_documents])


def _seconds_a_sweep(data: RankingData, study: Study, listed: bool = False) -> float:
    """Return the processor time of a sweep with sorting, counting and the steps, on one thread."""
    keywords = {"pairs": explicit_pairs(data)} if listed else {}
    model = RankSVM(C=100, normalization="pairs", solver="tron", tol=1e-12, max_iter=30, n_jobs=1)
    spent = []
    for _ in range(study.repeats):
        start = time.process_time()
        sweeps = fit(model, data, **keywords).history_[-1].sweeps
        spent.append((time.process_time() - start) / sweeps)
    return min(spent)


def _seconds_of_direct_counting(data: RankingData, study: Study) -> float:
    """Return the processor time of a product with the Hessian by the reference, one thread."""
    rng = np.random.default_rng(0)
    reference = DirectCounting(data.y, rng.normal(size=data.n_documents))
    u = rng.normal(size=data.n_documents)
    spent = []
    for _ in range(study.repeats):
        start = time.process_time()
        reference.hess_vec(u)
        spent.append(time.process_time() - start)
    return min(spent)


# Of MQ2008-list: C, pairwise accuracy, and training time over that of all pairs; table 10.
PAPER_ADJACENT = {"all": (2.0**-14, 0.8211, 1.0), "adjacent": (2.0**-10, 0.8181, 10.5 / 16.6)}


def adjacent(study: Study) -> Figures:
    """Table 10: pairs of adjacent levels against all pairs."""
    data = study.cadata()
    last = data.n_documents if not study.quick else min(data.n_documents, 3000)
    cuts = [0, int(0.6 * last), int(0.8 * last), last]
    split = Split(*(part(data, slice(*ends)) for ends in pairwise(cuts)))
    figures: Figures = {}
    for choice in PAPER_ADJACENT:
        models = [
            RankSVM(C=2.0**k, pair_selection=choice)
            for k in (EXPONENTS[::5] if study.quick else EXPONENTS)
        ]
        valid = [fit(model, split.train).score(split.valid) for model in models]
        best = models[int(np.argmax(valid))]
        figures[choice] = {
            "pairs": best.n_pairs_,
            "C": best.C,
            "valid": max(valid),
            "test": best.score(split.test),
            "seconds": seconds(lambda best=best: fit(best, split.train), study.repeats),
        }
    _show_adjacent(figures)
    return figures


def _show_adjacent(figures: Figures) -> None:
    rows = []
    for choice, of in figures.items():
        C, accuracy, ratio = PAPER_ADJACENT[choice]
        spent = of["seconds"] / figures["all"]["seconds"]
        ours = (power(of["C"]), percent(of["test"]), times(spent))
        theirs = (power(C), percent(accuracy), times(ratio))
        rows.append([f"{choice} pairs", f"{of['pairs']:,}", *ours, *theirs])
    header = "|pairs|C|test accuracy|time|paper's C|paper's accuracy|paper's time"
    notes = (
        "The paper has MQ2008-list, which is not among the data: only the relation of the rows can "
        "be compared. cadata is cut 60 : 20 : 20 at random; labels that are equal make no pairs.",
        "The paper passes its adjacent pairs to LIBLINEAR's SVM as differences of documents.",
    )
    title = "Paper 1, table 10: all pairs and pairs of adjacent levels, cadata"
    show(title, header.split("|"), rows, notes)
