"""Paper 1, table 2, and paper 2, table 1: whether the data are the papers'."""

import numpy as np
from paper_sections.report import Figures, show
from paper_sections.study import Study

from marginrank import RankingData, load_letor

HEADER = ("documents", "features", "levels", "queries", "pairs", "levels / documents of a query")
PAPER_1 = (9630, 46, 3, 471, 52325, 0.1697)  # MQ2008 fold 1, training part
PAPER_2 = {"queries": 106, "levels": 3, "features": 45, "documents a query": 152, "relevant": 0.30}


def data_sets(study: Study) -> Figures:
    """Statistics of MQ2008 fold 1 and of OHSUMED."""
    ours = _of_paper_1(study.fold("MQ2008").train)
    rows = [("here", *ours), ("paper", *PAPER_1)]
    show("Paper 1, table 2: MQ2008 fold 1, training part", ("", *HEADER), rows)
    parts = [study.folder / "OHSUMED" / f"S{k}.txt.gz" for k in range(1, 6)]
    whole = _of_paper_2(load_letor(parts))
    rows = [("here", *whole.values()), ("paper", *PAPER_2.values())]
    show("Paper 2, table 1: OHSUMED", ("", *PAPER_2), rows)
    return {"MQ2008": dict(zip(HEADER, ours, strict=True)), "OHSUMED": whole}


def _of_paper_1(data: RankingData) -> tuple[float, ...]:
    shares = [len(np.unique(data.y[rows])) / np.count_nonzero(rows) for rows in _queries(data)]
    counts = (data.n_documents, data.n_features, len(np.unique(data.y)), data.n_queries)
    return (*counts, data.n_pairs, float(np.mean(shares)))


def _of_paper_2(data: RankingData) -> dict[str, float]:
    values = (
        data.n_queries,
        len(np.unique(data.y)),
        data.n_features,
        data.n_documents / data.n_queries,
        float(np.mean(data.y > 0)),
    )
    return dict(zip(PAPER_2, values, strict=True))


def _queries(data: RankingData) -> list[np.ndarray]:
    return [data.qid == query for query in range(data.n_queries)]
