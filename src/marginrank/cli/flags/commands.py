"""Flags, help and examples of the commands that do not train."""

from typing import Annotated

import typer

from marginrank._utils.parameters import (
    TEXT,
    Parameter,
    choice,
)
from marginrank.cli.flags.declaration import CommandFlags
from marginrank.cli.flags.shared import (
    DATA,
    EVALUATION,
    OF_MODEL,
    OUTPUT,
    DataFiles,
    Metrics,
    ModelFile,
    OneMetric,
    Reading,
    argument,
    count,
    json_flag,
    switch,
    text,
)
from marginrank.export.registry import FUSION_TARGETS, TARGETS
from marginrank.models.fusion_parameters import FusionDeclaration
from marginrank.models.parameters import RANDOM_STATE

RUN_FILE = "TREC run (query Q0 document rank score tag), or JSON {query: {document: score}}"
QRELS = text(
    "Judgments for runs: TREC qrels (query 0 document label), or JSON {query: {document: label}}.",
    EVALUATION,
    unset="required with runs",
)
OF_RUNS = ("gain", "exponential; linear with runs")
UNJUDGED = Parameter(
    choice(("irrelevant", "skip")),
    "Unjudged documents of a run: irrelevant (they get label 0) or skip (they are removed).",
    EVALUATION,
).field("irrelevant")
PROGRAMS = ("svm_rank_learn", "svm_rank_classify", "train", "predict")


class PredictFlags(CommandFlags):
    """Print the score of each document, one per line, in the order of DATA.

    Higher scores rank first within a query.
    """

    example = """\
predict model.json test.txt --out scores.txt
predict model.json test.txt --ranks
predict - test.txt < model.json"""
    defaults = (OF_MODEL,)
    first = ("out", "ranks")

    model: ModelFile
    data: DataFiles
    reading: Reading
    out: str | None = text("File to write to.", OUTPUT, unset="standard output")
    ranks: bool = switch("Print ranks within the query (1 is best) instead of scores.")
    json: bool = json_flag()


class EvaluateFlags(CommandFlags):
    """Evaluate a model or a file of scores on labeled data, or a run with relevance judgments."""

    example = """\
evaluate model.json test.txt --metrics ndcg@10,average_precision
evaluate --scores scores.txt test.txt --per-query by_query.tsv
evaluate --run bm25.run --qrels qrels.txt --metrics ndcg@10,judged@10"""
    first = ("metrics", "scores", "run", "qrels", "per_query")
    defaults = (
        OF_MODEL,
        OF_RUNS,
        (
            "metrics",
            "ndcg@1,5,10, average_precision, reciprocal_rank, pairwise_accuracy; with --run: "
            "ndcg@10, average_precision, reciprocal_rank, recall@100, judged@10",
        ),
    )

    files: Annotated[
        list[str] | None,
        argument(
            "[MODEL] [DATA]", "A model and data; with --scores only data; with --run neither."
        ),
    ] = None
    reading: Reading
    metrics: Metrics
    scores: str | None = text("File with one score per line.", EVALUATION, unset="scores by MODEL")
    run: str | None = text(f"{RUN_FILE}.", EVALUATION, unset="evaluate MODEL or --scores")
    qrels: str | None = QRELS
    unjudged: str = UNJUDGED
    per_query: str | None = text(
        "File to write the metrics of each query to, .tsv or .csv.", OUTPUT, unset="not written"
    )
    json: bool = json_flag()


class CompareFlags(CommandFlags):
    """Test whether one ranking is better than another, with paired tests over the queries.

    The rankings a and b are each a model or a file of scores for DATA, or both are runs.
    """

    example = """\
compare test.txt --model-a old.json --model-b new.json
compare test.txt --scores-a old.txt --scores-b new.txt
compare --run-a bm25.run --run-b hybrid.run --qrels qrels.txt"""
    first = ("model_a", "scores_a", "model_b", "scores_b", "metric")
    defaults = (OF_MODEL, OF_RUNS)

    data: Annotated[
        list[str] | None, argument("[DATA]", "Labeled data; omit it with --run-a and --run-b.")
    ] = None
    reading: Reading
    metric: OneMetric
    model_a: str | None = text("Model file of ranking a.", EVALUATION, unset="use --scores-a")
    scores_a: str | None = text(
        "File with the scores of ranking a, one per line.", EVALUATION, unset="use --model-a"
    )
    model_b: str | None = text("Model file of ranking b.", EVALUATION, unset="use --scores-b")
    scores_b: str | None = text(
        "File with the scores of ranking b, one per line.", EVALUATION, unset="use --model-b"
    )
    run_a: str | None = text(
        f"Ranking a as a run: {RUN_FILE}.", EVALUATION, unset="compare with DATA"
    )
    run_b: str | None = text(
        f"Ranking b as a run: {RUN_FILE}.", EVALUATION, unset="compare with DATA"
    )
    qrels: str | None = QRELS
    unjudged: str = UNJUDGED
    json: bool = json_flag()


class ReportFlags(CommandFlags):
    """Write an HTML page about how well a model ranks, where it fails and why.

    The page is one file that opens offline. It shows metrics with confidence intervals, each query,
    explanations, features, groups of queries, checks of the data, and sliders to change the
    weights. A .json file next to it holds the numbers of the report.
    """

    example = """\
report model.json test.txt --out report.html
report model.json test.txt --baseline bm25.txt --train train.txt --out r.html
report --from report.json --out report.html"""
    first = ("out", "baseline", "train", "qrels", "metric")
    defaults = (OF_MODEL,)

    files: Annotated[
        list[str] | None,
        argument("[MODEL] [DATA]", "A model and labeled data; omit both with --from."),
    ] = None
    reading: Reading
    metric: OneMetric
    out: str = Parameter(TEXT, "File to write the page to.", OUTPUT).field()
    baseline: str | None = text(
        "Baseline to compare with: a model file, or a file with one score per line.",
        EVALUATION,
        unset="no comparison",
    )
    train: str | None = text(
        "Training data: adds a learning curve of linear models, and checks DATA against them.",
        EVALUATION,
        unset="no training data",
    )
    qrels: str | None = text(
        "Relevance judgments (TREC qrels or JSON): adds judged@10 and marks unjudged documents. "
        "The "
        "comments of DATA must be document ids.",
        EVALUATION,
        unset="no judgments",
    )
    record: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="The .json file of a report, to write its page again; needs no model or data.",
            rich_help_panel=OUTPUT,
            show_default="a new report",
        ),
    ] = None
    random_state: int = RANDOM_STATE._replace(panel=EVALUATION).field(0)
    json: bool = json_flag()


class FuseFlags(CommandFlags):
    """Learn the weights of hybrid search from runs and relevance judgments.

    The first line of the output states whether learned weights are better than reciprocal rank
    fusion (RRF), by cross-validation over the queries.
    """

    example = """\
fuse bm25.run dense.run --qrels qrels.txt --model fusion.json
fuse title=t.run body=b.run --qrels qrels.txt --normalizer minmax,rrf
fuse bm25.run dense.run --qrels q.txt --to opensearch --out pipeline.json"""
    first = ("qrels", "model", "normalizer", "metric")

    runs: Annotated[
        list[str],
        argument(
            "RUN",
            f"{RUN_FILE}. Each run is a signal, named after the file; NAME=FILE sets the name.",
        ),
    ]
    qrels: str = Parameter(
        TEXT,
        "Judgments: TREC qrels (query 0 document label), or JSON {query: {document: label}}.",
        DATA,
    ).field()
    parameters: FusionDeclaration
    query_features: str | None = text(
        "JSON file {query: {feature: number}}: query features on which the weights depend.",
        DATA,
        unset="the same weights for all queries",
    )
    random_state: int = RANDOM_STATE.field(0)
    model: str | None = text("File to write the model to.", OUTPUT, unset="not written")
    to: str | None = text(
        f"Search engine whose settings --out gets: {', '.join(FUSION_TARGETS)}.",
        OUTPUT,
        unset="no settings",
    )
    out: str | None = text(
        "File to write the settings of the search engine --to to.", OUTPUT, unset="no settings"
    )
    json: bool = json_flag()


class ExportFlags(CommandFlags):
    """Write a model for a search engine, a database or another language."""

    example = """\
export model.json --to elasticsearch --out ranker.json
export model.json --to sqlite --out ranker.sql --verify test.txt
export m.json --to lucene --out r.txt --offset auto --verify t.txt
export fusion.json --to opensearch --out pipeline.json"""
    first = ("to", "out", "verify", "names", "offset")
    defaults = (OF_MODEL,)

    model: ModelFile
    reading: Reading
    to: str = Parameter(
        TEXT,
        f"Format to export to: {', '.join(TARGETS)} (sql needs a dialect: sql:mysql). Fusion "
        "models: "
        f"{', '.join(FUSION_TARGETS)}.",
        OUTPUT,
    ).field()
    out: str = Parameter(
        TEXT, "File to write to; any further files of the target are written next to it.", OUTPUT
    ).field()
    name: str | None = text(
        "Name of the model in the exported file.", OUTPUT, unset="from the file name of --out"
    )
    names: str | None = text(
        "JSON file with the names that the target uses for features or signals: a list, or an "
        "object {name in the model: name in the target}.",
        OUTPUT,
        unset="names of the model, or f1, f2, ...",
    )
    offset: str = text(
        "Number to add to every score, for engines that reject negative scores; auto: a number "
        "that "
        "makes all scores on the data of --verify positive.",
        OUTPUT,
        default="0",
    )
    verify: str | None = text(
        "Data to test the exported file on: its scores, computed by the engine or a reference "
        "implementation, must agree with the scores of the model.",
        OUTPUT,
        unset="not checked",
    )
    json: bool = json_flag()


class CompatFlags(CommandFlags):
    """Run as a drop-in replacement for the programs of SVM^rank and LIBLINEAR-ranksvm.

    Flags, files and the meaning of -c are the same as in these programs. An unsupported flag is an
    error.
    """

    example = """\
compat svm_rank_learn -c 20.0 train.dat model.dat
compat svm_rank_classify test.dat model.dat predictions
compat train -s 8 -c 1 train.txt train.txt.model
compat predict test.txt train.txt.model output"""

    program: Annotated[str, argument("PROGRAM", f"One of {', '.join(PROGRAMS)}.")]
    words: Annotated[
        list[str] | None,
        argument("[FLAGS] FILES", "Flags and files of that program; -? lists its flags."),
    ] = None


class DemoFlags(CommandFlags):
    """Train models on synthetic data, and compare them with baselines on other queries.

    Takes a few seconds and needs no files. If LightGBM or XGBoost is installed, its ranker is one
    of the baselines.
    """

    example = "demo --plot curves.png"

    n_queries: int = count("Number of training queries.", DATA, 400, at_least=2, at_most=10**5)
    random_state: int = RANDOM_STATE._replace(panel=DATA).field(0)
    plot: str | None = text(
        "File to plot the additive model to, such as curves.png.", OUTPUT, unset="no plot"
    )
    json: bool = json_flag()
