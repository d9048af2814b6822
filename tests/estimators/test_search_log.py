"""What a search prints with verbose=1."""

import re

import pytest

from marginrank import AdditiveRankSVMCV, RankSVMCV, SparseRankSVMCV, make_ranking

X, Y, QID = make_ranking(30, 10, 5, random_state=0)
FIT = re.compile(r"fit +(\d+) +[\d.]+ s  ndcg@10 (0\.\d{4}) on (\d) of (\d) folds  C=(\S+?)(,.*)?$")


def fits_in(printed):
    """Return the number, mean, folds done, folds, C and other parameters of each fit."""
    return [found.groups() for found in map(FIT.match, printed.splitlines()) if found]


@pytest.mark.parametrize(
    ("search", "n_fits"),
    [
        (RankSVMCV(Cs=[0.01, 0.1], cv=3, verbose=1), 6),
        (SparseRankSVMCV(Cs=[1, 10], cv=3, verbose=1), 6),
        (AdditiveRankSVMCV(Cs=[1, 10], smoothness=[1, 10], cv=3, verbose=1), 12),
    ],
    ids=["linear", "sparse", "additive"],
)
def test_a_line_per_fit_with_the_mean_so_far(search, n_fits, capsys):
    search.fit(X, Y, qid=QID)
    fits = fits_in(capsys.readouterr().out)
    assert [int(number) for number, *_ in fits] == list(range(1, n_fits + 1))
    complete = [float(mean) for _, mean, done, folds, *_ in fits if done == folds]
    assert len(complete) == n_fits / 3
    assert max(complete) == pytest.approx(search.best_score_, abs=6e-5)


def test_parameters_that_vary_are_named(capsys):
    RankSVMCV(Cs=[0.01], cv=2, scale=["none", "standard"], verbose=1, refit=False).fit(
        X, Y, qid=QID
    )
    others = [fit[-1] for fit in fits_in(capsys.readouterr().out)]
    assert others == [", scale=none"] * 2 + [", scale=standard"] * 2


@pytest.mark.parametrize("search", [RankSVMCV, SparseRankSVMCV, AdditiveRankSVMCV])
def test_nothing_is_printed_by_default(search, capsys):
    search(n_points=2, cv=2).fit(X, Y, qid=QID)
    assert capsys.readouterr().out == ""
