"""Training and test parts of real and generated ranking problems, small enough to fit often."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from ndcg import data_sets
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from marginrank import RankingData, make_ranking

MOST_DOCUMENTS = 1500  # to learn from
MOST_TESTED = 4000
CANDIDATES = 50  # of a query of Cranfield
GRADES = np.array([0.5, 0.75, 0.88, 0.95])  # shares of documents below each grade


class Case(NamedTuple):
    """A problem: its name, the data to learn from and the data to evaluate on."""

    name: str
    train: RankingData
    test: RankingData


def some_queries(data: RankingData, queries: Any, most: int) -> RankingData:
    """Return the documents of the first of some queries, about `most` of them."""
    sizes = np.bincount(data.qid, minlength=data.n_queries)[queries]
    n = max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right")))
    chosen = np.isin(data.qid, queries[:n])
    return RankingData(data.X[chosen], data.y[chosen], data.qid[chosen])


def divided(name: str, data: RankingData, n_splits: int) -> Iterator[Case]:
    """Yield random halves of the queries."""
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(data.n_queries)
        train, test = np.array_split(order, 2)
        yield Case(
            name,
            some_queries(data, train, MOST_DOCUMENTS),
            some_queries(data, test, MOST_TESTED),
        )


def texts(path: Path) -> list[dict[str, str]]:
    """Return the fields of the records of a SMART file: T is the title, W the text."""
    with gzip.open(path, "rt") as file:
        records = re.split(r"^\.I .*\n", file.read(), flags=re.MULTILINE)[1:]
    found = []
    for record in records:
        fields = re.split(r"^\.([TABW])\n", record, flags=re.MULTILINE)[1:]
        found.append(dict(zip(fields[::2], fields[1::2], strict=True)))
    return found


def cranfield(folder: Path) -> RankingData:
    """Return Cranfield: candidates of each query by cosine, with features of title and text."""
    documents, queries = texts(folder / "cran.all.1400.gz"), texts(folder / "cran.qry.gz")
    asked = [query["W"] for query in queries]
    columns: list[Any] = []
    for field in ("T", "W"):
        listed = [document.get(field, "") for document in documents]
        for vectorizer in (
            TfidfVectorizer(stop_words="english", sublinear_tf=True),
            TfidfVectorizer(stop_words="english", norm=None),
            CountVectorizer(stop_words="english", binary=True),
        ):
            seen = vectorizer.fit_transform(listed)
            columns.append((vectorizer.transform(asked) @ seen.T).toarray())
        columns.append(np.tile([np.log1p(len(text)) for text in listed], (len(asked), 1)))
    grades = np.zeros((len(asked), len(documents)))
    with gzip.open(folder / "qrels.txt.gz", "rt") as file:
        for line in file:
            query, _, document, grade = line.split()
            grades[int(query) - 1, int(document) - 1] = max(int(grade), 0)
    best = np.argsort(-columns[4], axis=1)[:, :CANDIDATES]  # by the cosine of the text
    X = np.stack([np.take_along_axis(values, best, 1).ravel() for values in columns], axis=1)
    y = np.take_along_axis(grades, best, 1).ravel()
    return RankingData(X, y, np.repeat(np.arange(len(asked)), CANDIDATES))


def real_cases(folder: Path, n_splits: int) -> Iterator[Case]:
    """Yield divisions of the real data sets."""
    readers: dict[str, Callable[[], RankingData]] = dict(data_sets(folder))
    readers["cranfield"] = lambda: cranfield(folder / "cranfield")
    for name, read in readers.items():
        data = read()
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        yield from divided(name, RankingData(X, data.y, data.qid), n_splits)


def graded(utility: Any) -> Any:
    """Return grades 0 to 4 of utilities."""
    return np.searchsorted(np.quantile(utility, GRADES), utility).astype(float)


def waves(X: Any, rng: Any) -> Any:
    """Return a sum of curves of the first features."""
    z = X / X.std(axis=0)
    signal = np.sin(2 * z[:, 0]) + abs(z[:, 1]) - z[:, 2] ** 2 / 2 + z[:, 3]
    return signal + 0.5 * rng.normal(size=len(z))


def steps(X: Any, rng: Any) -> Any:
    """Return a sum of steps of the first features."""
    z = X / X.std(axis=0)
    signal = sum((z[:, k] > 0.3 * k - 0.6) * 1.0 for k in range(5))
    return signal + 0.5 * rng.normal(size=len(z))


def products(X: Any, rng: Any) -> Any:
    """Return a linear function and a product of two features."""
    z = X / X.std(axis=0)
    return z[:, :3].sum(axis=1) + z[:, 0] * z[:, 3] + rng.normal(size=len(z))


# Queries to learn from, documents of each, features; options of make_ranking; a utility of its own.
GENERATED: dict[str, tuple[tuple[int, int, int], dict[str, Any], Any]] = {
    "plain": ((60, 20, 20), {}, None),
    "more queries": ((120, 12, 20), {}, None),
    "small": ((15, 10, 10), {}, None),
    "tiny": ((8, 8, 10), {}, None),
    "one query": ((1, 300, 20), {}, None),
    "few queries": ((4, 100, 20), {}, None),
    "short queries": ((250, 4, 10), {}, None),
    "exact": ((60, 20, 20), {"noise": 0.0}, None),
    "noisy": ((60, 20, 20), {"noise": 2.0}, None),
    "very noisy": ((60, 20, 20), {"noise": 5.0}, None),
    "heavy tails": ((60, 20, 20), {"heavy_tail": 0.5}, None),
    "heavier tails": ((60, 20, 20), {"heavy_tail": 1.5}, None),
    "correlated": ((60, 20, 30), {"correlation": 0.9}, None),
    "wide": ((40, 15, 200), {}, None),
    "wide, few matter": ((40, 15, 200), {"informative": 8}, None),
    "binary labels": ((60, 20, 20), {"n_levels": 2, "noise": 1.0}, None),
    "real labels": ((60, 20, 20), {"n_levels": None, "noise": 1.0}, None),
    "waves": ((60, 20, 15), {}, waves),
    "steps": ((60, 20, 15), {}, steps),
    "products": ((60, 20, 15), {}, products),
}


def generated_cases(n_splits: int) -> Iterator[Case]:
    """Yield generated problems, with many queries to evaluate on."""
    for number, (name, (sizes, options, utility)) in enumerate(GENERATED.items()):
        n_queries, n_documents, n_features = sizes
        n_tested = max(30, 3000 // n_documents)
        for seed in range(n_splits):
            rng = np.random.default_rng([number, seed])
            X, y, qid = make_ranking(
                n_queries + n_tested, n_documents, n_features, random_state=rng, **options
            )
            if utility is not None:
                y = graded(utility(X, rng))
            elif options.get("n_levels", 5) is None:
                y = 4.0 / (1.0 + np.exp(-y))
            learned = qid < n_queries
            yield Case(
                name,
                *(RankingData(X[part], y[part], qid[part]) for part in (learned, ~learned)),
            )
