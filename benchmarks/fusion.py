"""Learned fusion on Cranfield: held-out NDCG@10 beside RRF and a plain grid, and ranx's optimizer.

    python benchmarks/fusion.py --write cranfield           (the runs, for `marginrank fuse`)
    python benchmarks/fusion.py [--splits 20] [--json results.json]

MARGINRANK_DATA names a folder with cranfield/ (cran.all.1400.gz, cran.qry.gz, qrels.txt.gz) and
MQ2008/ (S1.txt.gz to S5.txt.gz). The signals of Cranfield are BM25 of title and body, latent
semantic analysis, and the word vectors in the wheel of WordLlama (pip install wordllama). Weights
are fitted to 25 and to 112 queries and evaluated on all others, with 2 and 4 signals. The signals
of MQ2008 are BM25 of four fields; weights and a model of all 46 features are fitted to 20 to 500
queries. Differences are paired over the splits, with standard errors in brackets.
"""

import argparse
import collections
import gzip
import json
import math
import os
import re
import time
from pathlib import Path

import numpy as np

from marginrank import FusionRanker, RankingData, RankSVMCV, dump_run, load_letor
from marginrank.fit.fusion import FusionParameters, FusionProblem, JudgedSignals
from marginrank.fit.fusion_search import lattice
from marginrank.metrics import evaluate_run

METRIC = "ndcg@10"
DEPTH = 100
BM25_FEATURES = {"body": 20, "anchor": 21, "title": 22, "url": 23}  # columns of LETOR 4.0
TWO, FOUR = ("body", "wordllama"), ("title", "body", "lsa", "wordllama")


def cranfield(folder: Path):
    """Return titles, bodies and queries by id, and the qrels."""

    def parts(name):
        text = gzip.decompress((folder / name).read_bytes()).decode(errors="replace")
        for part in re.split(r"^\.I ", text, flags=re.M)[1:]:
            number, _, rest = part.partition("\n")
            pieces = re.split(r"^\.([TABW])\s*$", rest, flags=re.M)
            fields = dict(zip(pieces[1::2], pieces[2::2], strict=True))
            yield number.strip(), {name: " ".join(own.split()) for name, own in fields.items()}

    documents = dict(parts("cran.all.1400.gz"))
    # Judgments number the queries by position.
    queries = {str(k): own["W"] for k, (_, own) in enumerate(parts("cran.qry.gz"), 1)}
    qrels: dict[str, dict[str, float]] = {}
    with gzip.open(folder / "qrels.txt.gz", "rt") as lines:
        for query, _, document, label in map(str.split, lines):
            qrels.setdefault(query, {})[document] = float(label)
    titles = {key: own["T"] for key, own in documents.items()}
    bodies = {key: own["W"] for key, own in documents.items()}
    return titles, bodies, queries, qrels


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def bm25(texts, queries, k1=1.2, b=0.75):
    """Return a BM25 run."""
    counts = {key: collections.Counter(words(text)) for key, text in texts.items()}
    length = {key: sum(own.values()) for key, own in counts.items()}
    mean = sum(length.values()) / len(length)
    postings = collections.defaultdict(list)
    for key, own in counts.items():
        for word, count in own.items():
            postings[word].append((key, count))
    run = {}
    for query, text in queries.items():
        scores: dict[str, float] = collections.defaultdict(float)
        for word in words(text):
            found = postings.get(word, [])
            idf = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for key, count in found:
                norm = k1 * (1 - b + b * length[key] / mean)
                scores[key] += idf * count * (k1 + 1) / (count + norm)
        run[query] = top(scores)
    return run


def top(scores) -> dict[str, float]:
    best = sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return {key: float(score) for key, score in best[:DEPTH]}


def nearest(documents, queries, keys, names):
    """Return the run of cosine similarities."""
    a, b = (
        x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        for x in (queries, documents)
    )
    return {
        name: top(dict(zip(keys, own, strict=True)))
        for name, own in zip(names, a @ b.T, strict=True)
    }


def signals(titles, bodies, queries):
    """Return the four runs by name; without WordLlama, three."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [f"{titles[key]} {bodies[key]}" for key in titles]
    asked = list(queries.values())
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    counts = vectorizer.fit_transform(texts)
    svd = TruncatedSVD(100, random_state=0).fit(counts)
    runs = {"title": bm25(titles, queries), "body": bm25(bodies, queries)}
    vectors = svd.transform(counts), svd.transform(vectorizer.transform(asked))
    runs["lsa"] = nearest(*vectors, list(titles), list(queries))
    try:
        import wordllama
    except ImportError:
        print("WordLlama is not installed; its signal is left out.")
        return runs
    place = Path(wordllama.__file__).parent  # the wheel has weights and tokenizer
    model = wordllama.WordLlama.load(cache_dir=place, disable_download=True)
    vectors = model.embed(texts), model.embed(asked)
    runs["wordllama"] = nearest(*vectors, list(titles), list(queries))
    return runs


def mq2008(folder: Path):
    """Return all documents, the runs of four BM25 features, and the qrels."""
    parts = [load_letor(folder / f"S{k}.txt.gz") for k in range(1, 6)]
    X, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "Xy")
    qid = np.concatenate([part.query_ids[part.qid] for part in parts])
    ids = [f"d{row}" for row in range(y.size)]
    data = RankingData(X, y, qid, comments=ids)
    runs = {name: data.to_run(X[:, column]) for name, column in BM25_FEATURES.items()}
    return data, runs, data.to_run(y)


def splits(n_queries: int, n_train: int, n_splits: int):
    """Yield the queries to fit to and the queries to evaluate on."""
    for split in range(n_splits):
        order = np.random.default_rng(split).permutation(n_queries)
        yield order[:n_train], order[n_train:]


def protocol(runs, qrels, n_train: int, n_splits: int, **options):
    """Return the held-out metric of each method, an array over splits each."""
    judged = JudgedSignals.of(runs, qrels, DEPTH)
    # Its values equal the values of evaluate_run, as tests/fit/test_fusion.py checks.
    problem, by_rank = (
        FusionProblem(judged, FusionParameters(), name) for name in ("minmax", "rrf")
    )
    points = lattice(len(runs))
    by_point = np.array([problem.values(w) for w in points])
    rrf = by_rank.values(by_rank.equal())
    result = {name: [] for name in ("learned", "grid", "RRF")}
    for train, test in splits(len(judged.queries), n_train, n_splits):
        best = np.argmax(by_point[:, train].mean(axis=1))
        own = {judged.queries[k]: qrels[judged.queries[k]] for k in train}
        weights = FusionRanker(cv=0, **options).fit(runs, own).model_.weights
        learned = problem.values(weights)
        for name, values in (("learned", learned), ("grid", by_point[best]), ("RRF", rrf)):
            result[name].append(float(values[test].mean()))
    return {name: np.array(values) for name, values in result.items()}


def all_features(data, qrels, n_train: int, n_splits: int):
    """Return the held-out metric of RankSVMCV on all features, an array over splits."""
    result = []
    for train, test in splits(data.n_queries, n_train, n_splits):
        rows = np.isin(data.qid, train)
        ranker = RankSVMCV(scoring=METRIC).fit(data.X[rows], data.y[rows], qid=data.qid[rows])
        values = _values(data.to_run(ranker.predict(data.X)), qrels)
        result.append(float(values[test].mean()))
    return np.array(result)


def _values(run, qrels):
    return evaluate_run(run, qrels, [METRIC]).per_query[METRIC]


def against_ranx(runs, qrels):
    """Return training metric and processor seconds of ranx and of FusionRanker."""
    import ranx

    theirs = [ranx.Run(run, name=name) for name, run in runs.items()]
    judged = ranx.Qrels({q: {d: int(y) for d, y in own.items()} for q, own in qrels.items()})
    options = {"norm": "min-max", "method": "wsum", "metric": METRIC}
    ranx.optimize_fusion(judged, theirs[:2], **options)  # compiles
    start = time.process_time()
    best = ranx.optimize_fusion(judged, theirs, **options)
    seconds = {"ranx": time.process_time() - start}
    fused = ranx.fuse(theirs, norm="min-max", method="wsum", params=best)
    found = {"ranx": float(np.mean(_values(fused.to_dict(), qrels)))}
    for name, options in (
        ("FusionRanker(cv=0, n_bootstraps=0)", {"cv": 0, "n_bootstraps": 0}),
        ("FusionRanker(cv=0)", {"cv": 0}),
        ("FusionRanker()", {}),
    ):
        start = time.process_time()
        ranker = FusionRanker(**options).fit(runs, qrels)
        seconds[name] = time.process_time() - start
        found[name] = float(np.mean(_values(ranker.fuse(runs), qrels)))
    return {name: {METRIC: found[name], "seconds": seconds[name]} for name in found}


def write(folder: Path, runs, qrels) -> None:
    """Write runs and qrels as TREC text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, run in runs.items():
        dump_run(run, folder / f"{name}.run", tag=name)
    lines = (f"{q} 0 {d} {label:g}\n" for q, own in qrels.items() for d, label in own.items())
    (folder / "qrels.txt").write_text("".join(lines))


def print_means(title: str, found) -> None:
    """Print the mean of each method, and of what is learned minus the others."""
    learned, *others = found.values()
    means = "  ".join(f"{name} {values.mean():.4f}" for name, values in found.items())
    differences = "  ".join(
        f"{d.mean():+.4f} ({d.std(ddof=1) / math.sqrt(d.size):.4f})"
        for d in (learned - other for other in others)
    )
    print(f"{title:28} {means}   learned minus the others: {differences}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--write", type=Path, help="folder for the runs and qrels of Cranfield")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    folder = Path(os.environ["MARGINRANK_DATA"])
    *texts, qrels = cranfield(folder / "cranfield")
    all_runs = signals(*texts)
    if arguments.write:
        write(arguments.write, all_runs, qrels)
        return
    results = {}
    chosen = [{name: all_runs[name] for name in names if name in all_runs} for names in (TWO, FOUR)]
    for runs in chosen:
        for n_train in (25, 112):
            title = f"{len(runs)} signals, {n_train} queries"
            results[title] = protocol(runs, qrels, n_train, arguments.splits)
            print_means(title, results[title])
    data, runs, labels = mq2008(folder / "MQ2008")
    for n_train in (20, 100, 500):
        title = f"MQ2008, {n_train} queries"
        results[title] = protocol(runs, labels, n_train, arguments.splits) | {
            "46 features": all_features(data, labels, n_train, arguments.splits)
        }
        print_means(title, results[title])
    for runs in chosen:
        compared = against_ranx(runs, qrels)
        results[f"{len(runs)} signals, ranx"] = compared
        for name, own in compared.items():
            print(f"{len(runs)} signals  {name:36} {own[METRIC]:.4f}  {own['seconds']:7.2f} s")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1, default=np.ndarray.tolist))


if __name__ == "__main__":
    main()
