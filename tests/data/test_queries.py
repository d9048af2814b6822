"""The grouped order of documents, and the ways into it and back."""

import numpy as np
import pytest

from marginrank import RankingData
from marginrank.data.queries import Documents, group_rows

QID = ["b", "a", "b", "c", "a", "b"]
ROWS = [0, 2, 5, 1, 4, 3]


@pytest.fixture
def documents():
    return group_rows(6, QID, None).documents


def test_documents_are_query_by_query_and_then_by_row(documents):
    assert documents.rows.tolist() == ROWS
    assert documents.sizes.tolist() == [3, 2, 1]
    assert documents.query_of_document.tolist() == [0, 0, 0, 1, 1, 2]
    assert [documents.row(k) for k in range(6)] == ROWS


@pytest.mark.parametrize(
    "values",
    [np.arange(6.0), np.arange(6), np.arange(12.0).reshape(6, 2), np.array(list("uvwxyz"))],
    ids=["floats", "integers", "columns", "texts"],
)
def test_into_the_grouped_order_and_back(documents, values):
    grouped = documents.grouped(values)
    np.testing.assert_array_equal(grouped, values[ROWS])
    back = documents.by_row(grouped)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


def test_nothing_is_moved_where_both_orders_are_the_same():
    documents = Documents(np.array([0, 2, 6]), None)
    values = np.arange(6.0)
    assert documents.grouped(values) is values
    assert documents.by_row(values) is values
    assert documents.row(4) == 4


def test_what_is_absent_stays_absent(documents):
    assert documents.grouped(None) is None


def test_some_documents_take_the_values_of_their_rows(documents):
    kept = documents.keep(np.array([1, 4, 5]), np.array([0, 1, 2]))
    assert kept.grouped(np.arange(6)).tolist() == [2, 4, 3]


def test_queries_of_data_know_the_grouped_order():
    data = RankingData(np.zeros((6, 1)), [0, 3, 2, 1, 5, 1], QID)
    assert data.queries.level.tolist() == [0, 2, 1, 0, 1, 0]
    assert data.queries.grouped(data.y).tolist() == [0, 2, 1, 3, 5, 1]
    assert data.queries.by_row(data.queries.query_of_document).tolist() == data.qid.tolist()
