"""marginrank train-sparse."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from marginrank._utils.parameters import (
    TEXT,
    Mention,
    Parameter,
    ParameterError,
    check_parameters,
    choice,
    integer,
    or_none,
)
from marginrank.cli.support.cluster import learn_on_cluster
from marginrank.cli.support.data import Wanted, data_summary, open_data, open_to_fit
from marginrank.cli.support.options import DataFiles, Reading, Room, Training, ValidationFlags
from marginrank.cli.support.plots import check_plot
from marginrank.cli.support.sparse_path import (
    best_parameters,
    describe_path,
    plot,
    print_path,
    walk_path,
)
from marginrank.cli.support.task import Task
from marginrank.cli.support.training import fit_opened, stream_summary
from marginrank.models.parameters import DeviceDeclaration, SparseDeclaration

if TYPE_CHECKING:
    from marginrank.fit.inputs import Opened
    from marginrank.fit.sparse import SparseParameters

EXAMPLE = """\
train-sparse train.txt --model model.json --radius 4
train-sparse train.txt --model model.json --path 50 --valid valid.txt --plot path.png"""

# A flag, and another that it says nothing without.
NEEDS = (("parameter", "path"), ("plot", "path"), ("path", "valid"))
# Flags for data that are larger than memory.
ROOM = ("memory_limit", "dask")
# A flag, and another that leaves nothing for it to say.
CONFLICTS = (
    *((name, "path") for name in ("C", "radius", "solver", "variant", "device", *ROOM)),
    ROOM,
    ("device", "memory_limit"),
    ("C", "radius"),
)
# A flag, and the values of another that it says something with.
ONLY_WITH = (("variant", "solver", ("fenchel",)),)
LONGEST_PATH = 10_000
PATH = "Path"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PathOptions:
    """A path of models to select from."""

    path: int | None = Parameter(
        or_none(integer(at_least=1, at_most=LONGEST_PATH)),
        "Fit that many values of C or the radius, each to 1e-4, and keep the one that is best on "
        "--valid by the first of --metrics, ndcg@10 by default.",
        PATH,
    ).field(None)
    parameter: str = Parameter(
        choice(("C", "radius")), "What the path is of: C or radius.", PATH
    ).field("C")
    plot: str | None = Parameter(
        or_none(TEXT), "File to draw the path to, such as path.png.", PATH
    ).field(None)

    def check(self, l1_ratio: float) -> None:
        """Raise ValueError if the path has no default grid with this penalty."""
        check_parameters(self)
        if self.path is None:
            return
        if self.parameter == "radius" and l1_ratio != 1:
            raise ParameterError(
                Mention("l1_ratio"), " mixes penalties, and a radius has none; drop one of them."
            )
        if l1_ratio == 0:
            raise ParameterError(
                Mention("l1_ratio", "0"), " makes no weight zero, so that a path has no start."
            )


def train_sparse(
    data: DataFiles,
    reading: Reading,
    room: Room,
    parameters: SparseDeclaration,
    place: DeviceDeclaration,
    path: PathOptions,
    validation: ValidationFlags,
    training: Training,
) -> None:
    """Train a sparse linear model and write it to a file.

    Most of its weights are zero. The flags are named as the parameters of marginrank.SparseRankSVM
    and marginrank.load_letor.
    """
    task = Task(data, reading, validation, training)
    task.check_flags(needs=NEEDS, conflicts=CONFLICTS)
    path.check(parameters.l1_ratio)
    check_plot(path.plot)

    def make() -> "SparseParameters":
        from marginrank.fit.sparse import SparseParameters

        return SparseParameters(**{**vars(parameters), **vars(place), "n_jobs": reading.n_jobs})

    checked = task.prepare(make, outputs=[path.plot], only_with=ONLY_WITH)
    if room.dask is not None:
        learn_on_cluster(task, checked, room.dask)
        return
    opened = _open(task, room, path)
    documents = opened.data
    held_out = task.open_valid(Wanted(documents.n_features, documents.feature_names))
    how: Any = {"random_state": training.random_state, "verbose": training.verbose}
    walked = None
    if path.path is not None and held_out is not None:
        metric = next(iter(task.metrics("ndcg@10").values()))
        walked = walk_path(
            documents,
            held_out,
            checked,
            metric,
            task.phases,
            n_points=path.path,
            parameter=path.parameter,
            **how,
        )
        checked = best_parameters(walked, checked)
    model = fit_opened(opened, checked, task.phases, **how)
    task.keep(model)
    counts = data_summary(documents)
    if walked is None:
        more = stream_summary(opened, model)
        task.tell(task.summary(model, held_out, counts, **more), model)
        return
    if path.plot is not None:
        with task.phases.phase("plot", path.plot):
            plot(walked, path.plot)
    result = task.summary(model, held_out, counts, path=describe_path(walked))
    if not training.json:
        print_path(result["path"])
    task.tell(result, model)


def _open(task: Task, room: Room, path: PathOptions) -> "Opened":
    """Read the data; those of a path are never left on disk, as its fits share what they read."""
    if path.path is None:
        return open_to_fit(task.files, task.reading, task.phases, memory_limit=room.memory_limit)
    from marginrank.fit.inputs import Opened

    return Opened(open_data(task.files, task.reading, task.phases))
