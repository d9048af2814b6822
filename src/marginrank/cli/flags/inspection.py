"""Flags, help and examples of the commands that inspect data and models."""

from typing import Annotated

from marginrank._utils.parameters import (
    TEXT,
    Constraint,
    Mention,
    Parameter,
    ParameterError,
    check_integer,
    choice,
    or_none,
)
from marginrank.cli.flags.declaration import CommandFlags, Flags
from marginrank.cli.flags.shared import (
    EVALUATION,
    OF_MODEL,
    OUTPUT,
    DataFiles,
    ModelFile,
    OneMetric,
    Reading,
    argument,
    count,
    json_flag,
    sizes_of,
    text,
)
from marginrank.models.parameters import RANDOM_STATE, LinearDeclaration

EXPLANATION = "What to explain"
CURVE = "Learning curve"


class InspectFlags(CommandFlags):
    """Summarize data (queries, labels, pairs) or a model (its largest weights or curves)."""

    example = """\
# Data: are queries, labels and features read as you expect?
inspect train.txt
# A model: its 20 largest weights
inspect model.json --top 20
# With standard errors of the weights, from the training data
inspect model.json train.txt"""
    first = ("top",)

    files: Annotated[
        list[str],
        argument(
            "FILE",
            "Data (LETOR text, table or store), or a model. A RankSVM model followed by its "
            "training data also shows standard errors of the weights.",
        ),
    ]
    reading: Reading
    top: int = count("Number of weights or curves of a model to show, largest first.", OUTPUT, 10)
    json: bool = json_flag()


class CheckFlags(CommandFlags):
    """Find problems in data: label leaks, duplicates, drift, constant features, odd queries.

    Each problem is an error, a warning or a note. The exit code is 3 if there is an error, else 0,
    so that a pipeline can stop before it trains; --fail-on warning makes it stricter.
    """

    example = """\
check train.txt
# Also find overlap and differences between training and test data
check train.txt --test test.txt
# In a pipeline: stop at warnings, too
check train.txt --fail-on warning --json > problems.json"""
    first = ("test", "fail_on")

    files: DataFiles
    reading: Reading
    test: str | None = text(
        "Test data: report queries and documents that are also in DATA, and features whose "
        "distribution differs.",
        EVALUATION,
        unset="check DATA only",
    )
    test_group: str | None = sizes_of("test")
    fail_on: str = Parameter(
        choice(("error", "warning")),
        "Exit with code 3 if there is a problem of this severity or worse: error or warning.",
        OUTPUT,
    ).field("error")
    json: bool = json_flag()


class ExplainFlags(CommandFlags):
    """Explain why a model ranks one document of a query above another.

    Prints how much each feature contributes to the difference between the two scores. Without
    --documents, it explains a mistake: the pair closest to the top where the document with the
    lower label ranks higher, or the top two documents if there is no such pair.
    """

    example = """\
explain model.json test.txt --query 18219
# Two documents, by their ids or by their ranks
explain model.json test.txt --query 18219 --documents GX003 GX017
explain model.json test.txt --query 18219 --documents 1 4"""
    first = ("query", "documents", "top", "plot")
    defaults = (OF_MODEL,)

    model: ModelFile
    data: Annotated[
        list[str],
        argument(
            "DATA",
            "Data with the query: LETOR text, a .csv, .tsv or .parquet table, or a store. Labels "
            "are not needed.",
        ),
    ]
    reading: Reading
    query: str | None = text(
        "Id of the query (qid).", EXPLANATION, unset="the only query of DATA", metavar="ID"
    )
    documents: tuple[str, str] | None = Parameter(
        or_none(
            Constraint(tuple[str, str], lambda name, value: [TEXT.check(name, v) for v in value])
        ),
        "The two documents to compare. Each is given by its rank in the order of the model (1 is "
        "the top), or by its id in the comments of DATA.",
        EXPLANATION,
        unset="a mistake near the top",
        metavar="DOC DOC",
    ).field(None)
    top: int = count(
        "Number of features to show; the contributions of the others are summed.", OUTPUT, 10
    )
    plot: str | None = text(
        "Image file for the contributions, such as why.png.", OUTPUT, unset="no image"
    )
    json: bool = json_flag()


class FeaturesFlags(CommandFlags):
    """Rank the documents by one feature at a time, and list the features with the best metric.

    Each feature is tried in both directions: highest values first, and lowest values first.
    """

    example = """\
features train.txt
# The 50 best features by another metric
features train.txt --metric average_precision --top 50"""
    first = ("metric", "top", "plot")

    files: DataFiles
    reading: Reading
    metric: OneMetric
    top: int = count("Number of features to show, best first.", OUTPUT, 10)
    plot: str | None = text(
        "Image file for the features, such as features.png.", OUTPUT, unset="no image"
    )
    json: bool = json_flag()


class CurveOptions(Flags):
    """Flags of learning-curve: sizes of the training sets, and how models are evaluated."""

    sizes: str | None = text(
        "Sizes of the training sets, separated by commas: numbers of queries (50,100,200) or "
        "fractions up to 1 (0.25,0.5,1).",
        CURVE,
        unset="up to six sizes, each twice the one before, up to all queries",
        metavar="SIZES",
    )
    folds: int = count(
        "Number of cross-validation folds; with --valid, number of random samples of each size.",
        CURVE,
        5,
    )
    random_state: int = RANDOM_STATE._replace(panel=CURVE).field(0)
    valid: str | None = text(
        "Validation data to evaluate the models on, instead of cross-validation.",
        EVALUATION,
        unset="cross-validation",
    )
    valid_group: str | None = sizes_of("valid")
    plot: str | None = text(
        "Image file for the curve, such as curve.png.", OUTPUT, unset="no image"
    )

    def __post_init__(self) -> None:
        """Raise ValueError if the value of a flag is invalid, or for a single fold."""
        super().__post_init__()
        if self.valid is None:
            check_integer("folds", self.folds, at_least=2)

    def numbers(self) -> list[float] | None:
        if self.sizes is None:
            return None
        try:
            return [float(size) for size in self.sizes.split(",")]
        except ValueError:
            raise ParameterError(
                Mention("sizes", self.sizes),
                " must be numbers separated by commas, such as 50,100,200.",
            ) from None


class LearningCurveFlags(CommandFlags):
    """Estimate whether more training queries would make a linear model better.

    Trains models on more and more queries of DATA and evaluates them on other queries. Flags of the
    model are as in marginrank train; C is adapted to the size of each training set.
    """

    example = """\
learning-curve train.txt -C 0.01
# Evaluate on validation data instead of by cross-validation
learning-curve train.txt -C 0.01 --valid valid.txt --plot curve.png"""
    first = ("C", "metric", "valid", "sizes", "plot")

    files: DataFiles
    reading: Reading
    parameters: LinearDeclaration
    curve: CurveOptions
    metric: OneMetric
    json: bool = json_flag()
