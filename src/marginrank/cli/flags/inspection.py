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
    DATA,
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
    text,
)
from marginrank.models.parameters import RANDOM_STATE, LinearDeclaration

CURVE = "Curve"


class InspectFlags(CommandFlags):
    """Show a summary of data (queries, labels, pairs) or of a model (weights, curves)."""

    example = """\
inspect train.txt
inspect model.json --top 20
inspect model.json train.txt    # with standard errors"""
    first = ("top",)

    files: Annotated[
        list[str],
        argument(
            "FILE",
            "A model, or data. Pass a RankSVM model together with its training data to also show "
            "the standard errors of its weights.",
        ),
    ]
    reading: Reading
    top: int = count("Number of weights or curves of a model to show, largest first.", OUTPUT, 10)
    json: bool = json_flag()


class CheckFlags(CommandFlags):
    """Find defects of data: leaks, duplicates, drift, constant features, suspicious queries.

    The exit code is 0, or 3 if there is a finding of the severity of --fail-on or worse, so that a
    pipeline can stop before it trains.
    """

    example = """\
check train.txt --test test.txt
check train.txt --fail-on warning
check train.txt --json > findings.json"""
    first = ("test", "fail_on")

    files: DataFiles
    reading: Reading
    test: str | None = text(
        "Test data: find documents and queries of DATA in it, and features that drift.",
        EVALUATION,
        unset="check DATA only",
    )
    test_group: str | None = text(
        "File of query sizes for --test, in the format of --group.", EVALUATION, unset="one query"
    )
    fail_on: str = Parameter(
        choice(("error", "warning")),
        "Exit with code 3 for findings of this severity or worse: error or warning.",
        OUTPUT,
    ).field("error")
    json: bool = json_flag()


class ExplainFlags(CommandFlags):
    """Explain why a model ranks one document of a query above another.

    Prints what each feature contributes to the difference of the two scores, largest first. By
    default the documents are the pair closest to the top that is in the wrong order by the labels,
    or the top two if there is none.
    """

    example = """\
explain model.json test.txt --query 18219
explain model.json test.txt --query 18219 --documents GX003 GX017
explain model.json test.txt --query 18219 --plot why.png"""
    first = ("query", "documents", "top", "plot")
    defaults = (OF_MODEL,)

    model: ModelFile
    data: Annotated[
        list[str],
        argument(
            "DATA",
            "LETOR text, a table, or a store, with or without labels.",
        ),
    ]
    reading: Reading
    query: str | None = text("Query id.", DATA, unset="the only query of DATA")
    documents: tuple[str, str] | None = Parameter(
        or_none(
            Constraint(tuple[str, str], lambda name, value: [TEXT.check(name, v) for v in value])
        ),
        "Two documents. Name each by its position in the ranking by the model (1 is the top), by "
        "its comment, or by one word of the comment, such as the document id.",
        DATA,
        unset="the top pair in the wrong order",
    ).field(None)
    top: int = count(
        "Number of features to show; the contributions of the others are summed.", OUTPUT, 10
    )
    plot: str | None = text(
        "File to plot the contributions to, such as why.png.", OUTPUT, unset="not plotted"
    )
    json: bool = json_flag()


class FeaturesFlags(CommandFlags):
    """Evaluate how well each feature alone ranks the documents, in either direction."""

    example = """\
features train.txt
features train.txt --metric average_precision --plot features.png"""
    first = ("metric", "top", "plot")

    files: DataFiles
    reading: Reading
    metric: OneMetric
    top: int = count("Number of features to show, best first.", OUTPUT, 10)
    plot: str | None = text(
        "File to plot the features to, such as features.png.", OUTPUT, unset="no plot"
    )
    json: bool = json_flag()


class CurveOptions(Flags):
    """Sizes and splits of the curve."""

    sizes: str | None = text(
        "Sizes of the training sets, separated by commas: numbers of queries, or fractions up to "
        "1.",
        CURVE,
        unset="up to six numbers, each twice the previous one, up to all queries",
    )
    folds: int = count(
        "Number of cross-validation folds; with --valid, number of random orders of the queries.",
        CURVE,
        5,
    )
    random_state: int = RANDOM_STATE._replace(panel=CURVE).field(0)
    valid: str | None = text(
        "Validation data to score the models on, instead of folds.",
        EVALUATION,
        unset="folds of DATA",
    )
    valid_group: str | None = text(
        "File of query sizes for --valid, in the format of --group.", EVALUATION, unset="one query"
    )
    plot: str | None = text(
        "File to plot the curve to, such as curve.png.", EVALUATION, unset="no plot"
    )

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid value, or a single fold."""
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

    Models are trained on more and more queries, and scored on other queries. C is adapted to the
    number of pairs, so it has the same effect as in a fit to all data.
    """

    example = """\
learning-curve train.txt
learning-curve train.txt -C 0.01 --valid valid.txt --plot curve.png"""
    first = ("C", "metric", "valid", "sizes", "plot")

    files: DataFiles
    reading: Reading
    parameters: LinearDeclaration
    curve: CurveOptions
    metric: OneMetric
    json: bool = json_flag()
