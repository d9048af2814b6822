"""What is told of a fit that reads X again and again."""

import numpy as np
import pytest

from marginrank import RankingData, RankSVM, SparseRankSVM, make_ranking
from marginrank._utils.memory import private_memory
from marginrank.fit.stream_progress import StreamProgress, duration_text
from marginrank.models.fit_report import Iteration, iteration_text

TOL = 1e-6


def iteration(number, seconds, distance, fraction=1.0):
    return Iteration(
        iteration=number,
        seconds=seconds,
        objective=2.0,
        gap=1.0,
        estimate=2.0 * distance,
        gradient_norm=1.0,
        inner_iterations=3,
        sweeps=4.0 * number,
        fraction=fraction,
    )


def test_the_first_sweep_is_a_look_at_the_data():
    progress = StreamProgress(100, TOL)
    assert progress.status == "first pass over the data"
    progress.on_read(60, 6_000_000)
    assert progress.status == "first pass over the data  read 6 MB"
    assert progress.rows_of_sweep == 60
    progress.on_read(40, 4_000_000)
    assert progress.status == "train  read 10 MB"
    assert progress.rows_of_sweep == 0


def test_rows_bytes_sweeps_and_gap():
    progress = StreamProgress(100, TOL)
    for _ in range(3):
        progress.on_read(60, 3_000_000_000)
        progress.on_read(40, 0)  # in memory
    progress.on_iteration(iteration(1, 1.0, 1e-2))
    assert (progress.rows_read, progress.bytes_read) == (300, 9_000_000_000)
    assert (
        progress.status == "train  iteration 1  objective 2  gap 1.0e+00  passes 4.0  read 9.0 GB"
    )


def test_a_sweep_begins_with_an_iteration_even_if_a_long_query_was_read_twice():
    progress = StreamProgress(100, TOL)
    progress.on_read(60, 1)
    progress.on_read(60, 1)
    progress.on_read(60, 1)
    assert progress.rows_of_sweep == 60
    progress.on_iteration(iteration(1, 1.0, 1e-2))
    assert progress.rows_of_sweep == 0


def test_time_left_follows_the_distance_to_the_optimum():
    progress = StreamProgress(100, TOL)
    progress.on_iteration(iteration(1, 1.0, 1e-1, fraction=0.1))
    progress.on_iteration(iteration(2, 10.0, 1e-2))
    assert progress.seconds_left is None
    progress.on_iteration(iteration(3, 30.0, 1e-3))  # a factor of 10 in 20 s
    assert progress.seconds_left == pytest.approx(60.0)
    assert progress.status.endswith("about 60 s left")
    progress.on_iteration(iteration(4, 40.0, 1e-5))  # of 1000 in 30 s
    assert progress.seconds_left == pytest.approx(10.0)


@pytest.mark.parametrize(
    "distances", [(1e-3, 1e-3), (1e-4, 1e-3), (np.inf, 1e-3), (1e-3, 0.0), (1e-3, 1e-7)]
)
def test_no_time_is_told_where_there_is_none_to_tell(distances):
    progress = StreamProgress(100, TOL)
    for number, distance in enumerate(distances, 1):
        progress.on_iteration(iteration(number, float(number), distance)._replace(gap=np.inf))
    assert progress.seconds_left is None
    assert "left" not in progress.status


def test_an_objective_of_zero_has_no_relative_distance():
    progress = StreamProgress(100, TOL)
    for number in (1, 2):
        progress.on_iteration(iteration(number, 1.0, 0.1**number)._replace(objective=0.0))
    assert progress.seconds_left is None


def test_parts_and_workers():
    workers = [2, 3]
    progress = StreamProgress(100, TOL, n_parts=4, count_workers=lambda: workers[0])
    progress.on_read(25, 0)
    assert progress.status == "first pass over the data  parts 1 of 4  workers 2"
    for _ in range(3):
        progress.on_read(25, 0)
    workers.pop(0)
    progress.on_iteration(iteration(1, 1.0, 1e-2))
    assert progress.status.endswith("passes 4.0  parts 4  workers 3")


def test_a_printed_iteration(capsys):
    progress = StreamProgress(1000, TOL, n_parts=2, count_workers=lambda: 5)
    progress.on_read(1000, 1_500_000_000)
    line = iteration(1, 1.0, 1e-2)
    progress.print_iteration(line)
    expected = f"{iteration_text(line)}  rows 1,000  read 1.5 GB  parts 2  workers 5\n"
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("learner", [RankSVM(C=0.1), SparseRankSVM(radius=1.0)], ids=repr)
def test_estimators_print_what_was_read(learner, tmp_path, capsys):
    X, y, qid = make_ranking(100, 10, 6, dtype=np.float32, random_state=0)
    RankingData(X, y, qid).save(tmp_path / "s")
    learner.set_params(verbose=1).fit(tmp_path / "s", memory_limit=private_memory() + 400_000_000)
    *_, last = capsys.readouterr().out.splitlines()
    rows = int(last.split("  rows ")[1].split()[0].replace(",", ""))
    assert rows >= 1000 * (1 + learner.history_[-1].sweeps)  # a look at the data, and sweeps
    assert "  read 0 MB" in last
    learner.fit(tmp_path / "s")
    assert "rows" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (99.0, "99 s"), (100.0, "2 min"), (5900.0, "98 min"), (6000.0, "1.7 h")],
)
def test_durations(seconds, text):
    assert duration_text(seconds) == text
