"""Simulated clicks on judged documents, for tests before click logs exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginrank._utils.parameters import check_choice, check_integer, check_number, check_share
from marginrank._utils.types import Floats, Integers
from marginrank.clicks.log import ClickLog
from marginrank.data.queries import group_rows
from marginrank.data.validation import check_labels, check_vector

CLICK_MODELS = ("position", "cascade", "trust")
# At position k, examined documents that are unattractive (or attractive) are clicked with
# probability ε⁻ = 0.65 / k (or ε⁺ = 1 − 0.01 (k − 1)): the model of Agarwal et al. (2019).
TRUSTED, SEEN_LESS = 0.65, 0.01


def make_clicks(
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    n_sessions: int = 1000,
    shown: int = 10,
    model: str = "position",
    eta: float = 1.0,
    noise: float = 0.1,
    temperature: float = 0.0,
    random_state: Any = 0,
) -> ClickLog:
    """Return a simulated click log for relevance judgments, with position bias and noise.

    For each session, a query is drawn at random, the top of its ranking is shown, and clicks are
    simulated.

    Parameters
    ----------
    y : array-like of shape (n_documents,)
        Relevance labels, zero or more. A document is attractive with the probability
        noise + (1 − noise) (2^y − 1) / (2^max(y) − 1), as in Joachims et al. (2017).
    qid : array-like of shape (n_documents,), optional
        Query of each document; by default, all documents are of one query.
    scores : array-like of shape (n_documents,), optional
        Scores of the ranking that is shown. By default, the order is random in each session.
    n_sessions : int, default=1000
        Number of sessions.
    shown : int, default=10
        Number of documents shown in a session.
    model : {"position", "cascade", "trust"}, default="position"
        "position": position k is examined with the probability k^−eta, and a document is clicked if
        it is examined and attractive. "cascade": users read from the top, click the first
        attractive document, and stop. "trust": like "position", but an examined document at
        position k is also clicked with the probability 0.65 / k if it is unattractive, and missed
        with the probability 0.01 (k − 1) if it is attractive, as in Agarwal et al. (2019).
    eta : float, default=1.0
        Severity of the position bias; 0 for none.
    noise : float, default=0.1
        Probability that a document of label 0 is attractive.
    temperature : float, default=0.0
        Scale of the Gumbel noise that is added to the scores in each session, so that documents
        change their positions.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ClickLog
        `document` is the index of the document in `y`. `propensity` is the true probability that
        the position is examined, or None for "cascade".

    Examples
    --------
    >>> from marginrank import RankSVM, make_clicks, make_ranking
    >>> X, y, qid = make_ranking(n_queries=50, docs_per_query=20, random_state=0)
    >>> log = make_clicks(y, qid=qid, scores=X[:, 0], n_sessions=500, random_state=0)
    >>> model = RankSVM(C=0.01)
    >>> model = model.fit(X[log.document], log.click, qid=log.session, position=log.position)
    >>> model.position_effect_.shape
    (10,)
    """
    for name, count in {"n_sessions": n_sessions, "shown": shown}.items():
        check_integer(name, count, at_least=1)
    check_choice("model", model, CLICK_MODELS)
    check_share("noise", noise)
    for name, number in {"eta": eta, "temperature": temperature}.items():
        check_number(name, number, allow_equal=True)
    labels = check_labels(y, np.size(y))
    if labels.min() < 0:
        raise ValueError(f"y has the label {labels.min():g}; labels must be zero or more.")
    rng = np.random.default_rng(random_state)
    base = None if scores is None else check_vector(scores, "scores", labels.size, "one per row")
    documents, ids = group_rows(labels.size, qid, None)
    rows = np.arange(labels.size) if documents.rows is None else documents.rows
    of_query = [rows[a:b] for a, b in zip(documents.offsets, documents.offsets[1:], strict=False)]
    drawn = rng.integers(len(of_query), size=n_sessions)
    lists = [_shown(of_query[q], base, temperature, shown, rng) for q in drawn.tolist()]
    sizes = np.array([some.size for some in lists])
    document = np.concatenate(lists)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = np.arange(document.size) - starts + 1
    top = max(2.0 ** labels.max() - 1.0, 1.0)
    attraction = noise + (1.0 - noise) * (2.0 ** labels[document] - 1.0) / top
    click, propensity = _MODELS[model](attraction, position, starts, eta, rng)
    return ClickLog(
        session=np.repeat(np.arange(n_sessions), sizes),
        query=np.repeat(ids[drawn], sizes),
        document=document,
        position=position,
        click=click,
        propensity=propensity,
    )


def _shown(
    rows: Integers, scores: Floats | None, temperature: float, shown: int, rng: np.random.Generator
) -> Integers:
    """Return the documents of a query that are shown in a session, from the top position down."""
    values = rng.random(rows.size) if scores is None else scores[rows]
    if temperature > 0 and scores is not None:
        values = values + temperature * rng.gumbel(size=rows.size)
    return rows[np.argsort(-values, kind="stable")[:shown]]


def _position_clicks(
    attraction: Floats, position: Integers, _: Integers, eta: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    examined = position.astype(np.float64) ** -eta
    return _drawn(examined * attraction, rng), examined


def _trust_clicks(
    attraction: Floats, position: Integers, _: Integers, eta: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    examined = position.astype(np.float64) ** -eta
    seen = np.maximum(1.0 - SEEN_LESS * (position - 1.0), 0.0)
    clicked = seen * attraction + TRUSTED / position * (1.0 - attraction)
    return _drawn(examined * clicked, rng), examined


def _cascade_clicks(
    attraction: Floats, position: Integers, starts: Integers, _: float, rng: np.random.Generator
) -> tuple[Floats, None]:
    attractive = _drawn(attraction, rng)
    # Running count of attractive documents over all sessions.
    before = np.cumsum(attractive) - attractive
    return np.where(before == before[starts], attractive, 0.0), None


def _drawn(probability: Floats, rng: np.random.Generator) -> Floats:
    return (rng.random(probability.size) < probability).astype(np.float64)


_MODELS: dict[str, Callable[..., tuple[Floats, Floats | None]]] = {
    "position": _position_clicks,
    "cascade": _cascade_clicks,
    "trust": _trust_clicks,
}
