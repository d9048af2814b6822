"""Fusion models, random results of searches, and the documented arithmetic of search engines.

Each function that is called as an engine reads an exported file and returns documents, best first.
`lists` has the results of one search per signal, best first: (document, score).
"""

import json
import re
from statistics import fmean, stdev

import numpy as np

from marginrank.data.runs import best_first
from marginrank.export.fusion import fusion_files
from marginrank.models import FusionModel

N_QUERIES = 50


def fusion_model(normalizer, weights=(0.3, 0.7), **options):
    signals = ("keyword", "vector", "recency", "clicks")[: len(weights)]
    return FusionModel(signals, list(weights), normalizer, **options)


def random_runs(signals, seed=0, n_documents=30, kept=0.6):
    """Return runs of 50 queries, in each of which a signal retrieves some of the documents."""
    rng = np.random.default_rng(seed)
    runs = {}
    for scale, signal in zip(10.0 ** rng.integers(-1, 3, len(signals)), signals, strict=True):
        runs[signal] = {
            f"q{query}": {
                f"d{document:02d}": float(np.float32(scale * rng.gamma(2.0)))
                for document in np.flatnonzero(rng.random(n_documents) < kept)
            }
            for query in range(N_QUERIES)
        }
    return runs


def lists_of(model, runs, query):
    """Return the results of each search, as an engine has them: the best `depth` documents."""
    return [
        list(best_first(runs[signal])[query].items())[: model.depth] for signal in model.signals
    ]


def assert_same_order(expected, found, accuracy=1e-6):
    """Fail unless documents are in the order of the expected scores, ties in any order.

    Engines compute in single precision, so scores that differ by less than that are ties.
    """
    assert len(found) == len(set(found))
    assert set(found) == expected.keys()
    scores = np.array([expected[document] for document in found])
    assert np.diff(scores).max(initial=-1.0) <= accuracy * np.ptp(scores)


def assert_engine_agrees(model, to, engine, runs=None, **options):
    """Fail unless an engine orders the documents of 50 queries as the model does."""
    runs = random_runs(model.signals) if runs is None else runs
    files = fusion_files(model, to, **options)
    fused = model.fuse(runs)
    assert len(fused) == N_QUERIES
    for query, expected in fused.items():
        assert_same_order(expected, engine(files, lists_of(model, runs, query)))


def _added(lists, values, weights):
    total = {}
    for found, weight in zip(lists, weights, strict=True):
        for place, (document, _) in enumerate(found):
            value = np.float32(weight) * np.float32(values[id(found)][place])
            total[document] = np.float32(total.get(document, np.float32(0.0)) + value)
    return total


def _ranked(total):
    return sorted(total, key=total.get, reverse=True)


def _normalized(lists, function):
    return {id(found): function([score for _, score in found]) for found in lists}


def _reciprocal(constant):
    return lambda scores: [1.0 / (constant + place) for place in range(1, len(scores) + 1)]


def opensearch_scores(files, lists):
    """OpenSearch: its normalizers give 0.001 to documents that would have 0 or less."""
    (processor,) = json.loads(files[""])["phase_results_processors"]
    queries = json.loads(files["search"])["query"]["hybrid"]["queries"]
    assert len(queries) == len(lists)
    ((kind, settings),) = processor.items()
    combination = settings["combination"]
    weights = combination["parameters"]["weights"]
    assert abs(sum(weights) - 1.0) < 1e-6
    if kind == "score-ranker-processor":
        assert combination["technique"] == "rrf"
        return _added(lists, _normalized(lists, _reciprocal(combination["rank_constant"])), weights)
    assert combination["technique"] == "arithmetic_mean"
    technique = settings["normalization"]["technique"]
    return _added(lists, _normalized(lists, OPENSEARCH[technique]), weights)


def opensearch(files, lists):
    return _ranked(opensearch_scores(files, lists))


def _min_max(scores):
    low, high = min(scores), max(scores)
    return [1.0 if low == high else (score - low) / (high - low) for score in scores]


def _floored(values):
    return [0.001 if value <= 0.0 else value for value in values]


def _z_score(scores):
    if len(set(scores)) == 1:
        return scores
    mean, deviation = fmean(scores), stdev(scores)
    return _floored([(score - mean) / deviation for score in scores])


def _l2(scores):
    norm = sum(score**2 for score in scores) ** 0.5
    return [score / norm for score in scores]


OPENSEARCH = {"min_max": lambda s: _floored(_min_max(s)), "z_score": _z_score, "l2": _l2}
ELASTICSEARCH = {"minmax": _min_max, "l2_norm": _l2, "none": list}


def elasticsearch(files, lists):
    """Elasticsearch: a linear retriever or an rrf retriever, a sum over the retrievers."""
    ((kind, settings),) = json.loads(files[""])["retriever"].items()
    weights = [one["weight"] for one in settings["retrievers"]]
    if kind == "rrf":
        values = _normalized(lists, _reciprocal(settings["rank_constant"]))
    else:
        assert kind == "linear"
        (name,) = {one["normalizer"] for one in settings["retrievers"]}
        values = _normalized(lists, ELASTICSEARCH[name])
    return _ranked(_added(lists, values, weights))


def weaviate(files, lists):
    """Weaviate's relative score fusion: alpha is the weight of the vector search."""
    arguments = json.loads(files[""])
    assert arguments["fusionType"] == "relativeScoreFusion"
    weights = [1.0 - arguments["alpha"], arguments["alpha"]]
    return _ranked(_added(lists, _normalized(lists, _min_max), weights))


def vespa(files, lists):
    """Vespa's global phase, which normalizes over all documents and sorts by rank feature."""
    text = files[""].decode()
    phase = text[text.index("global-phase") :]
    terms = re.findall(r"(?:(\w+_\w+)\()?(\w+\([\w, ]+\))(?:, ([\d.]+))?\)? \* (\S+)$", phase, re.M)
    assert len(terms) == len(lists)
    total = {}
    for (function, _, constant, weight), found in zip(terms, lists, strict=True):
        scores = [score for _, score in found]
        if function == "normalize_linear":
            values = _min_max(scores)
        elif function == "reciprocal_rank":
            values = _reciprocal(float(constant))(scores)
        else:
            assert function == ""
            values = scores
        for (document, _), value in zip(found, values, strict=True):
            total[document] = total.get(document, 0.0) + float(weight) * value
    return _ranked(total)
