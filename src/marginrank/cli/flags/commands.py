"""Flags, help and examples of the commands that use models (predict, evaluate, export, …)."""

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
from marginrank.models.fusion_parameters import FUSION, FusionDeclaration
from marginrank.models.parameters import RANDOM_STATE

RUN_FILE = "TREC run (query Q0 document rank score tag) or JSON {query: {document: score}}"
QRELS_FILE = "TREC qrels (query 0 document label) or JSON {query: {document: label}}"
QRELS = text(
    f"Relevance judgments for runs: {QRELS_FILE}.", EVALUATION, unset="none; required for runs"
)
OF_RUNS = ("gain", "exponential; linear for runs")
UNJUDGED = Parameter(
    choice(("irrelevant", "skip")),
    "What to do with documents of a run that have no judgment: irrelevant (give them label 0) or "
    "skip (remove them).",
    EVALUATION,
).field("irrelevant")


class PredictFlags(CommandFlags):
    """Score documents with a model: print one score per line, in the order of DATA.

    Within a query, the document with the highest score ranks first.
    """

    example = """\
# Write the scores to a file
predict model.json test.txt --out scores.txt
# Print ranks instead of scores
predict model.json test.txt --ranks"""
    defaults = (OF_MODEL,)
    first = ("out", "ranks")

    model: ModelFile
    data: DataFiles
    reading: Reading
    out: str | None = text("File to write the scores to.", OUTPUT, unset="standard output")
    ranks: bool = switch("Print the rank within the query (1 is the top) instead of the score.")
    json: bool = json_flag()


class EvaluateFlags(CommandFlags):
    """Print NDCG and other metrics of a model, of scores, or of a run, averaged over queries.

    There are three ways to call it: with MODEL and DATA; with --scores and DATA; or with --run and
    --qrels, without MODEL and DATA.
    """

    example = """\
# A model on labeled data
evaluate model.json test.txt --metrics ndcg@10,average_precision
# Scores of another program, one per line of DATA
evaluate --scores scores.txt test.txt
# A run of a search engine
evaluate --run bm25.run --qrels qrels.txt"""
    first = ("metrics", "scores", "run", "qrels", "per_query")
    defaults = (
        OF_MODEL,
        OF_RUNS,
        (
            "metrics",
            "ndcg@1, ndcg@5, ndcg@10, average_precision, reciprocal_rank, pairwise_accuracy; for "
            "runs: ndcg@10, average_precision, reciprocal_rank, recall@100, judged@10 (share of "
            "the top 10 that is judged)",
        ),
    )

    files: Annotated[
        list[str] | None,
        argument(
            "[MODEL] [DATA]",
            "Model file, and labeled data (LETOR text, table or store). Omit MODEL with --scores, "
            "and both with --run.",
        ),
    ] = None
    reading: Reading
    metrics: Metrics
    scores: str | None = text(
        "Evaluate the scores in this file, one per document of DATA.",
        EVALUATION,
        unset="scores of MODEL",
    )
    run: str | None = text(
        f"Evaluate this run: {RUN_FILE}.", EVALUATION, unset="evaluate MODEL or --scores"
    )
    qrels: str | None = QRELS
    unjudged: str = UNJUDGED
    per_query: str | None = text(
        "Also write the metrics of each query to this .tsv or .csv file.",
        OUTPUT,
        unset="not written",
    )
    json: bool = json_flag()


class CompareFlags(CommandFlags):
    """Test whether ranking b is better than ranking a, with paired tests over the queries.

    Each ranking comes from a model or a file of scores (both for DATA), or is a run.
    """

    example = """\
# Two models on the same test data
compare test.txt --model-a old.json --model-b new.json
# A model against scores of another program
compare test.txt --scores-a lambdamart.txt --model-b new.json
# Two runs of search engines
compare --run-a bm25.run --run-b hybrid.run --qrels qrels.txt"""
    first = ("model_a", "scores_a", "model_b", "scores_b", "metric")
    defaults = (OF_MODEL, OF_RUNS)

    data: Annotated[
        list[str] | None,
        argument(
            "[DATA]",
            "Labeled data (LETOR text, table or store). Omit it for runs.",
        ),
    ] = None
    reading: Reading
    metric: OneMetric
    model_a: str | None = text(
        "Model that computes ranking a (or pass --scores-a or --run-a).", EVALUATION, unset="none"
    )
    scores_a: str | None = text(
        "File with the scores of ranking a, one per document of DATA.",
        EVALUATION,
        unset="none",
    )
    model_b: str | None = text(
        "Model that computes ranking b (or pass --scores-b or --run-b).", EVALUATION, unset="none"
    )
    scores_b: str | None = text(
        "File with the scores of ranking b, one per document of DATA.",
        EVALUATION,
        unset="none",
    )
    run_a: str | None = text(f"Run to use as ranking a: {RUN_FILE}.", EVALUATION, unset="none")
    run_b: str | None = text("Run to use as ranking b, like --run-a.", EVALUATION, unset="none")
    qrels: str | None = QRELS
    unjudged: str = UNJUDGED
    json: bool = json_flag()


class ReportFlags(CommandFlags):
    """Write an HTML report: how well a model ranks, for which queries it fails, and why.

    It shows metrics with confidence intervals, the ranking of each query with explanations,
    the features, groups of queries and problems of the data. Sliders change the weights of the
    model. The report is one file that opens offline, with its numbers in a .json file next to it.
    """

    example = """\
report model.json test.txt --out report.html
# Compare with the scores of a baseline
report model.json test.txt --baseline bm25.txt --out r.html
# Write the page again from its numbers
report --from report.json --out report.html"""
    first = ("out", "baseline", "train", "qrels", "metric")
    defaults = (OF_MODEL,)

    files: Annotated[
        list[str] | None,
        argument(
            "[MODEL] [DATA]",
            "Model file, and labeled data (LETOR text, table or store). Omit both with --from.",
        ),
    ] = None
    reading: Reading
    metric: OneMetric
    out: str = Parameter(TEXT, "HTML file to write.", OUTPUT, metavar="FILE").field()
    baseline: str | None = text(
        "Baseline to compare with: a model file, or a file with one score per document of DATA.",
        EVALUATION,
        unset="no comparison",
    )
    train: str | None = text(
        "Training data of MODEL: add a learning curve, and check whether DATA overlap with them or "
        "are distributed differently.",
        EVALUATION,
        unset="neither",
    )
    qrels: str | None = text(
        f"Relevance judgments, to mark documents without judgment: {QRELS_FILE}. The comments of "
        "DATA must be document ids.",
        EVALUATION,
        unset="nothing is marked",
    )
    record: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Read the numbers of an earlier report from this .json file and write only its "
            "HTML page; MODEL and DATA are not needed. [default: a new report]",
            rich_help_panel=OUTPUT,
            show_default=False,
            metavar="FILE",
        ),
    ] = None
    random_state: int = RANDOM_STATE._replace(panel=EVALUATION).field(0)
    json: bool = json_flag()


class FuseFlags(CommandFlags):
    """Learn weights to combine runs (such as BM25 and dense retrieval) into a hybrid search.

    The score of a document is the weighted sum of its normalized scores in the runs. The first line
    of the output states whether this beats reciprocal rank fusion (RRF), by cross-validation over
    the queries.
    """

    example = """\
fuse bm25.run dense.run --qrels qrels.txt --model fusion.json
# Also write settings for a search engine
fuse bm25.run dense.run --qrels q.txt --to opensearch --out o.json
# Name the runs, and let cross-validation choose the normalization
fuse title=t.run body=b.run --qrels q.txt --normalizer minmax,rrf"""
    first = ("qrels", "model", "metric", "to", "out")

    runs: Annotated[
        list[str],
        argument(
            "RUN",
            f"{RUN_FILE}. A run is named after its file; NAME=FILE gives it another name.",
        ),
    ]
    qrels: str = Parameter(
        TEXT, f"Relevance judgments: {QRELS_FILE}.", FUSION, metavar="FILE"
    ).field()
    parameters: FusionDeclaration
    query_features: str | None = text(
        "Let the weights depend on features of the query: JSON {query: {feature: number}}.",
        FUSION,
        unset="same weights for all queries",
    )
    random_state: int = RANDOM_STATE._replace(panel=FUSION).field(0)
    model: str | None = text("File to write the fusion model to.", OUTPUT, unset="not written")
    to: str | None = text(
        "Also write the learned weights as settings of this search engine: "
        f"{', '.join(FUSION_TARGETS)}.",
        OUTPUT,
        unset="no settings",
        metavar="ENGINE",
    )
    out: str | None = text(
        "File to write the settings of the search engine to; needs --to.",
        OUTPUT,
        unset="no settings",
    )
    json: bool = json_flag()


class ExportFlags(CommandFlags):
    """Write a model in the format of a search engine, a database or a programming language."""

    example = """\
export model.json --to elasticsearch --out ranker.json
# Check that SQLite computes the same scores on test data
export model.json --to sqlite --out ranker.sql --verify test.txt
# A model of marginrank fuse
export fusion.json --to opensearch --out pipeline.json"""
    first = ("to", "out", "verify", "names", "offset")
    defaults = (OF_MODEL,)

    model: ModelFile
    reading: Reading
    to: str = Parameter(
        TEXT,
        f"Format: {', '.join(TARGETS)}; sql needs a dialect, such as sql:mysql. For models of "
        f"marginrank fuse: {', '.join(FUSION_TARGETS)}.",
        OUTPUT,
        metavar="FORMAT",
    ).field()
    out: str = Parameter(
        TEXT,
        "File to write; if the format needs more files, they are written next to it.",
        OUTPUT,
        metavar="FILE",
    ).field()
    name: str | None = text(
        "Name of the model in the exported file.",
        OUTPUT,
        unset="name of the file --out",
        metavar="NAME",
    )
    names: str | None = text(
        "JSON file with other names for the features: a list, or an object {name in the model: "
        "name in the exported file}.",
        OUTPUT,
        unset="names in the model, or f1, f2, ...",
    )
    offset: str = text(
        "Number to add to every score, because some engines reject negative scores; auto: enough "
        "to make all scores on --verify positive.",
        OUTPUT,
        default="0",
        metavar="NUMBER",
    )
    verify: str | None = text(
        "Run the exported file on these data, and fail if its scores differ from the scores of the "
        "model.",
        OUTPUT,
        unset="not checked",
    )
    json: bool = json_flag()


class CompatFlags(CommandFlags):
    """Replace the programs of SVM^rank or LIBLINEAR-ranksvm: same flags, same files.

    Write "marginrank compat" in front of a command line of these programs. Flags that are not
    supported raise an error.
    """

    example = """\
# SVM^rank
compat svm_rank_learn -c 20.0 train.dat model.dat
compat svm_rank_classify test.dat model.dat predictions
# LIBLINEAR-ranksvm
compat train -s 8 -c 1 train.txt train.txt.model
compat predict test.txt train.txt.model output
# The flags of a program
compat svm_rank_learn -?"""

    program: Annotated[
        str,
        argument(
            "PROGRAM",
            "svm_rank_learn or svm_rank_classify of SVM^rank; train or predict of "
            "LIBLINEAR-ranksvm.",
        ),
    ]
    words: Annotated[
        list[str] | None,
        argument("[OPTIONS] FILES", "Flags and files of that program, as in its manual."),
    ] = None


class DemoFlags(CommandFlags):
    """Train models on synthetic data, and compare them with baselines on test queries.

    It takes a few seconds and needs no files. If LightGBM or XGBoost is installed, its ranker is
    one of the baselines.
    """

    example = """\
demo
demo --plot curves.png"""
    first = ("n_queries", "random_state", "plot")

    n_queries: int = count("Number of training queries.", DATA, 400, at_least=2, at_most=10**5)
    random_state: int = RANDOM_STATE._replace(panel=DATA).field(0)
    plot: str | None = text(
        "Image file for the curves of the additive model, such as curves.png.",
        OUTPUT,
        unset="no image",
    )
    json: bool = json_flag()
