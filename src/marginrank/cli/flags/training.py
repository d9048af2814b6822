"""Flags, help and examples of the commands that train."""

from typing import Annotated

from marginrank._utils.parameters import Mention, Parameter, ParameterError, choice
from marginrank.cli.flags.declaration import CommandFlags, Flags
from marginrank.cli.flags.search import ScoringOptions, SearchOptions
from marginrank.cli.flags.shared import (
    RESOURCES,
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
from marginrank.models.online_parameters import OnlineDeclaration
from marginrank.models.parameters import (
    MODEL,
    AdditiveDeclaration,
    DeviceDeclaration,
    LinearDeclaration,
    SparseDeclaration,
)

PATH = "Path (models with more and more features)"


class TrainFlags(CommandFlags):
    """Train a linear ranking model (RankSVM) and write it to a file.

    RankSVM learns one weight per feature, so that documents with higher labels score higher than
    other documents of the same query. To choose C by cross-validation, use marginrank tune. Data
    that are larger than memory must be converted to a store first (marginrank convert).
    """

    example = """\
train train.txt --model model.json -C 0.01 --valid valid.txt
# Optimize NDCG@10 instead of all pairs
train train.txt --model model.json -C 0.01 --objective ndcg@10
# Learn from given pairs of documents instead of labels
train clicks.txt --pairs clicks.pairs --model model.json
# Data that are larger than memory
train large.store --memory-limit 2GB --model model.json
# On a Dask cluster
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
        "Learn from the pairs in this file instead of labels. Each line is: row of the preferred "
        "document, row of the other one (the first row is 0), and optionally weight and margin.",
        MODEL,
        unset="pairs from labels",
    )


class PathOptions(Flags):
    """Flags for a regularization path: sparse models from which the best is selected."""

    path: int | None = count(
        "Train models for this number of values of C, from sparse to dense, and keep the one with "
        "the best metric on --valid: the first of --metrics, or ndcg@10.",
        PATH,
        unset="train one model",
        at_most=10_000,
    )
    parameter: str = Parameter(
        choice(("C", "radius")), "Parameter that --path varies: C or radius.", PATH
    ).field("C")
    plot: str | None = text(
        "Image file for weights and metric along the path, such as path.png.",
        PATH,
        unset="no image",
    )

    def check_penalty(self, l1_ratio: float) -> None:
        """Raise ValueError if a path is requested with a penalty that has no default grid of C."""
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
    """Train a linear ranking model that uses few features, and write it to a file.

    An l1 penalty (lasso) sets most weights to zero. Set its strength with -C or --radius,
    or try several with --path and keep the best on --valid.
    """

    example = """\
train-sparse train.txt --model model.json --radius 4
# Try 50 strengths of the penalty, keep the best on valid.txt
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
    """Train an additive ranking model (one curve per feature) and write it to a file.

    The score of a document is the sum of one curve per feature, so the model fits effects that are
    not linear and can still be read (a generalized additive model). To choose C and the smoothness
    by cross-validation, use marginrank tune --additive.
    """

    example = """\
train-additive train.txt --model model.json --valid valid.txt
# lang is a categorical feature, not a quantity
train-additive train.csv --model m.json --categorical-features lang
# A higher bm25 never lowers the score
train-additive train.csv --model m.json --monotonic-cst bm25:+1"""
    first = ("model", "C", "smoothness", "max_bins", "valid")

    data: DataFiles
    reading: Reading
    parameters: AdditiveDeclaration
    validation: ValidationFlags
    training: Training


class TrainOnlineFlags(CommandFlags):
    """Train a linear ranking model by stochastic gradient descent (SGD); write it to a file.

    Use it for text that is larger than memory, which is read in chunks, or for a quick model that
    is close to that of marginrank train. Every line of the text needs a qid.
    """

    example = """\
train-online larger-than-memory.txt --model model.json
# Stop when the metric on v.txt no longer improves
train-online a.txt --model m.json --valid v.txt --early-stopping"""
    first = ("model", "C", "max_iter", "valid", "early_stopping")
    without = ("group",)  # a query may span chunks, so group sizes are not supported

    data: Annotated[
        list[str],
        argument(
            "DATA",
            'LETOR text (lines like "2 qid:1 1:0.5 2:0.1": label, query, features), or a store '
            "(folder written by marginrank convert). Text may be compressed (.gz, .bz2, .xz, "
            ".zst); several text files are read as one. Only --valid may also be a .csv, .tsv or "
            ".parquet table.",
        ),
    ]
    reading: Reading
    parameters: OnlineDeclaration
    validation: ValidationFlags
    training: Training
    chunk_documents: int | None = count(
        "Number of documents of text to hold in memory at a time.", RESOURCES, unset="65536"
    )


class TuneFlags(CommandFlags):
    """Choose C and other parameters by cross-validation, train with them, and write the model.

    Use this command if you do not know which parameters to choose. Without further flags it tries
    values of C, each with and without --normalization query and --scale query. Folds hold whole
    queries. The model is then trained on all of DATA with the best parameters. Ctrl-C ends the
    search early and keeps the best so far.
    """

    example = """\
tune train.txt --model model.json
# Choose on validation data instead of folds, and evaluate on test data
tune train.txt --model model.json --valid valid.txt --test test.txt
# Also try other losses, for at most 60 seconds
tune train.txt --model model.json --loss hinge,logistic --budget 60
# Additive models: one curve per feature instead of one weight
tune train.txt --model model.json --additive"""
    first = ("model", "metric", "valid", "test", "additive")

    data: DataFiles
    reading: Reading
    options: SearchOptions
    scoring: ScoringOptions
    metric: OneMetric
    training: Training
