"""Synthetic ranking problems: what they promise about size, difficulty and learnability."""

import re
import tracemalloc

import numpy as np
import pytest
from helpers.tables import each
from scipy.sparse import csr_array, issparse

from marginrank.data.synthetic import make_ranking


def pairwise_agreement(y, scores, qid):
    """Fraction of the pairs (same query, y_i > y_j) with s_i > s_j, by looking at every pair."""
    pairs = (qid[:, None] == qid[None, :]) & (y[:, None] > y[None, :])
    assert pairs.any()
    return (scores[:, None] > scores[None, :])[pairs].mean()


def center_by_query(X, qid):
    means = np.array([X[qid == q].mean(axis=0) for q in np.unique(qid)])
    return X - means[qid]


def condition_number(X):
    return np.linalg.cond(X.T @ X)


def to_dense(X):
    return X.toarray() if issparse(X) else X


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float32"])
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_shapes_and_dtypes(dtype, density):
    X, y, qid, coef = make_ranking(
        7, 4, 6, dtype=dtype, density=density, return_coef=True, random_state=0
    )
    assert isinstance(X, csr_array if density < 1 else np.ndarray)
    assert X.shape == (28, 6)
    assert X.dtype == np.dtype(dtype)
    assert y.shape == (28,)
    assert coef.shape == (6,)
    assert y.dtype == coef.dtype == np.float64
    assert qid.dtype == np.int64
    np.testing.assert_array_equal(qid, np.repeat(np.arange(7), 4))


def test_without_coef_there_are_three_results():
    assert len(make_ranking(2, 2, 2, random_state=0)) == 3


def test_query_sizes_cover_the_given_range():
    _, _, qid = make_ranking(300, (2, 5), 1, random_state=0)
    assert set(np.bincount(qid)) == {2, 3, 4, 5}


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("seed_type", [int, np.random.default_rng, np.random.RandomState])
def test_same_random_state_same_data(density, seed_type):
    def draw(seed):
        X, y, qid = make_ranking(
            20, (1, 9), 12, density=density, shuffle=True, random_state=seed_type(seed)
        )
        return to_dense(X), y, qid

    first, second, other = draw(3), draw(3), draw(4)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0][:5], other[0][:5])


@pytest.mark.parametrize(
    ("density", "weights", "labels", "total"),
    [
        (1.0, [-0.252461, 0.089801, 0.398796, -0.105759], "0020100103104102", 4.435917),
        (0.2, [0.481922, -0.022439, -0.211235, 0.357458], "2001001311200004", 5.633365),
    ],
)
def test_a_seed_gives_the_same_data_everywhere(density, weights, labels, total):
    # Seen alike with numpy 1.26, 2.0 and 2.4, and with 2.4 kept from AVX2. An order that numpy does
    # not promise would give other weights.
    X, y, qid, coef = make_ranking(
        4,
        (2, 5),
        40,
        density=density,
        informative=20,
        shuffle=True,
        return_coef=True,
        random_state=0,
    )
    np.testing.assert_allclose(coef[coef != 0][:4], weights, atol=1e-6)
    assert "".join(map(str, y.astype(int))) == labels
    assert "".join(map(str, qid)) == "0202001103321321"
    assert X.sum() == pytest.approx(total, abs=1e-6)


def test_generator_advances():
    rng = np.random.default_rng(0)
    first, second = (make_ranking(5, 4, 3, random_state=rng)[0] for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("n_levels", [1, 2, 5, 12])
def test_levels_are_consecutive_and_rarer_towards_the_top(n_levels):
    _, y, _ = make_ranking(200, 20, 5, n_levels=n_levels, random_state=0)
    np.testing.assert_array_equal(np.unique(y), np.arange(n_levels))
    counts = np.bincount(y.astype(int))
    assert (np.diff(counts) < 0).all()
    if n_levels <= 5:
        assert counts[0] > y.size / 2


def test_levels_are_monotone_in_the_utility():
    options = {"noise": 0.3, "random_state": 1}
    utility = make_ranking(30, 10, 4, n_levels=None, **options)[1]
    level = make_ranking(30, 10, 4, n_levels=4, **options)[1]
    assert (np.diff(level[np.argsort(utility)]) >= 0).all()
    assert level.max() == 3


@pytest.mark.parametrize("density", [1.0, 0.5])
def test_real_labels_are_distinct_scores_of_the_true_model(density):
    X, y, _, coef = make_ranking(
        100, 50, 30, n_levels=None, noise=0, density=density, return_coef=True, random_state=0
    )
    assert np.unique(y).size == y.size
    np.testing.assert_allclose(X @ coef, y, atol=1e-10)


def test_float32_real_labels_do_not_tie_by_rounding():
    _, y, _ = make_ranking(200, 200, 10, n_levels=None, noise=0, dtype=np.float32, random_state=0)
    assert np.unique(y).size == y.size


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_signal_inside_a_query_has_unit_variance(density, correlation):
    # In sparse data the offset counts only where entries are stored, so some of it remains.
    X, _, qid, coef = make_ranking(
        20, 500, 40, density=density, correlation=correlation, return_coef=True, random_state=2
    )
    signal = center_by_query((X @ coef)[:, None], qid)
    assert 0.7 < signal.var() < 1.6


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_noise_has_the_given_deviation(density):
    X, y, _, coef = make_ranking(
        200, 50, 10, n_levels=None, noise=2.0, density=density, return_coef=True, random_state=0
    )
    assert 1.9 < (y - X @ coef).std() < 2.1


@pytest.mark.parametrize("density", [1.0, 0.4])
@pytest.mark.parametrize(("informative", "expected"), [(None, 15), (1, 1), (6, 6), (15, 15)])
def test_informative_counts_the_non_zero_weights(density, informative, expected):
    *_, coef = make_ranking(
        5, 5, 15, informative=informative, density=density, return_coef=True, random_state=0
    )
    assert np.count_nonzero(coef) == expected


def test_documents_of_a_query_share_part_of_their_features():
    X, _, qid = make_ranking(300, 30, 20, random_state=0)
    between = np.array([X[qid == q].mean(axis=0) for q in range(300)]).var(axis=0)
    within = center_by_query(X, qid).var(axis=0)
    share = between / (between + within)
    # Independent documents would give 1/30; a share above 1/2 would not be modest.
    assert ((share > 0.1) & (share < 0.4)).all()


def test_correlation_makes_the_problem_ill_conditioned():
    def condition_inside_queries(correlation):
        X, _, qid = make_ranking(100, 20, 30, correlation=correlation, random_state=0)
        return condition_number(center_by_query(X, qid))

    low, middle, high = (condition_inside_queries(c) for c in (0.0, 0.9, 0.999))
    assert low < 3
    assert middle > 10 * low
    assert high > 30 * middle


def test_correlation_keeps_the_variance_of_features():
    variances = [
        center_by_query(*make_ranking(50, 100, 20, correlation=c, random_state=0)[::2]).var(axis=0)
        for c in (0.0, 0.9)
    ]
    np.testing.assert_allclose(variances, 1, atol=0.15)


@pytest.mark.parametrize("density", [1.0, 0.5])
def test_heavy_tail_widens_scales_and_tails(density):
    def columns(heavy_tail):
        X = make_ranking(100, 40, 30, heavy_tail=heavy_tail, density=density, random_state=0)[0]
        dense = to_dense(X)
        scale = np.array([np.abs(column[column != 0]).mean() for column in dense.T])
        return scale.max() / scale.min(), np.abs(dense).max(axis=0) / scale

    spread_light, extreme_light = columns(0.0)
    spread_heavy, extreme_heavy = columns(1.0)
    assert spread_light < 2
    assert spread_heavy > 100
    assert np.median(extreme_heavy) > 2 * np.median(extreme_light)


@pytest.mark.parametrize("density", [1.0, 0.5])
def test_heavy_tail_is_monotone_and_leaves_the_labels_alone(density):
    plain, heavy = (
        make_ranking(20, 20, 5, heavy_tail=heavy_tail, density=density, random_state=0)
        for heavy_tail in (0.0, 2.0)
    )
    np.testing.assert_array_equal(plain[1], heavy[1])
    latent, stretched = to_dense(plain[0]), to_dense(heavy[0])
    assert not np.allclose(latent, stretched)
    np.testing.assert_array_equal(np.sign(latent), np.sign(stretched))
    order = np.argsort(latent, axis=0)
    assert (np.diff(np.take_along_axis(stretched, order, axis=0), axis=0) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_largest_heavy_tail_stays_finite(dtype):
    X, _, _ = make_ranking(100, 100, 50, heavy_tail=10, dtype=dtype, random_state=0)
    assert np.isfinite(X).all()


@pytest.mark.parametrize("density", [1.0, 0.2])
@pytest.mark.parametrize("shuffle", [False, True])
def test_true_coef_ranks_much_better_than_a_random_one(density, shuffle):
    X, y, qid, coef = make_ranking(
        30, 15, 20, density=density, shuffle=shuffle, return_coef=True, random_state=0
    )
    rng = np.random.default_rng(1)
    at_random = [pairwise_agreement(y, X @ rng.permutation(coef), qid) for _ in range(10)]
    assert pairwise_agreement(y, X @ coef, qid) > 0.85
    assert 0.3 < np.mean(at_random) < 0.7


def test_heavy_tailed_problem_remains_learnable():
    X, y, qid = make_ranking(60, 20, 10, heavy_tail=0.5, n_levels=None, random_state=0)
    centered = center_by_query(X, qid)
    weights = np.linalg.lstsq(
        centered / X.std(axis=0), center_by_query(y[:, None], qid)[:, 0], rcond=None
    )[0]
    assert pairwise_agreement(y, (X / X.std(axis=0)) @ weights, qid) > 0.75


@pytest.mark.parametrize("density", [0.05, 0.3, 0.7, 0.97])
def test_sparse_density(density):
    X, _, _ = make_ranking(100, 30, 40, density=density, random_state=0)
    assert X.nnz / (3000 * 40) == pytest.approx(density, rel=0.03)


def test_sparse_is_canonical():
    X, _, _ = make_ranking(50, 20, 100, density=0.3, random_state=0)
    assert X.indptr[0] == 0
    assert X.indptr[-1] == X.nnz == X.indices.size
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        assert (np.diff(X.indices[start:end]) > 0).all()
    assert set(X.indices) == set(range(100))
    assert X.has_canonical_format


def test_sparse_without_any_entry_is_pure_noise():
    X, y, _ = make_ranking(50, 20, 10, density=1e-9, n_levels=None, noise=0.5, random_state=0)
    assert X.nnz == 0
    assert 0.45 < y.std() < 0.55


def test_sparse_popularity_follows_a_power_law():
    X, _, _ = make_ranking(500, 20, 1000, density=0.01, random_state=0)
    popularity = np.sort(np.bincount(X.indices, minlength=1000))[::-1]
    assert popularity[9] > 5 * popularity[99] > 25 * popularity[999]
    # Popular features are not simply the first ones.
    assert not np.array_equal(np.argsort(np.bincount(X.indices))[::-1][:3], [0, 1, 2])


def test_sparse_memory_does_not_grow_with_the_empty_cells():
    tracemalloc.start()
    try:
        X, _, _ = make_ranking(100, 50, 200_000, density=1e-4, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.nnz / 5000 == pytest.approx(20, rel=0.05)
    assert peak < 200 * (X.nnz + 200_000)  # a dense X would take 8 GB


@pytest.mark.parametrize("shuffle", [False, True])
def test_dense_memory_is_little_more_than_the_result(shuffle):
    tracemalloc.start()
    try:
        X, _, _ = make_ranking(
            200, 100, 300, dtype=np.float32, heavy_tail=1, shuffle=shuffle, random_state=0
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * X.nbytes


def test_many_blocks_do_not_repeat_themselves():
    X, _, qid = make_ranking(2, 3000, 1000, dtype=np.float32, random_state=0)
    assert np.unique(X[:, 0]).size > 0.99 * len(X)
    # A query that spans several blocks keeps its offset.
    first, last = X[:500], X[2500:3000]
    assert qid[2999] == 0
    assert np.corrcoef(first.mean(axis=0), last.mean(axis=0))[0, 1] > 0.8


@pytest.mark.parametrize("density", [1.0, 0.3])
def test_shuffle_scatters_queries_and_keeps_their_sizes(density):
    X, _, qid = make_ranking(40, (5, 9), 20, density=density, shuffle=True, random_state=0)
    X_sorted, _, qid_sorted = make_ranking(40, (5, 9), 20, density=density, random_state=0)
    assert X.shape == X_sorted.shape
    np.testing.assert_array_equal(np.bincount(qid), np.bincount(qid_sorted))
    assert np.count_nonzero(np.diff(qid)) > 2 * 40


def test_shuffled_documents_share_the_offset_of_their_query():
    X, _, qid = make_ranking(40, 30, 20, shuffle=True, random_state=0)
    between = np.array([X[qid == q].mean(axis=0) for q in range(40)]).var()
    at_random = np.array([X[qid[::-1] == q].mean(axis=0) for q in range(40)]).var()
    assert between > 3 * at_random


@each(
    ("name", "value"),
    [
        ("n_queries", 0),
        ("n_queries", 2.0),
        ("n_queries", True),
        ("docs_per_query", 0),
        ("docs_per_query", (0, 3)),
        ("docs_per_query", (5, 3)),
        ("docs_per_query", (1, 2, 3)),
        ("docs_per_query", "20"),
        ("n_features", -1),
        ("n_levels", 0),
        ("n_levels", 2.5),
        ("noise", -0.1),
        ("noise", float("nan")),
        ("noise", float("inf")),
        ("informative", 0),
        ("informative", 21),
        ("correlation", -0.1),
        ("correlation", 1.0),
        ("correlation", "high"),
        ("heavy_tail", -1),
        ("heavy_tail", 11),
        ("density", 0),
        ("density", 1.5),
        ("dtype", np.int64),
        ("dtype", "no such type"),
        ("random_state", -1),
        ("random_state", "seed"),
    ],
)
def test_bad_argument_is_named_with_its_value(name, value):
    one_sentence = rf"^{name}={re.escape(repr(value))} must be [^\n]+\.$"
    with pytest.raises(ValueError, match=one_sentence):
        make_ranking(**{name: value})
