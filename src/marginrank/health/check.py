"""The function `check_data`, which finds defects of ranking data and of a train/test split."""

from marginrank.data import RankingData
from marginrank.data.held_out import check_same_features
from marginrank.health.drift import check_drift
from marginrank.health.duplicates import check_duplicates
from marginrank.health.features import check_features
from marginrank.health.finding import SEVERITIES, Finding
from marginrank.health.leaks import check_leaks
from marginrank.health.overlap import check_overlap
from marginrank.health.queries import check_queries
from marginrank.health.summary import summarize


def check_data(train: RankingData, test: RankingData | None = None) -> list[Finding]:
    """Find defects of ranking data: leaks, duplicates, drift, constant features, odd queries.

    ==========================  =========  =======================================================
    code                        severity   finding
    ==========================  =========  =======================================================
    ``one-label``               error      all labels are equal
    ``no-pairs``                error      no query has documents with different labels
    ``label-leak``              error      one feature alone orders 99 % of the pairs
    ``shared-queries``          error      a query is in train and test
    ``shared-documents``        error      documents with the same features are in train and test
    ``imbalanced-labels``       warning    more than 99 % of the labels are equal
    ``split-queries``           warning    the documents of a query are not contiguous
    ``group-sizes-as-qid``      warning    query ids look like group sizes
    ``constant-feature``        warning    a feature has the same value in all documents
    ``duplicate-feature``       warning    a feature equals an earlier one
    ``feature-scales``          warning    standard deviations differ by more than a factor of 1000
    ``feature-drift``           warning    a feature is distributed differently in train and test
    ``label-drift``             warning    labels are distributed differently in train and test
    ``query-constant-feature``  note       a feature has one value per query
    ``correlated-feature``      note       a correlation is above 0.999 or below −0.999
    ``queries-without-pairs``   note       10 % of the queries have one label; a warning from 50 %
    ==========================  =========  =======================================================

    Parameters
    ----------
    train : RankingData
        The training data, dense or sparse. Missing values are allowed.
    test : RankingData, optional
        Test data with the same features.

    Returns
    -------
    list of Finding
        Errors first, then warnings, then notes; empty if nothing was found. At most 20 features
        are listed per code, and one more finding counts the others.

    Notes
    -----
    X is read in blocks of rows, so it need not fit in memory. Leaks and drift are estimated on a
    random sample of queries with at most 20,000 documents of each data set (fewer, but at least
    500, if there are many features); everything else is exact. Drift is checked if both data sets
    have at least ten queries.

    Query ids 0, 1, 2, … or 1, 2, 3, … in both data sets are not compared, because each data set may
    number its own queries.

    Examples
    --------
    >>> import numpy as np
    >>> from marginrank import RankingData, check_data, make_ranking
    >>> X, y, qid = make_ranking(n_queries=40, n_features=5, random_state=0)
    >>> check_data(RankingData(X, y, qid))
    []
    >>> leaking = RankingData(np.column_stack([X, y, np.ones(len(y))]), y, qid)
    >>> for finding in check_data(leaking):
    ...     print(finding.severity, finding.code, finding.place)
    error label-leak f6
    warning constant-feature f7
    """
    files = {"": train} if test is None else {"train": train, "test": test}
    for name, data in files.items():
        if not isinstance(data, RankingData):
            raise TypeError(
                f"{name or 'train'} is of type {type(data).__name__}; pass a RankingData."
            )
    check_same_features(test, train.n_features, train.feature_names, what="test")
    summary = summarize(train)
    found = [finding for name, data in files.items() for finding in check_queries(data, name)]
    found += check_leaks(train)
    if test is not None:
        found += [*check_overlap(train, test), *check_drift(train, test)]
    found += [*check_features(train, summary), *check_duplicates(train, summary)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
