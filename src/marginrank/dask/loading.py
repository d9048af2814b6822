"""From what a fit is given to parts on the workers."""

from dataclasses import dataclass

from distributed import Client, Future

from marginrank._utils.parameters import check_choice
from marginrank.dask.clusters import fetch, map_tasks
from marginrank.dask.cuts import bring_queries_together, check_whole_queries
from marginrank.dask.parts import PartFacts, check_alike, facts_of, make_part
from marginrank.dask.sources import Source

PARTITIONS = ("as_is", "by_query")


@dataclass(frozen=True)
class LoadedParts:
    """Parts on the workers, those without documents left out.

    Attributes
    ----------
    parts : list of Future
        A :class:`~marginrank.dask.parts.Part` each.
    facts : list of PartFacts
        What the client knows of each.
    feature_names : list of str or None
        Names of the features.
    """

    parts: list[Future]
    facts: list[PartFacts]
    feature_names: list[str] | None

    def release(self) -> None:
        """Keep what the client knows alone: workers may let go of what they need no more."""
        self.parts.clear()

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return sum(fact.n_documents for fact in self.facts)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return sum(fact.n_queries for fact in self.facts)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.facts[0].n_features

    @property
    def n_bytes(self) -> int:
        """What X takes in memory."""
        return sum(fact.n_bytes for fact in self.facts)


def load_parts(client: Client, source: Source, partitions: str = "as_is") -> LoadedParts:
    """Check the documents on the workers, and see that no query is in two parts.

    Parameters
    ----------
    client : Client
        The cluster.
    source : Source
        The documents.
    partitions : {"as_is", "by_query"}
        Refuse a query that is in two partitions, or shuffle the documents by query first.
    """
    check_choice("partitions", partitions, PARTITIONS)
    loaded = _make_parts(client, source.chunks, source.feature_names)
    if partitions == "as_is":
        check_whole_queries(client, loaded.parts, loaded.facts)
        return loaded
    together = bring_queries_together(client, source.chunks)
    return _make_parts(client, together, source.feature_names)


def _make_parts(client: Client, chunks: list[Future], names: list[str] | None) -> LoadedParts:
    parts = map_tasks(client, make_part, range(len(chunks)), chunks)
    facts = fetch(client, map_tasks(client, facts_of, parts))
    filled = check_alike(facts)
    return LoadedParts([parts[fact.number] for fact in filled], filled, names)
