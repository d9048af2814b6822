"""Flags, help and examples of the commands that train."""

from typing import Annotated

from marginrank._utils.parameters import Mention, Parameter, ParameterError, choice
from marginrank.cli.flags.declaration import CommandFlags, Flags
from marginrank.cli.flags.search import ScoringOptions, SearchOptions
from marginrank.cli.flags.shared import (
    DATA,
    DataFiles,
    OneMetric,
    Reading,
    Resources,
    Training,
    ValidationFlags,
    argument,
    count,
    text,
)
from marginrank.models.parameters import (
    AdditiveDeclaration,
    DeviceDeclaration,
    LinearDeclaration,
    OnlineDeclaration,
    SparseDeclaration,
)

PATH = "Path"


class TrainFlags(CommandFlags):
    """Train a linear ranking model and write it to a file.

    The model is a RankSVM: it minimizes a convex loss over pairs of documents of the same query.
    To choose C by cross-validation, use tune. For sparse models, use train-sparse. Convert data
    that are larger than memory to a store first. Flags are named like the parameters of
    marginrank.RankSVM and marginrank.load_letor.
    """

    example = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
train train.txt --model model.json -C 0.01 --objective ndcg@10
train clicks.txt --pairs clicks.pairs --model model.json
train large.store --memory-limit 2GB --model model.json
train a.store b.store --dask tcp://host:8786 --model model.json"""
    first = ("model", "C", "valid", "metrics", "scale")

    data: DataFiles
    reading: Reading
    resources: Resources
    parameters: LinearDeclaration
    device: DeviceDeclaration
    validation: ValidationFlags
    training: Training
    pairs: str | None = text(
        "File of pairs to learn from, one per line: preferred row, other row (both from 0) and, "
        "optionally, a weight, or a weight and a margin.",
        unset="pairs from labels",
    )


class PathOptions(Flags):
    """A path of sparse models to select from."""

    path: int | None = count(
        "Fit this number of values of C or radius, with tol 1e-4, and keep the best model on "
        "--valid, by the first of --metrics or else by ndcg@10.",
        PATH,
        unset="one fit",
        at_most=10_000,
    )
    parameter: str = Parameter(
        choice(("C", "radius")), "Parameter that --path varies: C or radius.", PATH
    ).field("C")
    plot: str | None = text("File to plot the path to, such as path.png.", PATH, unset="no plot")

    def check_penalty(self, l1_ratio: float) -> None:
        """Raise ValueError if the path has no default grid with this penalty."""
        if self.path is None:
            return
        if self.parameter == "radius" and l1_ratio != 1:
            raise ParameterError(
                Mention("l1_ratio"), " cannot be combined with a path of radii; drop one of them."
            )
        if l1_ratio == 0:
            raise ParameterError(
                Mention("l1_ratio", "0"), " has no default path; use a positive value."
            )


class TrainSparseFlags(CommandFlags):
    """Train a sparse linear ranking model and write it to a file.

    An l1 penalty sets most weights to zero, so few features have to be computed. Use --path to
    choose the penalty on validation data. Flags are named like the parameters of
    marginrank.SparseRankSVM and marginrank.load_letor.
    """

    example = """\
train-sparse train.txt --model model.json --radius 4
train-sparse train.txt --model m.json --path 50 --valid valid.txt"""
    first = ("model", "C", "radius", "path", "valid")

    data: DataFiles
    reading: Reading
    resources: Resources
    parameters: SparseDeclaration
    device: DeviceDeclaration
    path: PathOptions
    validation: ValidationFlags
    training: Training


class TrainAdditiveFlags(CommandFlags):
    """Train an additive ranking model, one curve per feature, and write it to a file.

    Curves are as easy to read as weights, and fit effects that are not linear. To choose C and the
    smoothness by cross-validation, use tune --additive. Flags are named like the parameters of
    marginrank.AdditiveRankSVM and marginrank.load_letor.
    """

    example = """\
train-additive train.txt --model m.json -C 0.01 --valid valid.txt
train-additive train.csv --model m.json --categorical-features lang
train-additive train.csv --model m.json --monotonic-cst bm25:+1"""
    first = ("model", "C", "smoothness", "max_bins", "valid")

    data: DataFiles
    reading: Reading
    parameters: AdditiveDeclaration
    validation: ValidationFlags
    training: Training


class TrainOnlineFlags(CommandFlags):
    """Train a linear ranking model by stochastic gradient descent and write it to a file.

    Use it for a quick approximate model, or for text that does not fit in memory. Text is read in
    chunks and needs a qid on every line; a store is mapped into memory. Flags for tables apply to
    --valid. With --early-stopping, training stops when the first of --metrics no longer improves on
    --valid. Flags are named like the parameters of marginrank.SGDRankSVM and marginrank.iter_letor.
    """

    example = """\
train-online larger-than-memory.txt --model m.json
train-online a.txt --model m.json --valid v.txt --early-stopping"""
    first = ("model", "C", "max_iter", "valid", "early_stopping")
    without = ("group",)  # a query may span chunks, so group sizes are not supported

    data: Annotated[
        list[str],
        argument(
            "DATA",
            "LETOR text (plain, .gz, .bz2, .xz, .zst; several files are read as one), or the "
            "folder of a store (made by convert).",
        ),
    ]
    reading: Reading
    parameters: OnlineDeclaration
    validation: ValidationFlags
    training: Training
    chunk_documents: int | None = count(
        "Number of documents of text in memory at a time.", DATA, unset="65536"
    )


class TuneFlags(CommandFlags):
    """Choose C and other parameters by cross-validation, train a model and write it to a file.

    Candidates are scored on folds of whole queries, or on --valid. The selected parameters are then
    trained on all data, as train (or with --additive, train-additive) does. Ctrl-C ends the search
    and keeps the best candidate so far.
    """

    example = """\
tune train.txt --model model.json
tune train.txt --model model.json --valid valid.txt --test test.txt
tune train.txt --model model.json --loss hinge,logistic --budget 60
tune train.txt --model model.json --additive --smoothness 0.03,0.3"""
    first = ("model", "metric", "valid", "test", "additive")

    data: DataFiles
    reading: Reading
    options: SearchOptions
    scoring: ScoringOptions
    metric: OneMetric
    training: Training
