"""The fits, commands and exports whose results are golden: one table each.

Only public names appear here. When one of them is renamed, this file and the table ``RENAMED`` of
``test_golden.py`` are what changes, never the recorded values.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np


class Fit(NamedTuple):
    """One fit: a class of marginrank or marginrank.dask, its parameters, data and fit arguments."""

    name: str
    estimator: str
    parameters: Mapping[str, Any] = MappingProxyType({})
    data: str = "levels"
    arguments: Mapping[str, Any] = MappingProxyType({})


RANK_SVM = [
    Fit("default", "RankSVM"),
    Fit("hinge", "RankSVM", {"loss": "hinge", "C": 0.1}),
    Fit("huber", "RankSVM", {"loss": "huber"}),
    Fit("logistic", "RankSVM", {"loss": "logistic"}),
    Fit("tron", "RankSVM", {"solver": "tron"}),
    Fit("tron-logistic", "RankSVM", {"solver": "tron", "loss": "logistic", "tol": 1e-9}),
    Fit("smoothing", "RankSVM", {"loss": "hinge", "solver": "smoothing", "C": 0.01}),
    Fit("ocas", "RankSVM", {"loss": "hinge", "solver": "ocas", "C": 0.01, "tol": 1e-3}),
    Fit("bmrm", "RankSVM", {"loss": "hinge", "solver": "bmrm", "C": 0.01, "tol": 1e-2}),
    Fit("cost-gain", "RankSVM", {"pair_cost": "gain"}),
    Fit("cost-ndcg", "RankSVM", {"pair_cost": "ndcg", "loss": "huber"}),
    Fit("cost-table", "RankSVM", {"pair_cost": np.tri(4, k=-1) * np.arange(1.0, 5.0)}),
    Fit("margin-label", "RankSVM", {"margin": "label"}),
    Fit("margin-gain", "RankSVM", {"margin": "gain", "loss": "hinge", "C": 0.01}),
    Fit("by-pairs", "RankSVM", {"normalization": "pairs", "C": 10.0}),
    Fit("by-query", "RankSVM", {"normalization": "query", "scale": "query"}),
    Fit("scale-standard", "RankSVM", {"scale": "standard"}),
    Fit("scale-range", "RankSVM", {"scale": "range", "lam": 0.1}),
    Fit("scale-array", "RankSVM", {"scale": np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.0])}),
    Fit("adjacent", "RankSVM", {"pair_selection": "adjacent"}),
    Fit("ndcg", "RankSVM", {"objective": "ndcg@5", "C": 0.1}),
    Fit("ndcg-logistic", "RankSVM", {"objective": "ndcg@3", "loss": "logistic"}),
    Fit("max-iter", "RankSVM", {"max_iter": 2, "tol": 1e-12}),
    Fit("weights", "RankSVM", {}, "levels", {"sample_weight": "weights"}),
    Fit("query-weights", "RankSVM", {}, "levels", {"query_weight": "query_weights"}),
    Fit("propensity", "RankSVM", {}, "binary", {"propensity": "weights"}),
    Fit("pair-list", "RankSVM", {}, "levels", {"pairs": "pairs"}),
    Fit(
        "pair-list-weights",
        "RankSVM",
        {"loss": "hinge", "C": 0.1},
        "levels",
        {"pairs": "pairs", "pair_weight": "pair_weights"},
    ),
    Fit("real-labels", "RankSVM", {"loss": "huber"}, "real"),
    Fit("real-labels-margin", "RankSVM", {"margin": "label"}, "real"),
    Fit("sparse-matrix", "RankSVM", {}, "csr"),
    Fit("float32", "RankSVM", {"scale": "standard"}, "float32"),
    Fit("shuffled", "RankSVM", {}, "shuffled"),
    Fit("wide", "RankSVM", {"tol": 1e-9}, "wide"),
    Fit("out-of-core", "RankSVM", {}, "store", {"memory_limit": "1TB"}),
    Fit(
        "out-of-core-hinge",
        "RankSVM",
        {"loss": "hinge", "C": 0.01, "scale": "standard"},
        "store",
        {"memory_limit": "1TB"},
    ),
    Fit("torch", "RankSVM", {"device": "cpu"}),
    Fit("torch-sparse", "RankSVM", {"device": "cpu", "loss": "logistic"}, "csr"),
    Fit("torch-hinge", "RankSVM", {"device": "cpu", "loss": "hinge", "C": 0.01}),
    Fit("dask", "DaskRankSVM", {"normalization": "query"}, "dask"),
    Fit("dask-sparse", "DaskSparseRankSVM", {"C": 20.0}, "dask"),
]

SPARSE = [
    Fit("sparse-default", "SparseRankSVM"),
    Fit("sparse-logistic", "SparseRankSVM", {"C": 3.0, "loss": "logistic"}),
    Fit("sparse-elastic", "SparseRankSVM", {"C": 3.0, "l1_ratio": 0.5}),
    Fit("sparse-positive", "SparseRankSVM", {"C": 3.0, "positive": True, "scale": "query"}),
    Fit("sparse-radius", "SparseRankSVM", {"radius": 0.5}),
    Fit("sparse-fenchel", "SparseRankSVM", {"radius": 0.5, "solver": "fenchel", "tol": 1e-2}),
    Fit(
        "sparse-fenchel-away",
        "SparseRankSVM",
        {"radius": 0.5, "solver": "fenchel", "variant": "away", "tol": 1e-2},
    ),
    Fit(
        "sparse-fenchel-pairwise",
        "SparseRankSVM",
        {"radius": 0.5, "solver": "fenchel", "variant": "pairwise", "tol": 1e-2},
    ),
    Fit(
        "sparse-truncated",
        "SparseRankSVM",
        {"C": 3.0, "solver": "truncated_gradient", "max_iter": 30, "tol": 1e-2},
    ),
    Fit("sparse-out-of-core", "SparseRankSVM", {"C": 3.0}, "store", {"memory_limit": "1TB"}),
    Fit("sparse-torch", "SparseRankSVM", {"C": 3.0, "device": "cpu"}),
    Fit("sparse-wide", "SparseRankSVM", {"C": 3.0}, "wide"),
]

ONLINE = [
    Fit("sgd", "SGDRankSVM", {"max_iter": 6}),
    Fit("sgd-pair", "SGDRankSVM", {"method": "pair", "max_iter": 6, "loss": "logistic"}),
    Fit(
        "sgd-inverse",
        "SGDRankSVM",
        {"learning_rate": "inverse", "average": False, "max_iter": 6, "scale": "standard"},
    ),
    Fit(
        "sgd-early",
        "SGDRankSVM",
        {"early_stopping": True, "max_iter": 6, "loss": "hinge", "shuffle": False},
    ),
    Fit("sgd-pair-list", "SGDRankSVM", {"max_iter": 6}, "levels", {"pairs": "pairs"}),
]

ADDITIVE = [
    Fit("additive", "AdditiveRankSVM", {"max_bins": 5}),
    Fit("additive-logistic", "AdditiveRankSVM", {"max_bins": 5, "loss": "logistic"}),
    Fit("additive-hinge", "AdditiveRankSVM", {"max_bins": 4, "loss": "hinge"}),
    Fit("additive-tron", "AdditiveRankSVM", {"max_bins": 4, "solver": "tron", "scale": None}),
    Fit(
        "additive-categories",
        "AdditiveRankSVM",
        {"max_bins": 4, "categorical_features": [0]},
        "rounded",
    ),
    Fit(
        "additive-interactions",
        "AdditiveRankSVM",
        {"max_bins": 4, "interactions": 2, "normalization": "none", "smoothness": 0.1},
    ),
    Fit(
        "additive-monotone",
        "AdditiveRankSVM",
        {"max_bins": 4, "monotonic_cst": {0: 1, 1: -1, 2: 1}},
    ),
    Fit(
        "additive-monotone-hinge",
        "AdditiveRankSVM",
        {"max_bins": 4, "monotonic_cst": {0: 1, 1: -1}, "loss": "hinge"},
    ),
    Fit("additive-group", "AdditiveRankSVM", {"max_bins": 4, "group_l1": 0.5}),
    Fit(
        "additive-group-hinge", "AdditiveRankSVM", {"max_bins": 4, "group_l1": 0.5, "loss": "hinge"}
    ),
    Fit(
        "additive-group-grids",
        "AdditiveRankSVM",
        {"max_bins": 4, "group_l1": 0.3, "interactions": 1},
    ),
    Fit("additive-missing", "AdditiveRankSVM", {"max_bins": 4, "interactions": 1}, "missing"),
    Fit("additive-ndcg", "AdditiveRankSVM", {"max_bins": 4, "objective": "ndcg@5"}),
    Fit("additive-pair-list", "AdditiveRankSVM", {"max_bins": 4}, "levels", {"pairs": "pairs"}),
    Fit("additive-sparse", "AdditiveRankSVM", {"max_bins": 4, "pair_cost": "gain"}, "csr"),
]

KERNEL = [
    Fit("kernel-rbf", "KernelRankSVM", {"n_components": 8}),
    Fit("kernel-poly", "KernelRankSVM", {"n_components": 8, "kernel": "poly", "degree": 2}),
    Fit("kernel-all", "KernelRankSVM", {"kernel": "linear", "loss": "logistic"}, "few"),
]

SEARCHES = [
    Fit("cv", "RankSVMCV", {"n_points": 3, "cv": 2}),
    Fit("cv-grid", "RankSVMCV", {"Cs": [0.01, 1.0], "loss": ["squared_hinge", "hinge"], "cv": 2}),
    Fit("cv-one-se", "RankSVMCV", {"Cs": [0.01, 1.0], "rule": "one_se", "cv": 3, "scale": None}),
    Fit("sparse-cv", "SparseRankSVMCV", {"n_points": 4, "cv": 2}),
    Fit("sparse-cv-radius", "SparseRankSVMCV", {"n_points": 4, "cv": 2, "parameter": "radius"}),
    Fit("additive-cv", "AdditiveRankSVMCV", {"Cs": [1.0, 10.0], "max_bins": 4, "cv": 2}),
]

# Given, so that other defaults of additive models do not change what is recorded.
CURVES = {"C": 10.0, "smoothness": 0.03}
ADDITIVE = [case._replace(parameters=CURVES | case.parameters) for case in ADDITIVE]

FITS = [*RANK_SVM, *SPARSE, *ONLINE, *ADDITIVE, *KERNEL, *SEARCHES]

# Functions of marginrank, and the attributes of their results.
PATH = ["values", "coefs", "objectives", "gaps", "stop_reasons", "scores"]
FUNCTIONS = [
    ("path", "linear_path", {"n_points": 4, "validation": "levels"}, PATH),
    ("path-hinge", "linear_path", {"Cs": [0.01, 0.1], "loss": "hinge"}, PATH),
    ("sparse-path", "sparse_path", {"n_points": 5, "validation": "levels"}, PATH),
    ("sparse-path-radius", "sparse_path", {"n_points": 4, "parameter": "radius"}, PATH),
]

# Commands, in this order and in one folder: some read what others wrote. "data.txt" is there.
COMMANDS = [
    "convert data.txt data.store",
    "train data.txt --model linear.json --valid data.txt",
    "train data.store --model stored.json --loss logistic --scale standard --memory-limit 1TB",
    "train data.txt --pairs data.pairs --model pairs.json",
    "train-sparse data.txt --model sparse.json -C 3",
    "train-sparse data.txt --model sparse_path.json --path 4 --valid data.txt",
    "train-additive data.txt --model additive.json -C 10 --smoothness 0.03 --max-bins 4 "
    "--monotonic-cst 1:+1",
    "train-online data.txt --model online.json --max-iter 5",
    "tune data.txt --model tuned.json --points 3 --folds 2",
    "tune data.txt --model tuned_curves.json --additive --C 1,10 --max-bins 4 --folds 2",
    "evaluate linear.json data.txt --metrics ndcg@5,average_precision,pairwise_accuracy",
    "compare data.txt --model-a linear.json --model-b additive.json",
    "inspect linear.json",
    "inspect additive.json",
    "inspect data.txt",
    "features data.txt",
    "learning-curve data.txt --folds 2 --sizes 4,8",
    "export linear.json --to python --out linear.py --verify data.txt",
]

EVERYWHERE = ["onnx", "onnx-float32"]
EXPORTS = {
    "small-linear": [
        "elasticsearch", "opensearch", "solr", "vespa", "ranklib", "fastrank", "pmml", "lucene",
        "sqlite", "duckdb", "postgresql", "sql:mysql", "c", "java", "javascript", "python",
        *EVERYWHERE,
    ],
    "small-additive": [
        "pmml", "sqlite", "duckdb", "postgresql", "c", "java", "javascript", "python", *EVERYWHERE,
    ],
    "small-kernel": EVERYWHERE,
}  # fmt: skip
EXPORTED = {
    "small-linear": Fit("", "RankSVM", {"scale": "standard"}, "few"),
    "small-additive": Fit(
        "",
        "AdditiveRankSVM",
        {"C": 10.0, "smoothness": 0.015, "max_bins": 3, "interactions": 1},
        "few",
    ),
    "small-kernel": Fit("", "KernelRankSVM", {"n_components": 4}, "few"),
}
