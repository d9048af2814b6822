"""Exports to test: models, names that attack, and every target with what runs it."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from marginrank.export.exporting import export_files
from marginrank.export.registry import TARGETS, find_target
from marginrank.export.verification import run_export
from marginrank.models import AdditiveModel, LinearModel
from marginrank.models.additive_model import Curve, Interaction

EVERY_TARGET = [*(name for name in TARGETS if name != "sql"), "sql:mysql"]
PROGRAMS = {"c": "cc", "java": "javac", "javascript": "node", "pmml": "java"}

# Names that end strings, comments, tags and statements, that are escapes, keywords or properties,
# or that are merely not ASCII.
HOSTILE_NAMES = [
    "plain", "with space", 'double"quote', '"', '""', "single'quote", "'", "''", "back\\slash",
    "\\", "\\'", '\\"', "`tick`", "[bracket]", "new\nline", "carriage\r\nreturn", "tab\t", " ",
    "*/ system(0); /*", "-- comment", "// comment", "# comment", "]]>", "<!-- x -->", "</script>",
    '"; DROP TABLE documents; --', "'); DROP TABLE documents; --", '"/><evil a="',
    "??/", "??=define", "\\u000a", "\\u0022", "\\\\u0022", "\\012", "\\x41", "%s %n", "{0} {name}",
    "${x}", "$1", "&amp; &#0;", "<b>", "é ü ß", "日本語", "🎉", "\u2028", "\u00a0x", "\x7f",
    "constructor", "__proto__", "toString", "score", "NULL", "select", "d", "rowid", "1", "1.5",
    "f) + attribute(g", "x']; y = doc['z", "a.b", "x" * 60, "\u2029", "\u200f",
]  # fmt: skip


def require_program(target):
    """Skip a test of a target whose engine is not on this machine."""
    program = PROGRAMS.get(target)
    if program is not None and shutil.which(program) is None:
        pytest.skip(f"{program} is not on PATH: it runs exports to {target}")


def scores_of(model, target, X, **options):
    """Return the scores that an export gives, and the engine that gave them."""
    require_program(target)
    files = export_files(model, target, **options)
    run = run_export(model, target, files, X, options.get("names"))
    return run.scores


def expected_scores(model, X):
    """Return the rule: what is missing counts as 0."""
    return np.where(np.isnan(X), 0.0, X)[:, model.coef != 0] @ model.coef[model.coef != 0]


def assert_scores(target, scores, expected):
    """Fail if scores are further from each other than the target's precision allows."""
    precision = find_target(target)[0].precision
    assert scores.shape == expected.shape
    difference = np.abs(scores - expected).max()
    if precision == "float64":
        assert difference <= 1e-12 * np.abs(expected).max()
    else:
        assert difference <= 1e-5 * np.ptp(expected)


def random_model(n_features, seed=0, names=None):
    """Return a model of which a fifth of the weights are zero, but not the only one."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=n_features) * 10.0 ** rng.integers(-3, 4, n_features)
    coef[5 if n_features == 1 else 0 :: 5] = 0.0
    return LinearModel(coef, {}, feature_names=names)


def random_documents(n_documents, n_features, seed=0):
    """Return documents, a tenth of whose features are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_documents, n_features))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def random_curves(n_features, seed=0, names=None, bins=8):
    """Return an additive model: a quarter are categories, some others lines, constants or zero."""
    rng = np.random.default_rng(seed)
    curves = []
    for k in range(n_features):
        size = {1: 2, 6: 1}.get(k % 12, bins + 1)
        knots = np.sort(rng.normal(size=size))
        if k % 4 == 0:
            knots = np.unique(np.round(knots))
        values = rng.normal(size=knots.size) * (k % 12 != 11)
        curves.append(Curve(knots, values, rng.normal() * (k % 3 != 2), categorical=k % 4 == 0))
    return AdditiveModel(curves, {}, feature_names=names)


def random_grids(n_features, n_pairs, seed=0, names=None, bins=8):
    """Return such a model with pairs of features, one of them in two pairs at least."""
    rng = np.random.default_rng(seed)
    model = random_curves(n_features, seed, names, bins)
    chosen = [(0, 1), (2, 1), *zip(*rng.integers(n_features, size=(2, 4 * n_pairs)), strict=True)]
    features = [(int(a), int(b)) for a, b in chosen if a != b][:n_pairs]
    return replace(model, interactions=[_random_pair(model, pair, rng) for pair in features])


def _random_pair(model, features, rng):
    """Return a grid on every other knot of two curves, with nothing where a half is missing."""
    knots = tuple(model.curves[k].knots[::2].copy() for k in features)
    values = rng.normal(size=[axis.size + 1 for axis in knots])
    if features[0] % 2:
        values[0] = 0.0
    categorical = tuple(model.curves[k].categorical for k in features)
    return Interaction(features, knots, values, categorical)


def around(knots):
    """Return values at knots, between, next to and beyond them, and a missing one."""
    wide = np.concatenate([[knots[0] - 3.0], knots, [knots[-1] + 3.0]])
    near = [np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)]
    return np.concatenate([wide, (wide[1:] + wide[:-1]) / 2, *near, [np.nan]])


def documents_around(model, pair):
    """Return documents with every two of such values in the features of a pair."""
    first, second = (around(knots) for knots in pair.knots)
    X = np.zeros((first.size * second.size, model.n_features))
    X[:, pair.features[0]] = np.repeat(first, second.size)
    X[:, pair.features[1]] = np.tile(second, first.size)
    return X
