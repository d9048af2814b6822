"""AdditiveRankSVM: curves that rank, and lines where there is nothing else to learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.plain_defaults import plain_curves
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginrank import AdditiveRankSVM, RankingData, RankSVM, load_model, make_ranking
from marginrank._utils import memory
from marginrank.models.additive_model import importance
from marginrank.objective.losses import LOSSES

X, Y, QID = make_ranking(20, (5, 15), 4, random_state=0)
X = X.astype(np.float32).astype(np.float64)
CURVED = np.random.default_rng(0).normal(size=(400, 3))
CURVED_Y = np.round(-2 * np.abs(CURVED[:, 0]) + CURVED[:, 1], 1)
CURVED_QID = np.arange(400) // 20


WHY = "knots are quantiles of the documents, whatever they weigh"
EXPECTED = {
    f"check_sample_weight_equivalence_on_{layout}_data": WHY for layout in ("dense", "sparse")
}


@parametrize_with_checks(
    [plain_curves(max_bins=8, tol=1e-4)], expected_failed_checks=lambda _: EXPECTED
)
def test_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


def test_ranks_what_no_line_can():
    linear = RankSVM(scale="standard").fit(CURVED, CURVED_Y, qid=CURVED_QID)
    model = plain_curves(smoothness=0.1).fit(CURVED, CURVED_Y, qid=CURVED_QID)
    assert linear.score(CURVED, CURVED_Y, qid=CURVED_QID) < 0.8
    assert model.score(CURVED, CURVED_Y, qid=CURVED_QID) > 0.95
    peak = model.curves_[0].knots[np.argmax(model.curves_[0].values)]
    assert abs(peak) < 0.5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [None, "standard", "range", "query"])
def test_with_two_knots_a_feature_it_is_rank_svm(loss, scale):
    """But for the rounding of places: knots that are all values of a feature have none."""
    few = np.random.default_rng(0).integers(0, 2, size=X.shape) * [1.0, 3.0, 0.1, 7.0]
    options = {"C": 0.1, "loss": loss, "scale": scale, "tol": 1e-9}
    line = RankSVM(**options).fit(few, Y, qid=QID)
    model = plain_curves(max_bins=1, **options).fit(few, Y, qid=QID)
    assert model.objective_ == pytest.approx(line.objective_, rel=1e-8)
    slopes = [np.diff(c.values)[0] / np.diff(c.knots)[0] for c in model.curves_]
    assert_allclose(slopes, line.coef_, rtol=1e-3, atol=1e-4 * np.abs(line.coef_).max())


def test_with_huge_smoothness_it_is_rank_svm():
    options = {"C": 0.1, "scale": "standard", "tol": 1e-9}
    line = RankSVM(**options).fit(X, Y, qid=QID)
    model = plain_curves(smoothness=1e9, **options).fit(X, Y, qid=QID)
    assert model.objective_ == pytest.approx(line.objective_, rel=1e-4)
    outside = 3 * X  # where curves go on straight
    difference = model.predict(outside) - line.predict(outside)
    assert np.ptp(difference) < 1e-3 * np.ptp(line.predict(outside))
    rough = plain_curves(smoothness=1e-2, **options).fit(X, Y, qid=QID)
    assert rough.objective_ < 0.9 * line.objective_


def test_a_certified_optimum_that_no_other_curves_undercut():
    model = plain_curves(C=0.1, max_bins=5, tol=1e-10).fit(X, Y, qid=QID)
    assert model.gap_ <= 1e-9 * model.objective_
    assert model.n_pairs_ == RankSVM().fit(X, Y, qid=QID).n_pairs_
    for solver in ("newton", "tron"):
        other = plain_curves(C=0.1, max_bins=5, tol=1e-8, solver=solver).fit(X, Y, qid=QID)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_missing_values_have_a_value_of_their_own():
    x = CURVED.copy()
    gone = np.random.default_rng(1).random(len(x)) < 0.3
    y = np.where(gone, 3.0, x[:, 1])  # what is missing is best
    x[gone, 0] = np.nan
    model = plain_curves().fit(x, y, qid=CURVED_QID)
    first = model.curves_[0]
    assert first.missing > first.values.max()
    seen = model.predict([[np.nan, 0.0, 0.0]]) - model.predict([[0.0, 0.0, 0.0]])
    assert_allclose(seen, first.missing - np.interp(0.0, first.knots, first.values))
    assert model.curves_[1].missing == 0.0  # none were missing: the average over the documents
    assert_allclose(model.predict([[0.0, np.nan, 0.0]]) - model.predict([[0.0, 0.0, 0.0]]),
                    -np.interp(0.0, *model.curves_[1][:2]), atol=1e-12)  # fmt: skip


GAPS = {
    "None in lists": lambda x: [[None if np.isnan(v) else v for v in row] for row in x.tolist()],
    "None among objects": lambda x: np.where(np.isnan(x), None, x),
    "a masked array": lambda x: np.ma.masked_invalid(x),
    "integers, masked": lambda x: np.ma.array(
        np.nan_to_num(x, nan=-9).astype(int), mask=np.isnan(x)
    ),
    "Int64 beside floats": lambda x: pd.DataFrame(
        {"a": pd.array(x[:, 0], dtype="Int64"), "b": x[:, 1]}
    ),
    "booleans beside Int64": lambda x: pd.DataFrame(
        {
            "a": pd.array(x[:, 0], dtype="Int64"),
            "b": pd.array([None if np.isnan(v) else bool(v) for v in x[:, 1]], dtype="boolean"),
        }
    ),
    "booleans alone": lambda x: pd.DataFrame(
        [[pd.NA if np.isnan(v) else bool(v) for v in row] for row in x], dtype="boolean"
    ),
}


@pytest.mark.parametrize("kind", GAPS)
def test_missing_values_of_any_kind_are_nan(kind):
    x = (X[:, :2] > 0).astype(float)
    x[::3, 0] = x[::5, 1] = np.nan
    given = GAPS[kind](x)
    model = plain_curves(max_bins=4).fit(x, Y, qid=QID)
    same = plain_curves(max_bins=4).fit(given, Y, qid=QID)
    expected = model.predict(x)
    assert_array_equal(same.predict(given), expected)
    plain = same.to_additive_model()
    assert_array_equal(plain.scores(given), expected)
    assert_array_equal(importance(plain, given, QID).spread, importance(plain, x, QID).spread)
    rows = given.to_numpy() if isinstance(given, pd.DataFrame) else given
    assert_array_equal(
        [reason.difference for reason in same.explain(rows[0], rows[1])],
        [reason.difference for reason in model.explain(x[0], x[1])],
    )
    pairs = [[0, 1], [2, 0]]
    listed = plain_curves().fit(given, pairs=pairs)
    assert listed.objective_ == plain_curves().fit(x, pairs=pairs).objective_
    with pytest.raises(ValueError, match=r"X\[0, [01]\] is (missing|masked|NaN)"):
        RankSVM().fit(given, Y, qid=QID)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"a": pd.array([2**60, None, 1], dtype="Int64"), "b": [0.5, 1.5, 2.5]}),
        np.ma.array([[2**60], [0], [1]], mask=[[0], [1], [0]]),
    ],
    ids=["Int64", "masked"],
)
def test_integers_beside_missing_values_are_not_rounded_in_silence(given):
    with pytest.raises(ValueError, match=r"X\[0, 0\] is 1152921504606846976"):
        plain_curves().fit(given, [1, 2, 3])


@pytest.mark.parametrize("scale", [None, "standard", "range", "query"])
def test_missing_values_and_scales(scale):
    x = X.copy()
    x[::5, 1] = np.nan
    plain_curves(scale=scale).fit(x, Y, qid=QID)
    x[:, 1] = np.nan
    model = plain_curves(scale=scale).fit(x, Y, qid=QID)
    assert model.curves_[1].values.tolist() == [0.0]


def test_infinity_is_refused():
    x = X.copy()
    x[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"X\[3, 1\] is infinity"):
        plain_curves().fit(x, Y, qid=QID)


def test_categories_by_name_and_number():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 4, 400).astype(float)
    y = np.array([2.0, 0.0, 3.0, 1.0])[kind.astype(int)] + 0.1 * CURVED[:, 0]
    frame = pd.DataFrame({"kind": kind, "other": CURVED[:, 0]})
    model = plain_curves(categorical_features=["kind"]).fit(frame, y, qid=CURVED_QID)
    curve = model.curves_[0]
    assert curve.categorical
    assert np.argsort(curve.values).tolist() == [1, 3, 0, 2]
    by_number = plain_curves(categorical_features=[0]).fit(frame.to_numpy(), y, qid=CURVED_QID)
    assert_array_equal(by_number.predict(frame.to_numpy()), model.predict(frame))
    unseen = frame.assign(kind=9.0)
    average = frame.assign(kind=np.nan)
    assert_array_equal(model.predict(unseen), model.predict(average))
    assert curve.missing == 0.0


@pytest.mark.parametrize(
    ("categorical", "sentence"),
    [
        (["no"], "categorical_features='no' .*'a'"),
        ([2], "categorical_features=2 .* 2 features"),
        ([0.5], r"categorical_features=\[0.5\]"),
        (3, "categorical_features=3"),
    ],
)
def test_categories_that_are_no_features(categorical, sentence):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    with pytest.raises(ValueError, match=sentence):
        plain_curves(categorical_features=categorical).fit(frame, Y, qid=QID)


def test_text_that_is_no_category_is_numbered_first():
    names = np.array(["de", "fr", "us"])[np.arange(len(Y)) % 3]
    frame = pd.DataFrame({"a": X[:, 0], "country": names})
    model = plain_curves(categorical_features=["country"])
    with pytest.raises(ValueError, match=r"'de'.*'country'.*Ordinal"):
        model.fit(frame, Y, qid=QID)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    frame[["country"]] = encoder.fit_transform(frame[["country"]])
    assert model.fit(frame, Y, qid=QID).curves_[1].knots.tolist() == [0.0, 1.0, 2.0]


def test_constant_features_and_features_of_two_values():
    x = np.c_[np.full(len(Y), 7.0), X[:, 0] > 0, X[:, 1]]
    model = plain_curves().fit(x, Y, qid=QID)
    assert model.curves_[0].knots.tolist() == [7.0]
    assert model.curves_[0].values.tolist() == [0.0]
    assert model.curves_[1].knots.tolist() == [0.0, 1.0]
    other = x.copy()
    other[:, 0] = -100.0
    assert_array_equal(model.predict(other), model.predict(x))


def test_constant_features_alone():
    model = plain_curves().fit(np.ones((len(Y), 2)), Y, qid=QID)
    assert not model.predict(np.ones((3, 2))).any()


def test_values_outside_the_range_go_on_straight():
    model = plain_curves(max_bins=4).fit(X, Y, qid=QID)
    curve = model.curves_[0]
    slope = np.diff(curve.values)[-1] / np.diff(curve.knots)[-1]
    at = np.tile(X[:1], (2, 1))
    at[:, 0] = curve.knots[-1] + [0.0, 10.0]
    assert_allclose(np.diff(model.predict(at)), 10.0 * slope)


@pytest.mark.parametrize("layout", [np.float32, sp.csr_array, "strided", "data"])
def test_layouts(layout):
    expected = plain_curves().fit(X, Y, qid=QID).predict(X)
    if layout == "data":
        data = RankingData(X, Y, QID)
        found = plain_curves().fit(data).predict(data)
    else:
        given = np.hstack([X, X])[:, :4] if layout == "strided" else sp.csr_array(X)
        given = X.astype(layout) if layout is np.float32 else given
        found = plain_curves().fit(given, Y, qid=QID).predict(given)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_wide_sparse_features_are_refused_before_they_are_made_dense(monkeypatch):
    """With 3 bytes a value, 8 for those of the sample and 1000 a feature: 0.32 GB."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    wide = sp.csr_array((np.ones(200), np.arange(200), np.arange(201)), shape=(200, 10**5))
    with pytest.raises(ValueError, match=r"200 × 100,000.* 0\.3 GB.* 0\.1 GB"):
        plain_curves().fit(wide, np.arange(200) % 3)


def test_input_is_not_changed():
    x = X.copy()
    x[0, 0] = np.nan
    before = x.copy()
    x.setflags(write=False)
    plain_curves(scale="query").fit(x, Y, qid=QID)
    assert_array_equal(x, before)


@pytest.mark.parametrize(
    "given",
    [
        {"sample_weight": np.linspace(0.1, 2.0, len(Y))},
        {"query_weight": np.linspace(0.1, 2.0, 20)},
        {"propensity": np.linspace(0.1, 1.0, len(Y))},
        {"pairs": [[0, 1], [2, 0]], "pair_weight": [1.0, 2.0]},
    ],
    ids=lambda given: next(iter(given)),
)
def test_weights_and_pairs_are_those_of_rank_svm(given):
    few = np.random.default_rng(0).integers(0, 2, size=X.shape).astype(float)
    options = {"C": 0.1, "scale": "standard", "tol": 1e-9}
    qid = np.sort(QID)
    line = RankSVM(**options).fit(few, Y, qid=qid, **given)
    model = plain_curves(max_bins=1, **options).fit(few, Y, qid=qid, **given)
    assert model.objective_ == pytest.approx(line.objective_, rel=1e-8)


def test_threads_do_not_change_the_bits():
    one, two = (plain_curves(n_jobs=n).fit(X, Y, qid=QID) for n in (1, 2))
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.objective_ == two.objective_


def test_explanations_sum_to_the_difference_of_scores():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = plain_curves().fit(frame, Y, qid=QID)
    reasons = model.explain(X[0], X[1])
    scores = model.predict(frame[:2])
    assert_allclose(sum(r.difference for r in reasons), scores[0] - scores[1])
    sizes = [abs(r.difference) for r in reasons]
    assert sizes == sorted(sizes, reverse=True)
    assert {r.name for r in reasons} == set("abcd")
    first = reasons[0]
    assert (first.preferred, first.other) == (X[0, first.feature], X[1, first.feature])


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_is_refused_by_name(infinity):
    model = plain_curves().fit(X, Y, qid=QID)
    there = X[:5].copy()
    there[3, 1] = infinity
    record = model.to_additive_model()
    for ask in (
        model.predict,
        model.rank,
        lambda rows: model.explain(rows[3], rows[0]),
        lambda rows: importance(record, rows),
    ):
        with pytest.raises(ValueError, match=r"X\[\d, 1\] is infinity.*NaN"):
            ask(there)


def test_flat_curves_are_flat_however_far_away():
    """There the way from the last knot overflows, in units of the last bin."""
    tiny = np.c_[X[:, 0], 1e-9 * X[:, 1]]
    model = plain_curves(group_l1=1e6).fit(tiny, Y, qid=QID)
    assert model.predict([[0.0, 1e300], [-1e300, 0.0]]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("scale", ["standard", None, "query"])
@pytest.mark.parametrize(
    ("factor", "size"), [(5e-324, "small"), (1e-200, "small"), (1e160, "large")]
)
def test_values_whose_squares_are_no_numbers(scale, factor, size):
    """Infinity is no variance, and zero is that of a constant."""
    extreme = np.c_[X[:, 0], np.round(3 * X[:, 1]) * factor]
    with pytest.raises(ValueError, match=rf"X\[:, 1\].*{size}"):
        plain_curves(scale=scale).fit(extreme, Y, qid=QID)


@pytest.mark.parametrize(
    "rows",
    [
        lambda frame: sp.csr_matrix(frame.to_numpy()),
        lambda frame: sp.csr_array(frame.to_numpy())[[0, 1]],
        lambda frame: frame.to_numpy().tolist(),
        lambda frame: [frame.iloc[0], frame.iloc[1]],
        lambda frame: [frame[:1], frame[1:2]],
        lambda frame: [frame.iloc[0].rename(str.upper).reset_index(drop=True), frame.iloc[1]],
    ],
    ids=["sparse", "sparse arrays", "lists", "series", "frames", "series without names"],
)
def test_explanations_of_documents_in_any_form(rows):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = plain_curves().fit(frame, Y, qid=QID)
    first, second = (rows(frame)[k] for k in (0, 1))
    assert model.explain(first, second) == model.explain(X[0], X[1])


def test_explanations_refuse_other_documents():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = plain_curves().fit(frame, Y, qid=QID)
    with pytest.raises(ValueError, match=r"feature 1 of other.*'d'.*'a'"):
        model.explain(frame.iloc[0], frame[list("dcba")].iloc[1])
    with pytest.raises(ValueError, match=r"feature 2 of preferred.*'c'.*'b'"):
        model.explain(frame[list("acbd")][:1], X[1])
    with pytest.raises(ValueError, match=r"preferred.* 2 rows"):
        model.explain(X[:2], X[1])


def test_other_features_are_refused():
    model = plain_curves().fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"max_bins": 0}, "max_bins=0 must be an integer from 1 to 254"),
        ({"max_bins": 255}, "max_bins=255 must be an integer from 1 to 254"),
        ({"smoothness": 0}, "smoothness=0 must be a finite number, more than 1e-12"),
        ({"smoothness": 1e-290}, "smoothness=1e-290 must be a finite number, more than 1e-12"),
        ({"categorical_features": np.array([True] * 9)}, "categorical_features=.* 9 entries"),
        ({"C": -1}, "C=-1 must be"),
    ],
)
def test_wrong_parameters(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        plain_curves(**parameters).fit(X, Y, qid=QID)


def test_an_unfinished_fit_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        plain_curves(solver="tron", max_iter=1, tol=1e-12).fit(X, Y, qid=QID)


def test_clones_and_routing():
    model = clone(plain_curves(max_bins=7, categorical_features=[1]))
    assert (model.max_bins, model.categorical_features) == (7, [1])


def test_ndcg_as_the_goal():
    """The rounds are those of RankSVM: with two knots a feature, on curves that are lines."""
    X, y, qid = make_ranking(40, 15, 4, noise=1.0, random_state=0)
    line = RankSVM(C=0.1, objective="ndcg@5", scale="standard", tol=1e-9).fit(X, y, qid=qid)
    model = plain_curves(C=0.1, objective="ndcg@5", max_bins=1, tol=1e-9).fit(X, y, qid=qid)
    assert model.n_rounds_ == line.n_rounds_ > 1
    assert model.objective_ == pytest.approx(line.objective_, rel=1e-4)  # places are rounded
    assert plain_curves().fit(X, y, qid=qid).n_rounds_ is None
    with pytest.raises(ValueError, match="objective='ndcg@5'"):
        model.fit(X, pairs=[[0, 1]])


@pytest.mark.parametrize("learned", [np.float32, np.float64])
@pytest.mark.parametrize("interactions", [0, 1])
def test_categories_are_known_in_another_precision(learned, interactions):
    """0.1 in float32 and in float64 are two numbers, and one category."""
    rng = np.random.default_rng(0)
    X = rng.choice([0.1, 0.2, 0.3, 1.0, 1e-3, 2 / 3, -7.7], size=(600, 2))
    y = (np.round(X[:, 0] * 10) + np.round(X[:, 1] * 10)) % 3
    model = AdditiveRankSVM(C=1, categorical_features=[0, 1], interactions=interactions)
    model.fit(X.astype(learned), y, qid=np.arange(600) // 10)
    assert len(model.interactions_) == interactions
    expected = model.predict(X.astype(learned))
    assert np.ptp(expected) > 0.1
    before = X.copy()
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.predict(X.astype(np.float32)), expected)
    np.testing.assert_array_equal(X, before)


def test_categories_that_differ_in_float64_only_stay_apart():
    near = np.nextafter(0.1, 1.0)
    X = np.tile([[0.1], [near], [1.0]], (40, 1))
    y = np.tile([0, 2, 1], 40)
    model = AdditiveRankSVM(categorical_features=[0]).fit(X, y, qid=np.arange(120) // 6)
    low, high, _, unknown, nan = model.predict([[0.1], [near], [1.0], [np.float32(0.1)], [np.nan]])
    assert low < high
    assert unknown == nan  # it could be either


def test_the_default_C_and_smoothness_follow_the_number_of_documents(tmp_path):
    X, y, qid = make_ranking(20, 10, 4, random_state=0)
    model = AdditiveRankSVM().fit(X, y, qid=qid)
    assert (model.C_, model.smoothness_) == (200 / (5 * 4), 200 ** (-1 / 3))
    same = AdditiveRankSVM(C=model.C_, smoothness=model.smoothness_).fit(X, y, qid=qid)
    assert_array_equal(model.predict(X), same.predict(X))
    model.save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert (loaded.C, loaded.C_) == (None, model.C_)
    assert (loaded.smoothness, loaded.smoothness_) == (None, model.smoothness_)
    # Queries without pairs do not count, and without a normalization C is divided by all pairs.
    tied = np.where(qid < 5, 0.0, y)
    model = AdditiveRankSVM().fit(X, tied, qid=qid)
    assert (model.C_, model.smoothness_) == (150 / (5 * 4), 150 ** (-1 / 3))
    total = AdditiveRankSVM(normalization="none").fit(X, y, qid=qid)
    assert total.C_ * total.n_pairs_ == pytest.approx(10.0)
    scores = AdditiveRankSVM(normalization="pairs").fit(X, y, qid=qid).predict(X)
    np.testing.assert_allclose(total.predict(X), scores, atol=1e-4)
    # Neither do documents in no listed pair, and what is given is used.
    assert AdditiveRankSVM().fit(X, pairs=[[0, 1], [3, 2]]).C_ == 4 / (5 * 4)
    given = AdditiveRankSVM(lam=0.25).fit(X, y, qid=qid)
    assert (given.C_, given.smoothness_) == (2.0, 200 ** (-1 / 3))
