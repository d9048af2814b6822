"""Output of the command tune: progress, candidates, and the command that repeats the last fit.

A *candidate* has a value for each parameter that is searched. A *combination* has a value for each
of them except C, so its candidates differ only in C.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from marginrank.cli.flags.declaration import flag
from marginrank.cli.flags.shared import Reading, Training
from marginrank.cli.support.output import EVIDENCE, plus_minus, print_line, print_table
from marginrank.cli.support.streams import write_err
from marginrank.fit.linear import RidgeParameters
from marginrank.models.parameters import AdditiveDeclaration, LinearDeclaration
from marginrank.selection.results import SearchProgress, SearchResult

MOST_ROWS = 30  # most rows in the table of candidates


def parameters_text(values: Mapping[str, Any], varied: Sequence[str]) -> str:
    """Return C and the other searched parameters as text, such as "C=0.01, scale=none"."""
    others = [f", {name}={_word(values[name])}" for name in varied]
    return f"C={values['C']:.4g}" + "".join(others)


def _word(value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return value or "none"
    return f"{value:.4g}"


class Reporter:
    """Display of the progress of a parameter search: a bar on a terminal, else lines on stderr.

    A line is printed for each combination of parameters other than C, or for each outer fold of
    nested cross-validation; if `verbose`, for each candidate. `varied` are the searched parameters
    other than C.
    """

    def __init__(self, bar: Any, varied: Sequence[str], *, verbose: bool) -> None:
        self._bar = bar
        self._varied = varied
        self._verbose = verbose
        self._stretch: tuple[int | None, int] | None = None
        self._last: SearchProgress | None = None

    def __call__(self, progress: SearchProgress) -> None:
        candidate, fold = progress.candidate, progress.outer_fold
        if self._bar is not None:
            self._bar(progress.done, progress.planned, self._best(progress))
        elif not self._verbose:
            stretch = fold, candidate.combination if fold is None else 0
            if stretch != self._stretch:
                self.end()
            self._stretch = stretch
        if self._verbose and candidate.is_complete:
            mean = f"{candidate.mean:.4f}" if candidate.mean == candidate.mean else "-"
            where = "" if fold is None else f"without fold {fold}: "
            values = parameters_text(vars(candidate.parameters), self._varied)
            write_err(f"{where}{values}: {progress.metric} {mean} ({_models_done(progress)})")
        self._last = progress

    def end(self) -> None:
        """Print the state of the search after the last fit, unless it was printed already."""
        if self._last is not None and self._bar is None and not self._verbose:
            write_err(f"{_models_done(self._last)}; {self._best(self._last)}")

    def _best(self, progress: SearchProgress) -> str:
        if progress.best is None:
            return ""
        best = parameters_text(vars(progress.best.parameters), self._varied)
        return f"best so far: {best}, {progress.metric} {progress.mean:.4f}"


def _models_done(progress: SearchProgress) -> str:
    if progress.planned is None:
        return f"{progress.done} models"
    return f"{progress.done} of {progress.planned} models"


def describe(found: SearchResult) -> dict[str, Any]:
    """Return the result of a search as a dictionary, for --json and tables."""
    candidates = [
        {
            **params,
            "combination": candidate.combination,
            "mean": mean,
            "error": error,
            "scores": candidate.scores,
        }
        for params, candidate, mean, error in zip(
            found.params, found.candidates, found.mean, found.error, strict=True
        )
    ]
    nested = None
    if found.nested is not None:
        chosen = [{n: getattr(one, n) for n in found.names} for one in found.nested.parameters]
        nested = {name: getattr(found.nested, name) for name in ("mean", "error", "scores")}
        nested["chosen"] = chosen
    return {
        "metric": found.metric,
        "rule": found.rule,
        "varied": list(found.names),
        "chosen": found.best_index,
        "runner_up": found.runner_up,
        "candidates": candidates,
        "comparison": None if found.comparison is None else asdict(found.comparison),
        "nested": nested,
        "combinations": found.n_combinations,
        "combinations_tried": found.n_tried,
        "candidates_untried": found.n_untried,
        "out_of_time": found.is_out_of_time,
        "interrupted": found.is_interrupted,
    }


def print_tuning(described: Mapping[str, Any]) -> None:
    """Print the result of tune: the selected parameters, comparisons, and a table of candidates."""
    candidates, varied = described["candidates"], described["varied"]
    chosen, metric = candidates[described["chosen"]], described["metric"]
    mean = plus_minus(chosen["mean"], chosen["error"])
    print_line(f"Selected {parameters_text(chosen, varied[1:])}: {metric} {mean}")
    for sentence in sentences(described):
        print_line(sentence)
    print_line("")
    shown = shown_candidates(described)
    marks = {_highest(candidates, range(len(candidates))): "best", described["chosen"]: "chosen"}
    if described["rule"] == "best":
        marks = {described["chosen"]: "best"}
    rows = [
        (
            f"{candidates[k]['C']:.4g}",
            *(_word(candidates[k][name]) for name in varied[1:]),
            plus_minus(candidates[k]["mean"], candidates[k]["error"]),
            marks.get(k, ""),
        )
        for k in shown
    ]
    title = "Candidates"
    if len(shown) < len(candidates):
        title += f" ({len(shown)} of {len(candidates)})"
    if chosen["error"] == chosen["error"]:  # without folds the error is nan
        title += ", mean ± standard error"
    print_table(title, rows, header=(*varied, metric, ""))


def shown_candidates(described: Mapping[str, Any]) -> list[int]:
    """Return the indices of the candidates of a search that are printed as a table.

    If there are many, these are all values of C for the selected combination of the other
    parameters, and the best C for every other combination.
    """
    candidates = described["candidates"]
    order = sorted(
        range(len(candidates)), key=lambda k: (candidates[k]["combination"], candidates[k]["C"])
    )
    if len(order) <= MOST_ROWS:
        return order
    own = candidates[described["chosen"]]["combination"]
    best: dict[int, int] = {}
    for k in order:
        number = candidates[k]["combination"]
        best[number] = _highest(candidates, [best.get(number, k), k])
    return [k for k in order if candidates[k]["combination"] == own or k in best.values()]


def _highest(candidates: Sequence[Mapping[str, Any]], numbers: Iterable[int]) -> int:
    """Return the index of the candidate with the highest mean score; NaN is the lowest."""

    def key(k: int) -> tuple[bool, float]:
        mean = candidates[k]["mean"]
        return mean == mean, mean

    return max(numbers, key=key)


def sentences(described: Mapping[str, Any]) -> list[str]:
    """Return sentences to print about the result of tune.

    Their subjects are the second-best candidate, the estimate by nested cross-validation, and
    candidates that were not tried, if there are any.
    """
    lines = []
    if described["comparison"] is not None:
        lines.append(_against_runner_up(described))
    if described["nested"] is not None:
        lines.append(_by_nested_folds(described))
    if described["candidates_untried"]:
        lines.append(_untried(described))
    return lines


def _by_nested_folds(described: Mapping[str, Any]) -> str:
    chosen, nested = described["candidates"][described["chosen"]], described["nested"]
    bias = "is optimistic" if nested["mean"] < chosen["mean"] else "is not optimistic here"
    return (
        f"Expected {described['metric']} on new queries (nested folds): "
        f"{plus_minus(nested['mean'], nested['error'])}. The mean of the selected candidate, "
        f"{plus_minus(chosen['mean'], chosen['error'])}, {bias}."
    )


def _untried(described: Mapping[str, Any]) -> str:
    untried, n_tried = described["candidates_untried"], len(described["candidates"])
    sentence = f"{untried} of {untried + n_tried} candidates were not tried"
    combinations = described["combinations"] - described["combinations_tried"]
    if combinations:
        sentence += f", including all of {combinations} of {described['combinations']} combinations"
    reason = "the budget was used up" if described["out_of_time"] else "the search was interrupted"
    return f"{sentence}: {reason}."


def _against_runner_up(described: Mapping[str, Any]) -> str:
    candidates, comparison = described["candidates"], described["comparison"]
    chosen, other = (candidates[described[k]] for k in ("chosen", "runner_up"))
    differ = [name for name in described["varied"][1:] if chosen[name] != other[name]]
    a, b = parameters_text(chosen, differ), parameters_text(other, differ)
    # Use the t-test, which also gives the interval. With few queries, the randomization test has no
    # p below 0.05: 5 queries can be swapped in 32 ways only.
    difference, p = comparison["difference"], comparison["t_test_p"]
    low, high = comparison["interval"]
    metric = described["metric"]
    is_evident = p < EVIDENCE
    if difference == 0:
        return f"{a} and {b} have the same {metric}."
    if is_evident:
        verb = "beats" if difference > 0 else "is behind"
        lead = f"{a} {verb} {b} by {abs(difference):.4f} {metric}"
    else:
        side = "higher" if difference > 0 else "lower"
        size = f"{abs(difference):.4f}" if abs(difference) >= 1e-4 else "less than 0.0001"
        lead = f"The mean {metric} with {a} is {size} {side} than with {b}"
    verdict = "." if is_evident else ", which is no evidence of a difference."
    return (
        f"{lead} (p = {p:.2g}, {comparison['confidence']:.0%} confidence interval {low:.4f} … "
        f"{high:.4f}){verdict}"
    )


def train_command(
    files: Sequence[str], reading: Reading, parameters: RidgeParameters, training: Training
) -> str:
    """Return the command (``marginrank train …``) that fits the same model, bit for bit."""
    is_additive = isinstance(parameters, AdditiveDeclaration)
    command = "train-additive" if is_additive else "train"
    declaration = AdditiveDeclaration if is_additive else LinearDeclaration
    words = ["marginrank", command, *files, "--model", training.model]
    read = {field.name for field in fields(Reading)} & reading.given
    words += _spelled({name: getattr(reading, name) for name in sorted(read)})
    changed = {
        field.name: getattr(parameters, field.name)
        for field in fields(declaration)
        if field.name == "C" or getattr(parameters, field.name) != field.default
    }
    words += _spelled({name: value for name, value in changed.items() if name != "n_jobs"})
    if "random_state" in reading.given:
        words += _spelled({"random_state": training.random_state})
    return shlex.join(words)


def _spelled(values: Mapping[str, Any]) -> list[str]:
    """Return flags and their values as words of a command, with all digits of numbers."""
    words = []
    for name, value in values.items():
        words.append(flag(name))
        if value is not True:
            words.append(repr(value) if isinstance(value, float) else str(value))
    return words
