"""ClickLog: documents that were shown to users, with their positions and clicks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginrank._utils.types import Floats, Integers
from marginrank._utils.user_warnings import warn_caller
from marginrank.clicks.features import FeatureIndex
from marginrank.data.positions import whole_positions
from marginrank.data.ranking_data import RankingData


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Click log: one entry per document that was shown in a session, session by session.

    A session is one list of results shown to a user. Create a log with :meth:`of`,
    :func:`load_clicks` or :func:`make_clicks`.

    Attributes
    ----------
    session : ndarray of int64
        Number of the session: 0, 1, ….
    query, document : ndarray
        Ids of the query and of the document. In simulated logs, `document` is the row in X.
    position : ndarray of int64
        Position at which the document was shown, 1 for the top.
    click : ndarray of float64
        1 if the document was clicked, else 0.
    propensity : ndarray of float64, or None
        Probability that a user examines the position, if it is known; more than 0, at most 1.

    Examples
    --------
    >>> from marginrank import ClickLog
    >>> log = ClickLog.of(session=[0, 0], query=["a", "a"], document=["x", "y"], position=[1, 2],
    ...                   click=[0, 1])
    >>> log.n_sessions, log.click.tolist()
    (1, [0.0, 1.0])
    """

    session: Integers
    query: NDArray[Any]
    document: NDArray[Any]
    position: Integers
    click: Floats
    propensity: Floats | None = None

    @classmethod
    def of(
        cls,
        *,
        session: Any,
        query: Any,
        document: Any,
        position: Any,
        click: Any,
        propensity: Any = None,
    ) -> ClickLog:
        """Create a log from one array per column; raise ValueError if a value is invalid."""
        _, numbers = np.unique(np.asarray(session), return_inverse=True)
        log = cls(
            numbers.ravel().astype(np.int64),
            np.asarray(query),
            np.asarray(document),
            whole_positions(position, numbers.size),
            np.asarray(click, dtype=np.float64),
            None if propensity is None else np.asarray(propensity, dtype=np.float64),
        )
        log._check()
        return log

    @property
    def n_sessions(self) -> int:
        """Number of sessions."""
        return int(self.session.max(initial=-1)) + 1

    def join(self, features: RankingData, *, skip_bad: bool = False) -> RankingData:
        """Return the documents of the log with their features, as training data for click labels.

        Parameters
        ----------
        features : RankingData
            Features of the documents of each query, with document ids as `comments`. Its labels are
            not used.
        skip_bad : bool, default=False
            Skip documents without features and warn with their number, instead of raising
            ValueError.

        Returns
        -------
        RankingData
            One query per session. Without propensities in the log, the data have positions, and
            :meth:`RankSVM.fit` estimates one effect per position. With propensities, they have
            costs instead, the inverse propensities, so that position bias is corrected once; two
            clicked documents of a session are not compared.

        Examples
        --------
        >>> from marginrank import ClickLog, RankingData, RankSVM
        >>> features = RankingData([[0.5], [2.0]], [0, 0], ["q", "q"], comments=["x", "y"])
        >>> log = ClickLog.of(session=[0, 0], query=["q", "q"], document=["x", "y"],
        ...                   position=[1, 2], click=[0, 1])
        >>> RankSVM().fit(log.join(features)).position_effect_.shape
        (2,)
        """
        index = FeatureIndex(features)
        ids = [
            (str(query), str(document))
            for query, document in zip(self.query.tolist(), self.document.tolist(), strict=True)
        ]
        found = [index.find(*key) for key in ids]
        missing = [at for at, row in enumerate(found) if row is None]
        if missing:
            what = f"row {missing[0]} of the log: {index.without_features(*ids[missing[0]])}"
            if not skip_bad:
                raise ValueError(f"{what}. Add features, or pass skip_bad=True.")
            warn_caller(
                f"skipped {len(missing)} documents without features; the first is in {what}."
            )
        kept = [at for at, row in enumerate(found) if row is not None]
        if not kept:
            raise ValueError(
                "no document of the log has features; use the same query and document ids in both."
            )
        return RankingData(
            features.X[[row for row in found if row is not None]],
            self.click[kept],
            self.session[kept],
            cost=None if self.propensity is None else 1.0 / self.propensity[kept],
            position=self.position[kept] if self.propensity is None else None,
            feature_names=features.feature_names,
            comments=[ids[at][1] for at in kept],
        )

    def _check(self) -> None:
        shown = {"query": self.query, "document": self.document, "click": self.click}
        given = {} if self.propensity is None else {"propensity": self.propensity}
        for name, shape in {name: some.shape for name, some in (shown | given).items()}.items():
            if shape != self.session.shape:
                raise ValueError(
                    f"{name} has shape {shape} and needs {self.session.size} entries, one per "
                    "document that was shown."
                )
        bad = ~np.isin(self.click, (0.0, 1.0))
        if bad.any():
            at = int(np.argmax(bad))
            raise ValueError(f"click[{at}] is {self.click[at]}; clicks are 0 or 1.")
        if self.propensity is not None:
            _check_propensities(self.propensity)
        order = np.lexsort((self.position, self.session))
        same = (np.diff(self.session[order]) == 0) & (np.diff(self.position[order]) == 0)
        if same.any():
            at = order[int(np.argmax(same)) + 1]
            raise ValueError(
                f"position[{at}] is {self.position[at]}, but another document of the session is "
                "there already; give each document of a session its own position."
            )


def _check_propensities(propensity: Floats) -> None:
    """Raise ValueError unless all propensities are probabilities above 0."""
    bad = ~((propensity > 0.0) & (propensity <= 1.0))
    if bad.any():
        at = int(np.argmax(bad))
        raise ValueError(
            f"propensity[{at}] is {propensity[at]:g}; propensities are above 0 and at most 1."
        )
