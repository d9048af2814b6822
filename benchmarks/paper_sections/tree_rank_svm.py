"""Paper 4, figure 1: the cost of a BMRM iteration by the number of documents."""

from typing import Any

from paper_sections.report import Figures, exponent, show, times
from paper_sections.study import Study, explicit_pairs, fit, part

from marginrank import RankingData, RankSVM, make_ranking

MOST_LISTED = 8000  # documents; 32 million pairs
ITERATIONS = 20


def growth(study: Study) -> Figures:
    """Figure 1, and the half million documents of its last experiment."""
    data = study.cadata()
    sizes = [1000, 2000] if study.quick else [1000, 2000, 4000, 8000, 16000, data.n_documents]
    figures: Figures = {}
    for size in sizes:
        train = part(data, slice(size))
        listed = {"pairs": explicit_pairs(train)} if size <= MOST_LISTED else None
        figures[f"{size:,}"] = {
            "pairs": train.n_pairs,
            "tree": _iteration(train, study, {}),
            "listed": None if listed is None else _iteration(train, study, listed),
        }
    unit = figures["1,000"]["tree"]
    rows = []
    for size, of in figures.items():
        spent = [seconds and times(seconds / unit) for seconds in (of["tree"], of["listed"])]
        rows.append([f"{size} documents", f"{of['pairs']:,}", *spent])
    exponents = [
        exponent(sizes, [of[way] for of in figures.values()]) for way in ("tree", "listed")
    ]
    many = 20_000 if study.quick else 500_000
    X, y, _ = make_ranking(1, many, 54, n_levels=7, random_state=0)
    generated = RankingData(X, y, group=[many])
    figures["many"] = {"documents": many, "seconds": _iteration(generated, study, {})}
    notes = (
        "The unit is an iteration on 1,000 documents, sorted scores. The paper plots seconds: its "
        "red-black trees grow about linearly, its explicit pairs with the square.",
        "Times grow with the documents to the power of {:.2f} and {:.2f}.".format(*exponents),
        f"{many:,} documents of 54 features and 7 ordered labels, generated in place of covtype: "
        f"{figures['many']['seconds']:.3f} s an iteration (paper: below 6 s on half a million).",
        "The small quadratic program is solved by an active-set method here and by CVXOPT in "
        "the paper; features are scaled to [0, 1], which the paper does not say.",
    )
    title = "Paper 4, figure 1: average BMRM iteration on cadata"
    show(title, ["", "pairs", "sorted scores", "explicit pairs"], rows, notes)
    return figures


def _iteration(data: RankingData, study: Study, keywords: dict[str, Any]) -> float:
    """Return the average time of an iteration, as the paper has it; the least of some fits."""
    model = RankSVM(
        loss="hinge", solver="bmrm", normalization="pairs", tol=1e-14, max_iter=ITERATIONS
    )
    lines = [fit(model, data, **keywords).history_[-1] for _ in range(study.repeats)]
    return min(line.seconds / line.iteration for line in lines)
