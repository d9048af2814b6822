"""Inputs of a fit: X in memory, on a GPU or on disk; preference pairs; the objective over them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginrank._utils.memory import available_memory, parse_bytes, private_memory, readable
from marginrank._utils.optional import require
from marginrank._utils.parameters import Mention, Message, ParameterError, Wording, given
from marginrank._utils.threads import effective_threads
from marginrank._utils.types import Booleans, Floats
from marginrank.data.pair_lists import PairList
from marginrank.data.ranking_data import RankingData
from marginrank.data.store.stored_features import StoredFeatures
from marginrank.data.stored_data import left_on_disk, open_stored
from marginrank.data.validation import check_weights
from marginrank.models.fit_report import StreamFacts
from marginrank.models.parameters import selected_pairs, takes_two_labels
from marginrank.objective.level_pairs import LevelPairs
from marginrank.objective.listed_pairs import ListedPairs
from marginrank.objective.losses import Loss
from marginrank.objective.objective import MANY_FEATURES, Objective
from marginrank.objective.pair_margins import LabelMargins, margin_offsets
from marginrank.objective.pair_sets import PairSet
from marginrank.objective.pair_weights import PairFactors, with_preferred, with_propensity
from marginrank.objective.pair_weights import pair_cost as pair_factors
from marginrank.objective.protocols import Matrix
from marginrank.operators.native import native_matrix
from marginrank.operators.parts.matrix import FitMemory, OnRead, StreamedMatrix
from marginrank.solvers.smooth.preconditioner import (
    HESSIAN_FEATURES,
    MOST_DOCUMENTS_IF_HARD,
    ROUGH_FEATURES,
)

STATE_BYTES = 112  # bytes per document that any solver needs
SHARE_OF_FREE = 0.8  # share of the free memory that a fit may use without memory_limit
# A GPU takes about a millisecond to launch the operations of a product. The native kernels read
# about this many bytes of X in that time.
SMALL_BYTES = 16 << 20
SCRATCH_BYTES = 256  # estimated bytes per document of a query, in each thread
VECTORS = 24  # estimated number of vectors with n_features entries
BLOCKS = 64  # number of blocks of documents, each with n_features partial sums
HESSIANS = 4  # number of n × n matrices: a Hessian and its factors
SAMPLED = 64  # documents per dense feature from which a sample may have a single-precision Hessian
DOCUMENT_SPACE = 3  # number of l × l matrices if systems are solved in l documents, not features


class OpenedData(NamedTuple):
    """Result of :func:`open_documents`: training data, and a memory limit if X stays on disk."""

    data: RankingData  # X may be in memory, memory-mapped, or on disk
    memory_limit: int | None = None  # bytes of memory for the process; None unless X stays on disk
    message: Message | None = None  # warning that X stays on disk although no limit was given


def is_path(source: Any) -> bool:
    """Return whether an argument is the path of a store (data saved on disk) rather than data."""
    return isinstance(source, (str, os.PathLike))


def open_documents(source: Any, memory_limit: int | float | str | None = None) -> OpenedData:
    """Return the training data for `source`, a RankingData or the path of a store on disk.

    With a `memory_limit`, a number of bytes or a size such as "2GB", X stays on disk. Without one,
    it stays on disk if it does not fit in memory.
    """
    limit = None if memory_limit is None else parse_bytes("memory_limit", memory_limit)
    data: RankingData = open_stored(source) if is_path(source) else source
    stored = data.stored
    if stored is None:
        if limit is None:
            return OpenedData(data)
        raise ParameterError(
            Mention("memory_limit"),
            " requires data on disk, but these are in memory; save them as a store, and pass its "
            "path.",
        )
    if limit is not None:
        if data.queries.rows is not None:
            raise ValueError(
                f"{stored.folder}: the rows of a query are not contiguous, so it cannot be "
                "streamed; rewrite it with marginrank convert OLD NEW."
            )
        return OpenedData(left_on_disk(data), limit)
    is_unpacked = stored.packed is not None and not isinstance(data.X, StoredFeatures)
    needed = STATE_BYTES * data.n_documents + (0 if is_unpacked else stored.memory_bytes)
    free = available_memory()
    if (
        needed <= free or data.queries.rows is not None
    ):  # rows of a query are not contiguous: X must be memory-mapped
        is_open = not isinstance(data.X, StoredFeatures)
        return OpenedData(data if is_open else RankingData.open(stored.folder))
    limit = private_memory() + int(SHARE_OF_FREE * free)
    message = Message(
        f"{stored.folder} needs {readable(needed)} of memory, but only {readable(free)} are free. "
        "The fit reads it from disk in every pass, which is slower, as with ",
        Mention("memory_limit", readable(limit)),
        ".",
    )
    return OpenedData(left_on_disk(data), limit, message)


def facts_of(matrix: Matrix) -> StreamFacts | None:
    """Return statistics of the disk reads of a fit, or None if X is not on disk."""
    if not isinstance(matrix, StreamedMatrix):
        return None
    reader = matrix.reader
    return StreamFacts(matrix.plan.n_parts, reader.bytes_read, reader.pinned.n_bytes)


def device_name(device: str | None, tensor: Any = None) -> str | None:
    """Return the device to compute on: `device`, by default the GPU of a large tensor, or None."""
    if device is not None or tensor is None or tensor.device.type == "cpu":
        return device
    is_small = tensor.numel() * tensor.element_size() < SMALL_BYTES
    return None if is_small else str(tensor.device)


def matrix_on(data: RankingData, device: str | None, tensor: Any = None) -> Matrix:
    """Return X as a matrix for a device; `tensor` is X if the caller passed a PyTorch tensor."""
    name = device_name(device, tensor)
    if name is None:
        return native_matrix(data)
    torch = require("torch", "torch")
    from marginrank.operators.torch.matrix import TorchMatrix, bytes_needed

    found = _existing(torch, name)
    if tensor is not None and tensor.device.type != "cpu" and tensor.device != found:
        raise ParameterError(
            f"X is on {tensor.device}, but got ",
            given("device", device),
            "; move X to that device, or omit the parameter.",
        )
    needed = bytes_needed(data, has_features=tensor is not None)
    free = free_bytes(torch, found)
    if free is not None and needed > free:
        raise ValueError(
            f"the data need {readable(needed)} on {found}, but {readable(free)} are free. Use "
            "device=None, or several GPUs with marginrank.dask."
        )
    return TorchMatrix.of(data, found, tensor)


def scores_on_device(tensor: Any, coef: Floats) -> Any:
    """Return the scores Xw for X given as a PyTorch tensor, as a tensor on the same device."""
    torch = require("torch", "torch")
    from marginrank.operators.torch.matrix import features_of

    return features_of(tensor).dot(torch.as_tensor(coef, device=tensor.device))


def free_bytes(torch: Any, device: Any) -> int | None:
    """Return the free memory of a GPU in bytes, or None for a CPU."""
    if device.type != "cuda":
        return None
    free: int = torch.cuda.mem_get_info(device)[0]
    return free


def _existing(torch: Any, name: str) -> Any:
    """Return a PyTorch device; raise ParameterError if it does not exist."""
    device = torch.device(name)
    if device.type == "cpu":
        return device
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    number = device.index or 0
    if number >= count:
        found = ", ".join(f"cuda:{k}" for k in range(count)) or "no GPU"
        raise ParameterError(
            given("device", name), f" does not exist: PyTorch finds {found}; use device=None."
        )
    return torch.device("cuda", number)


def _bytes_of_features(data: RankingData) -> int:
    n, m = data.n_features, data.n_documents
    numbers = VECTORS * n
    if n <= MANY_FEATURES:
        numbers += BLOCKS * n
    has_rough = data.X.n_entries == m * n and n <= min(ROUGH_FEATURES, m / SAMPLED)
    if n <= HESSIAN_FEATURES or has_rough:
        numbers += HESSIANS * n * n
    elif m <= MOST_DOCUMENTS_IF_HARD:  # X is in memory, and so are products of its rows
        return 8 * (numbers + DOCUMENT_SPACE * m * m) + int(data.X.memory_bytes)
    return 8 * numbers


class MatrixParameters(Protocol):
    """Protocol of the parameters that :func:`matrix_for` reads: device, threads and memory."""

    @property
    def device(self) -> str | None: ...

    @property
    def n_jobs(self) -> int | None: ...

    @property
    def state_bytes(self) -> int: ...


@contextmanager
def matrix_for(
    data: RankingData,
    parameters: MatrixParameters,
    memory_limit: int | None = None,
    on_read: OnRead | None = None,
    tensor: Any = None,
) -> Iterator[Matrix]:
    """Context manager: provide X in memory, on a device, or on disk if there is a memory limit."""
    if memory_limit is None:
        yield matrix_on(data, parameters.device, tensor)
        return
    if parameters.device is not None:
        raise ParameterError(
            given("device", parameters.device),
            " cannot be combined with ",
            Mention("memory_limit"),
            ": X is either on the device or on disk.",
        )
    threads = effective_threads(parameters.n_jobs)
    longest = int(np.sum(np.sort(data.queries.sizes)[-threads:]))
    matrix = StreamedMatrix(
        data.X,
        data.queries.offsets,
        memory_limit=memory_limit,
        fit_memory=FitMemory(
            state=parameters.state_bytes * data.n_documents,
            scratch=SCRATCH_BYTES * longest,
            features=_bytes_of_features(data),
        ),
        threads=threads,
        on_read=on_read,
    )
    try:
        yield matrix
    finally:
        matrix.close()


class Preferences(NamedTuple):
    """The training pairs of documents with their weights, and the loss of a pair."""

    pairs: PairSet
    loss: Loss


def choose_pairs(
    data: RankingData,
    loss: Loss,
    *,
    pair_selection: str = "all",
    pair_cost: Any = None,
    factors: PairFactors | None = None,
    margin: Any = "unit",
    pairs: PairList | None = None,
    propensity: Floats | None = None,
    labels: NDArray[Any] | None = None,
    threads: int = 1,
) -> Preferences:
    """Return the training pairs, implied by labels or listed in `pairs`, and the loss of a pair.

    If the margin depends on the labels, the pairs hold the margins, and the loss has margin zero.

    Parameters
    ----------
    data : RankingData
        Documents, labels, queries, weights and costs.
    loss : Loss
        The loss on a pair.
    pair_selection, pair_cost, margin
        As in :class:`~marginrank.RankSVM`.
    factors : PairFactors, optional
        Weights of the pairs, by row, instead of `pair_cost`.
    pairs : PairList, optional
        Pairs of rows of X, instead of the pairs that the labels imply. Documents without a pair of
        positive weight are dropped.
    propensity : ndarray of shape (n_documents,), optional
        The weight of each pair is divided by the propensity of its preferred document.
    labels : ndarray, optional
        The distinct labels of all documents, if the data are a part of them; for `pair_cost` and
        `margin`.
    threads : int
        Number of threads.
    """
    if pairs is not None:
        if pair_selection != "all":
            raise ParameterError(
                given("pair_selection", pair_selection),
                " cannot be combined with ",
                Mention("pairs"),
                "; drop one of them.",
            )
        _check_labels(pair_cost, margin, propensity, data.cost)
        listed = ListedPairs.from_data(data, pairs, margins=None, threads=threads)
        return Preferences(listed, loss if pairs.margin is None else loss.shifted(-loss.margin))
    is_unit = isinstance(margin, str) and margin == "unit"
    if factors is None and pair_cost is not None:
        factors = pair_factors(pair_cost, data.y, data.qid, labels)
    if propensity is not None:
        if data.cost is not None:
            raise ValueError(
                "propensity cannot be combined with RankingData.cost, which holds inverse "
                "propensities; drop propensity."
            )
        factors = with_propensity(factors, propensity)
    elif data.cost is not None:
        factors = with_preferred(factors, data.cost)
    margins = label_margins = None
    if takes_two_labels(margin):
        label_margins = LabelMargins.of_labels(margin, data.y, labels)
    elif not is_unit:
        margins = margin_offsets(margin, data.y, data.qid)
    selection = selected_pairs(pair_selection)
    chosen = LevelPairs.from_data(
        data,
        width=selection.width,
        by_label=selection.by_label,
        pair_weights=factors,
        margins=margins,
        label_margins=label_margins,
        threads=threads,
    )
    return Preferences(chosen, loss if is_unit else loss.shifted(-loss.margin))


def with_competing_clicks(preferences: Preferences, data: RankingData) -> Preferences:
    """Return pairs of each click with all other documents of its query (Joachims et al., 2017).

    Pairs are unchanged if the labels are not clicks, 0 or 1.
    """
    clicks = clicks_of(data)
    pairs = preferences.pairs
    if clicks is None or not isinstance(pairs, LevelPairs):
        return preferences
    return preferences._replace(pairs=pairs.by_click(clicks))


def clicks_of(data: RankingData) -> Booleans | None:
    """Return a mask of clicked documents, grouped by query, or None if no query has two clicks.

    With one click per query, the pairs from labels compare it with all other documents already. The
    mask is also None if labels are not clicks, 0 or 1.
    """
    clicked = data.queries.grouped(data.y) == 1
    if not np.isin(data.y, (0, 1)).all():
        return None
    per_query = np.add.reduceat(clicked.astype(np.int64), data.queries.offsets[:-1])
    return clicked if per_query.max() > 1 else None


def check_one_click(data: RankingData, propensity: Floats | None, where: str) -> None:
    """Raise ValueError if propensities are given and a query has several clicks."""
    if propensity is not None and clicks_of(data) is not None:
        raise ValueError(
            f"propensity with several clicks in a query is not supported {where}; fit in memory, "
            "or repeat the query for each click."
        )


def _check_labels(
    pair_cost: Any, margin: Any, propensity: Floats | None, cost: Floats | None
) -> None:
    """Raise ValueError if an argument is given that requires labels."""
    asked = {
        "pair_cost": pair_cost is not None,
        "margin": not (isinstance(margin, str) and margin == "unit"),
        "propensity": propensity is not None,
        "cost": cost is not None,
    }
    for name, is_given in asked.items():
        if is_given:
            raise ValueError(
                f"{name} cannot be combined with pairs, which have no labels; use "
                f"{'pair_margin' if name == 'margin' else 'pair_weight'}."
            )


def check_propensity(propensity: ArrayLike | None, n_documents: int) -> Floats | None:
    """Return validated propensities, or None; raise ValueError unless all are positive."""
    if propensity is None:
        return None
    values = check_weights(propensity, "propensity", n_documents, "one probability per document")
    zero = np.flatnonzero(values == 0)
    if zero.size:
        raise ValueError(f"propensity[{zero[0]}] is 0; propensities must be positive.")
    return values


def objective_on(
    data: RankingData,
    preferences: Preferences,
    *,
    C: float = 1.0,
    normalization: str = "none",
    ridge: float = 1.0,
    threads: int = 1,
    matrix: Matrix | None = None,
) -> Objective:
    """Return the training objective: regularizer plus the loss summed over the pairs.

    Parameters
    ----------
    data : RankingData
        The documents.
    preferences : Preferences
        The pairs, and the loss on them.
    C, normalization
        As in :class:`~marginrank.RankSVM`.
    ridge : float
        Weight of ½‖w‖².
    threads : int
        Number of threads; the results do not depend on it.
    matrix : Matrix, optional
        X of a backend; by default the native one.
    """
    matrix = native_matrix(data) if matrix is None else matrix
    design = matrix.design(preferences.pairs.weighted(C, normalization), threads)
    return Objective(design=design, loss=preferences.loss, ridge=ridge)


def no_weight(cost: Floats | None = None) -> ValueError:
    """Return a ValueError that says that all training pairs have weight zero."""
    if cost is not None and not cost.any():
        return ValueError(
            "cost (in text, cost:) is zero for every document; at least one must be positive."
        )
    return ValueError(
        "cost, pair_cost, sample_weight, query_weight or pair_weight is zero for every pair; at "
        "least one pair needs a positive weight."
    )


def no_pairs(n_documents: int, n_queries: int) -> ParameterError:
    """Return a ParameterError that says that the data contain no pair to learn from."""
    return ParameterError(
        Wording("y has", "there is"),
        " no pair to learn from: no query has two documents with different labels (",
        Wording(f"n_samples={n_documents}", f"{n_documents} documents"),
        f", {n_queries} queries); check ",
        Wording("y and qid", "the labels and the queries"),
        ".",
    )
