"""Folds: whole queries, equal in number, the same for any order of the rows."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.tables import each
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

from marginrank import RankingData, make_ranking
from marginrank.selection.folds import (
    Fold,
    check_folds,
    cost_by_label,
    folds_of,
    has_pairs,
    over_folds,
    query_folds,
    rows_of,
)

X, Y, QID = make_ranking(23, (2, 30), 3, random_state=0)
DATA = RankingData(X, Y, QID)


def ids_by_fold(data, folds):
    """Return the ids of the queries that each fold tests."""
    return [set(data.query_ids[data.qid[fold.test]].tolist()) for fold in folds]


@pytest.mark.parametrize("n_folds", [2, 5, 23])
def test_every_document_is_tested_once_and_learned_from_otherwise(n_folds):
    folds = query_folds(DATA, n_folds)
    assert [fold.number for fold in folds] == list(range(1, n_folds + 1))
    np.testing.assert_array_equal(
        np.sort(np.concatenate([fold.test for fold in folds])), np.arange(len(Y))
    )
    for fold in folds:
        both = np.concatenate([fold.train, fold.test])
        np.testing.assert_array_equal(np.sort(both), np.arange(len(Y)))
        assert not set(QID[fold.train]) & set(QID[fold.test])
        assert (np.diff(fold.train) > 0).all()
        assert (np.diff(fold.test) > 0).all()


@each("seed", range(5))
def test_folds_are_equal_in_queries_and_about_equal_in_documents(seed):
    folds = query_folds(DATA, 5, seed=seed)
    n_queries = [np.unique(QID[fold.test]).size for fold in folds]
    assert max(n_queries) - min(n_queries) == 1
    n_documents = [fold.test.size for fold in folds]
    assert max(n_documents) - min(n_documents) <= np.bincount(QID).max()


def test_a_giant_query_is_not_a_fold_of_its_own():
    sizes = [1000] + [2] * 9
    data = RankingData(np.zeros((1018, 1)), np.arange(1018), group=sizes)
    assert [len(ids) for ids in ids_by_fold(data, query_folds(data, 5))] == [2] * 5


def mixed(q):
    """Return an id of one of the types that dictionaries take."""
    return [q, f"query {q}", (q, "x"), q + 0.5, f"b{q}".encode(), (str(q), 1)][q % 6]


@pytest.mark.parametrize("name", [int, str, float, mixed], ids=lambda name: name.__name__)
def test_folds_do_not_depend_on_the_order_of_the_rows(name):
    ids = [name(q) for q in QID.tolist()]
    data = RankingData(X, Y, ids)
    expected = ids_by_fold(data, query_folds(data, 4, seed=3))
    for k in range(3):
        order = np.random.default_rng(k).permutation(len(Y)).tolist()
        permuted = RankingData(X[order], Y[order], [ids[row] for row in order])
        assert permuted.query_ids.tolist() != data.query_ids.tolist()
        assert ids_by_fold(permuted, query_folds(permuted, 4, seed=3)) == expected


def test_the_same_seed_gives_the_same_folds_and_another_seed_others():
    ids = ids_by_fold(DATA, query_folds(DATA, 4))
    assert ids_by_fold(DATA, query_folds(DATA, 4, seed=0)) == ids
    assert ids_by_fold(DATA, query_folds(DATA, 4, seed=1)) != ids
    sizes = np.arange(2, 22)  # no two queries of one size
    data = RankingData(np.zeros((sizes.sum(), 1)), np.arange(sizes.sum()), group=sizes)
    assert ids_by_fold(data, query_folds(data)) != ids_by_fold(data, query_folds(data, seed=1))


def test_the_documents_of_a_single_query_are_divided():
    data = RankingData(X[:13], np.arange(13))
    folds = folds_of(data, 4)
    assert sorted(fold.test.size for fold in folds) == [3, 3, 3, 4]
    np.testing.assert_array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(13))
    others = folds_of(data, 4, seed=1)
    assert any(not np.array_equal(f.test, g.test) for f, g in zip(folds, others, strict=True))
    assert [fold.test.size for fold in folds_of(data, KFold(2))] == [7, 6]


@pytest.mark.parametrize(
    ("data", "n_folds", "message"),
    [
        (DATA, 24, "24 folds need as many queries, and there are 23"),
        (
            RankingData(X[:3], [0, 1, 2]),
            4,
            "4 folds need as many documents, and the only query has 3",
        ),
        (DATA, 1, "n_folds=1 must be an integer of at least 2"),
        (DATA, 2.5, "n_folds=2.5 must be"),
    ],
)
def test_wrong_numbers_of_folds_are_refused(data, n_folds, message):
    with pytest.raises(ValueError, match=message):
        query_folds(data, n_folds)


def test_splitters_and_rows_are_folds_too():
    splits = list(GroupKFold(3).split(X, Y, QID))
    for cv in (GroupKFold(3), splits, iter(splits), [[a.tolist(), b[::-1]] for a, b in splits]):
        folds = folds_of(DATA, cv)
        assert [fold.number for fold in folds] == [1, 2, 3]
        for fold, (train, test) in zip(folds, splits, strict=True):
            np.testing.assert_array_equal(fold.train, train)
            np.testing.assert_array_equal(fold.test, test)


def test_splitters_get_groups_that_do_not_depend_on_the_order_of_the_rows():
    ids = [mixed(q) for q in QID.tolist()]
    order = np.random.default_rng(0).permutation(len(Y)).tolist()
    data = RankingData(X, Y, ids)
    permuted = RankingData(X[order], Y[order], [ids[row] for row in order])
    cv = GroupShuffleSplit(3, random_state=0)
    assert ids_by_fold(permuted, folds_of(permuted, cv)) == ids_by_fold(data, folds_of(data, cv))


FIRST, REST = np.flatnonzero(QID == 0), np.flatnonzero(QID != 0)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "cv=1 must be an integer of at least 2"),
        (True, "cv=True must be"),
        ("kfold", "cv='kfold' must be a number of folds, a splitter"),
        (None, "cv=None must be a number of folds, a splitter"),
        ([], "cv has no folds"),
        ([REST], "cv .*train, test.*fold 1"),
        ([(REST, FIRST), (REST * 1.0, FIRST)], "cv .*row numbers.* fold 2"),
        ([(REST, QID == 0)], "cv .*row numbers.* fold 1"),
        ([(REST, [len(Y)])], f"cv has row {len(Y)} in fold 1, "),
        ([(REST, [-1])], "cv has row -1 in fold 1"),
        ([(REST, [0, 1, 0])], "cv has row 0 twice .* fold 1"),
        ([(REST, [])], "fold 1 has no rows to test"),
        ([(REST, FIRST), ([], FIRST)], "fold 2 has no rows to train"),
        ([(np.arange(len(Y)), FIRST)], "query 0 is in the training rows and in the test rows"),
    ],
)
def test_wrong_folds_are_refused_by_what_is_wrong(cv, message):
    with pytest.raises(ValueError, match=message):
        folds_of(DATA, cv)


def test_a_shared_query_is_named_by_its_id():
    ids = np.array([f"query {q}" for q in QID])
    data = RankingData(X, Y, ids)
    with pytest.raises(ValueError, match=r"query query 5 is in .* of fold 7"):
        check_folds(data, [Fold(7, np.flatnonzero(QID == 5)[:1], np.flatnonzero(QID == 5)[1:])])


def test_a_document_of_the_only_query_is_not_in_both_parts():
    data = RankingData(X[:4], np.arange(4))
    with pytest.raises(ValueError, match="row 2 is in the training rows and in the test rows"):
        folds_of(data, [([0, 1, 2], [2, 3])])


def test_training_rows_without_a_pair_are_refused():
    labels = np.where(QID == 3, Y, QID)  # labels differ in one query only
    assert np.unique(labels[QID == 3]).size > 1
    data = RankingData(X, labels, QID)
    folds = query_folds(data, 4)
    number = next(fold.number for fold in folds if 3 in QID[fold.test])
    with pytest.raises(ValueError, match=f"fold {number} has no pair to learn from"):
        folds_of(data, 4)


def test_rows_keep_all_that_belongs_to_them():
    ids = np.array([f"query {q}" for q in QID])
    weights, by_query = np.random.default_rng(0).uniform(size=(2, len(Y)))
    by_query = by_query[:23]
    names = ["a", "b", "c"]
    data = RankingData(X, Y, ids, sample_weight=weights, query_weight=by_query, feature_names=names)
    rows = np.flatnonzero(np.isin(QID, [4, 9]))
    some = rows_of(data, rows, n_jobs=1)
    np.testing.assert_array_equal(some.X, X[rows])
    np.testing.assert_array_equal(some.y, Y[rows])
    assert some.query_ids.tolist() == ["query 4", "query 9"]
    np.testing.assert_array_equal(some.sample_weight, weights[rows])
    numbers = data.query_ids.tolist()
    np.testing.assert_array_equal(
        some.query_weight, by_query[[numbers.index("query 4"), numbers.index("query 9")]]
    )
    assert some.feature_names == names


def test_costs_by_label():
    cost = cost_by_label([[0, 0, 0], [1, 0, 0], [2, 3, 0]], np.array([5.0, 1.0, 2.0, 1.0]))
    assert [cost(2.0, 1.0), cost(5.0, 1.0), cost(5.0, 2.0)] == [1, 2, 3]
    assert cost_by_label("gain", Y) == "gain"
    assert cost_by_label(None, Y) is None


def test_means_over_folds():
    scores = np.array([[0.5, 0.7, np.nan, 0.9], [0.1, 0.1, np.nan, 0.1]])
    with pytest.warns(UserWarning, match="auc .*fold 3 of 4"):
        mean, error = over_folds(scores, "auc")
    np.testing.assert_allclose(mean, [0.7, 0.1])
    np.testing.assert_allclose(error, [0.2 / np.sqrt(3), 0.0], atol=1e-15)
    with pytest.warns(UserWarning, match="auc .*folds 3, 5 of 5"):
        over_folds(np.append(scores[0], np.nan), "auc")
    with pytest.raises(ValueError, match=r"auc .*every fold"):
        over_folds(scores[:, [2]], "auc")
    assert np.isnan(over_folds(np.array([0.5]), "auc").error)


def test_folds_do_without_scikit_learn():
    code = "import sys, marginrank.selection.folds; sys.exit('sklearn' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_some_rows_are_divided_as_if_there_were_no_others():
    X, y, qid = make_ranking(20, (3, 9), 2, random_state=0)
    data = RankingData(X, y, qid)
    rows = np.flatnonzero(qid % 3 > 0)
    copied = query_folds(rows_of(data, rows), 4, seed=1)
    for fold, alone in zip(query_folds(data, 4, seed=1, rows=rows), copied, strict=True):
        np.testing.assert_array_equal(fold.train, rows[alone.train])
        np.testing.assert_array_equal(fold.test, rows[alone.test])
    with pytest.raises(ValueError, match="14 folds need as many queries, and there are 13"):
        query_folds(data, 14, rows=rows)


def test_some_rows_of_a_single_query_are_divided():
    data = RankingData(np.zeros((9, 1)), np.arange(9))
    rows = np.array([1, 2, 5, 7])
    folds = query_folds(data, 2, rows=rows)
    np.testing.assert_array_equal(np.sort(np.concatenate([f.test for f in folds])), rows)
    with pytest.raises(ValueError, match="the only query has 4 sample"):
        query_folds(data, 5, rows=rows)


def test_pairs_are_of_one_query_and_different_labels():
    assert has_pairs(np.array([1, 0, 0]), np.array([0, 1, 0]))
    assert not has_pairs(np.array([1, 0, 1]), np.array([0, 1, 0]))


def test_a_fold_that_is_there_twice_is_refused():
    folds = [(fold.train, fold.test) for fold in query_folds(DATA, 3)]
    with pytest.raises(ValueError, match="fold 4 is the same as fold 2"):
        folds_of(DATA, [*folds, folds[1]])
