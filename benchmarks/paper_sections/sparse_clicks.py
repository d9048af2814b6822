"""Paper 1, section 4.6 (tables 8 and 9): linear and nonlinear models on sparse data.

The paper's CTR and KDD2012b are not among the data. A generated set stands in for CTR (0.1 %): one
query, binary indicators of a few categorical fields with a heavy tail, and a click-through rate as
the label. What a model can learn differs, so only the relation of the rows can be compared.
"""

import numpy as np
import scipy.sparse as sp
from paper_sections.pointwise import forest
from paper_sections.report import Figures, percent, show, times
from paper_sections.study import Study, fit, seconds

from marginrank import RankingData, RankSVM, metrics

DOCUMENTS, FEATURES, FIELDS = 11_382, 73_581, 23  # CTR (0.1 %): 22.6 entries per document
PAPER = {"RankSVM, C = 1": (0.6083, 1.0), "random forest, 40 trees": (0.6045, 6343.3 / 4.3)}


def clicks(n_documents: int, n_features: int, seed: int = 0) -> RankingData:
    """Return advertisements with one category per field; the label is clicks over views."""
    rng = np.random.default_rng(seed)
    width = n_features // FIELDS
    share = rng.random((n_documents, FIELDS)) ** 3  # few categories are frequent
    columns = (share * width).astype(np.int32) + width * np.arange(FIELDS, dtype=np.int32)
    starts = np.arange(0, columns.size + 1, FIELDS, dtype=np.int32)
    entries = np.ones(columns.size, dtype=np.float32)
    X = sp.csr_array((entries, columns.ravel(), starts), shape=(n_documents, n_features))
    effects = rng.normal(size=n_features) / np.sqrt(FIELDS)
    views = 1 + rng.geometric(0.02, size=n_documents)
    rate = 1.0 / (1.0 + np.exp(3.0 - X @ effects))
    return RankingData(X, rng.binomial(views, rate) / views, group=[n_documents])


def sparse(study: Study) -> Figures:
    """Table 9: linear RankSVM against a random forest on sparse data."""
    n_documents, n_features = (1000, 5000) if study.quick else (DOCUMENTS, FEATURES)
    data = clicks(2 * n_documents, n_features)
    halves = (slice(n_documents), slice(n_documents, None))
    train, test = (RankingData(data.X[h], data.y[h], group=[n_documents]) for h in halves)
    models = {
        "RankSVM, C = 1": RankSVM(C=1.0, solver="tron", tol=1e-3),
        "random forest, 40 trees": forest(40)(0),
    }
    figures: Figures = {}
    for name, model in models.items():
        spent = seconds(lambda model=model: fit(model, train), 1)
        accuracy = metrics.pairwise_accuracy(test.y, model.predict(test.X), qid=test.qid)
        figures[name] = {"accuracy": accuracy, "seconds": spent}
    unit = figures["RankSVM, C = 1"]["seconds"]
    rows = []
    for name, of in figures.items():
        accuracy, ratio = PAPER[name]
        spent = times(of["seconds"] / unit)
        rows.append([name, percent(of["accuracy"]), percent(accuracy), spent, times(ratio)])
    title = (
        f"Paper 1, table 9: {train.n_documents:,} documents, {train.n_features:,} features, "
        f"{train.X.nnz / train.n_documents:.1f} entries each, {len(np.unique(train.y)):,} levels"
    )
    note = "Generated data of CTR's size instead of CTR; the forest is scikit-learn's."
    show(title, ["", "accuracy", "paper", "time", "paper"], rows, (note,))
    return figures
