"""Which parts of a sweep are done."""

from concurrent.futures import Future

from marginrank import RankingData, make_ranking
from marginrank.dask import DaskRankSVM
from marginrank.dask.executor import SweepWatch


def test_a_part_is_told_of_once_when_it_is_done_or_at_the_end():
    told = []
    watch = SweepWatch(lambda *read: told.append(read), [[10, 20], [30], [40]])
    futures = [Future() for _ in range(3)]
    watch.follow(futures)
    assert told == []
    futures[1].set_result(None)
    assert told == [(30, 0)]
    futures[0].set_exception(OSError("lost"))
    assert told == [(30, 0), (10, 0), (20, 0)]
    watch.end()
    assert told == [(30, 0), (10, 0), (20, 0), (40, 0)]
    futures[2].set_result(None)  # a callback that comes late
    assert len(told) == 4


def test_rows_are_told_of_while_workers_are_busy(client):
    """The second bundle waits for the first one to be told of."""
    from distributed import Event

    told = []

    def on_read(n_rows, n_bytes):
        told.append(n_rows)
        Event("first is told of", client=client).set()

    watch = SweepWatch(on_read, [[10], [20]])
    futures = [client.submit(int, 0, pure=False), client.submit(_wait, pure=False)]
    watch.follow(futures)
    assert futures[1].result(timeout=300) is True
    watch.end()
    assert sorted(told) == [10, 20]


def _wait():
    from distributed import Event

    return Event("first is told of").wait(timeout=200)


def test_a_verbose_fit_prints_rows_parts_and_workers(client, tmp_path, capsys):
    X, y, qid = make_ranking(100, 10, 6, random_state=0)
    for k, name in enumerate("ab"):
        rows = qid % 2 == k
        RankingData(X[rows], y[rows], qid[rows]).save(tmp_path / name)
    model = DaskRankSVM(C=0.1, verbose=1)
    model.fit([tmp_path / "a", tmp_path / "b"], client=client)
    *_, last = capsys.readouterr().out.splitlines()
    rows = round(1000 * (1 + model.history_[-1].sweeps))
    assert f"  rows {rows:,}  parts 2  workers 2" in last
