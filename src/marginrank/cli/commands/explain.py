"""The command ``marginrank explain``: explain why a document ranks above another."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginrank._utils.types import Floats, Integers
from marginrank.cli.flags.inspection import ExplainFlags
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags, check_plot
from marginrank.cli.support.data import data_summary
from marginrank.cli.support.files import name_of, save_plot
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.data import RankingData
from marginrank.models.features import Reason, largest_reasons, values_text
from marginrank.plots import plot_explanation

SHOWN_IDS = 5  # most ids in a message


@dataclass(frozen=True)
class RankedQuery:
    """The documents of a query, sorted by descending score."""

    id: Any
    rows: Integers  # rows of the data
    labels: Floats
    scores: Floats
    comments: list[str] | None


def run(flags: ExplainFlags, phases: Phases) -> None:
    """Print the contributions of features to the difference between two documents' scores."""
    reading = flags.reading
    check_flags(reading.given, flags.data)
    check_plot(flags.plot)
    check_files([flags.model, *flags.data, reading.group], [flags.plot])
    model = _models.load(flags.model)
    data = _models.open_data_for(model, flags.data, reading, phases, labels=False, comments=True)
    source = name_of(flags.data[0])
    with phases.phase("explain"):
        query = _ranked(model, data, _find_query(data, flags.query, source))
        if flags.documents is None:
            places = _most_useful_pair(query)
        else:
            places = [_find_document(query, text) for text in flags.documents]
            if places[0] == places[1]:
                raise ValueError(
                    f"--documents {' '.join(flags.documents)} names one document twice; name two."
                )
        reasons = model.explain(*(data.X[query.rows[[place]]] for place in places))
    names = [f"rank {place + 1}" for place in places]
    save_plot(
        flags.plot,
        phases,
        lambda: plot_explanation(reasons, documents=(names[0], names[1]), top=flags.top),
    )
    result = {"data": data_summary(data), **_describe(query, places, reasons, flags.top)}
    print_json({**result, "seconds": phases.seconds}) if flags.json else _print(result)


def _find_query(data: RankingData, wanted: str | None, source: str) -> int:
    """Return the index of the query with the id `wanted`, or of the only query in the data."""
    ids = [str(one) for one in data.query_ids.tolist()]
    if wanted in ids:
        return ids.index(wanted)
    if wanted is None and len(ids) == 1:
        return 0
    shown = ", ".join(ids[:SHOWN_IDS]) + (", …" if len(ids) > SHOWN_IDS else "")
    problem = "" if wanted is None else f"--query {wanted!r} is not in the data: "
    raise ValueError(
        f"{problem}{source} has {len(ids):,} queries ({shown}); pass the id of one as --query."
    )


def _ranked(model: _models.Model, data: RankingData, number: int) -> RankedQuery:
    """Return the documents of a query by descending score, ties by row."""
    documents = np.arange(*data.queries.offsets[[number, number + 1]])
    rows = documents if data.queries.rows is None else data.queries.rows[documents]
    scores = model.scores(data.X[rows])
    order = np.argsort(-scores, kind="stable")
    rows = rows[order]
    comments = None if data.comments is None else [data.comments[row] for row in rows.tolist()]
    return RankedQuery(data.query_ids[number], rows, data.y[rows], scores[order], comments)


def _most_useful_pair(query: RankedQuery) -> list[int]:
    """Return the ranks (from 0) of the two documents to explain by default.

    They are the pair closest to the top that is in the wrong order by the labels, or the top two
    documents if there is none.
    """
    if query.rows.size < 2:
        raise ValueError(
            f"query {query.id} has one document, but an explanation compares two; choose another "
            "query."
        )
    below = np.maximum.accumulate(query.labels[::-1])[::-1]  # largest label from each rank on
    wrong = np.flatnonzero(below[1:] > query.labels[:-1])
    if wrong.size == 0:
        return [0, 1]
    first = int(wrong[0])
    better = query.labels[first + 1 :] > query.labels[first]
    return [first, first + 1 + int(np.argmax(better))]


def _find_document(query: RankedQuery, wanted: str) -> int:
    """Return the rank (from 0) of a document, given by its rank (from 1) or its comment."""
    n = query.rows.size
    if wanted.isdecimal() and 1 <= int(wanted) <= n:
        return int(wanted) - 1
    comments = query.comments or []
    found = [
        place
        for place, comment in enumerate(comments)
        if comment == wanted or wanted in comment.replace("=", " ").split()
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"--documents {wanted!r} is in the comments of {len(found)} documents of query "
            f"{query.id}; name one by its position in the ranking, such as {found[0] + 1}."
        )
    raise ValueError(
        f"--documents {wanted!r} is not a document of query {query.id}; name one by its position "
        f"in the ranking, 1 to {n}" + (", or by its comment." if comments else ".")
    )


def _describe(
    query: RankedQuery, places: list[int], reasons: list[Reason], top: int
) -> dict[str, Any]:
    shown, n_others, others = largest_reasons(reasons, top)
    return {
        "query": query.id,
        "documents": [
            {
                "rank": place + 1,
                "label": query.labels[place],
                "score": query.scores[place],
                "comment": query.comments[place] if query.comments else None,
            }
            for place in places
        ],
        "contributions": [
            {
                "feature": reason.name,
                "values": [reason.preferred, reason.other],
                "contribution": reason.difference,
            }
            for reason in shown
        ],
        "others": {"features": n_others, "contribution": others},
        "sum": math.fsum(reason.difference for reason in reasons),
    }


def _print(result: Mapping[str, Any]) -> None:
    documents = result["documents"]
    columns = ["label", "score"] + (["comment"] if any(one["comment"] for one in documents) else [])
    names = [f"rank {document['rank']}" for document in documents]
    rows = [
        (name, *(document[column] for column in columns))
        for name, document in zip(names, documents, strict=True)
    ]
    print_table(f"Query {result['query']}", rows, header=("document", *columns))
    lines = [
        (one["feature"], *map(values_text, one["values"]), _signed(one["contribution"]))
        for one in result["contributions"]
    ]
    others = result["others"]
    if others["features"]:
        lines.append((f"{others['features']:,} others", "", "", _signed(others["contribution"])))
    lines.append(("sum", "", "", _signed(result["sum"])))
    title = f"Score of {names[0]} minus score of {names[1]}"
    print_table(title, lines, header=("feature", *names, "contribution"))
    above, below = sorted(documents, key=lambda document: document["rank"])
    if above["label"] < below["label"]:
        print_line(
            f"wrong order: rank {above['rank']} has the label {above['label']:g}, and rank "
            f"{below['rank']} has {below['label']:g}"
        )


def _signed(contribution: float) -> str:
    return f"{contribution:+.6g}"
