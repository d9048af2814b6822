import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from marginrank import RankingData, make_ranking
from marginrank._utils.alignment import aligned
from marginrank.objective.level_pairs import LevelPairs


def misaligned(array):
    """Return the array as a view that begins at an odd byte, as arrays in messages do."""
    message = bytearray(array.nbytes + 1)
    view = np.frombuffer(message, dtype=array.dtype, offset=1).reshape(array.shape)
    view[...] = array
    return view


def unpickled_from_message(value):
    """Return a copy whose arrays are views of odd addresses, where pickle allows it."""
    buffers = []
    text = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    arrays = [misaligned(np.frombuffer(buffer.raw(), dtype=np.uint8)) for buffer in buffers]
    return pickle.loads(text, buffers=arrays)


def arrays_of(value):
    for one in vars(value).values():
        if isinstance(one, np.ndarray):
            yield one
        elif sp.issparse(one):
            yield from (one.data, one.indices, one.indptr)


def test_only_misaligned_arrays_are_copied():
    array = np.arange(5.0)
    assert aligned(array) is array
    odd = np.frombuffer(bytearray(41), dtype=np.float64, offset=1)
    assert aligned(odd).flags.aligned
    assert aligned("text") == "text"


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_data_from_a_message_are_aligned(layout):
    X, y, qid = make_ranking(5, 6, 3, random_state=0)
    data = RankingData(layout(X), y, qid)
    again = unpickled_from_message(data)
    pairs = LevelPairs.from_data(data, threads=1)
    for part in (again, again.queries, unpickled_from_message(pairs)):
        found = list(arrays_of(part))
        assert found
        assert all(array.flags.aligned for array in found)
    np.testing.assert_array_equal(again.y, data.y)


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_columns_at_odd_addresses_are_copied(name):
    X, y, qid = make_ranking(5, 6, 3, random_state=0)
    columns = {"y": y.astype(np.float64), "sample_weight": np.ones(len(y))}
    columns[name] = misaligned(columns[name])
    data = RankingData(X, qid=qid, **columns)
    assert not columns[name].flags.aligned
    assert getattr(data, name).flags.aligned
