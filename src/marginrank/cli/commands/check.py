"""The command ``marginrank check``: find defects of data."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import typer

from marginrank.cli.flags.inspection import CheckFlags
from marginrank.cli.support.checks import check_files, check_flags
from marginrank.cli.support.data import (
    DataRequest,
    data_summary,
    open_any_size,
    open_held_out,
)
from marginrank.cli.support.errors import FOUND
from marginrank.cli.support.output import print_json, print_line, print_table
from marginrank.cli.support.progress import Phases
from marginrank.health import Finding, check_data
from marginrank.health.finding import SEVERITIES


def run(flags: CheckFlags, phases: Phases) -> None:
    """Print the defects of data; exit with code 3 if one is at least as severe as --fail-on."""
    files, reading = flags.files, flags.reading
    check_flags(reading.given, files, test=flags.test, needs=[("test_group", "test")])
    check_files([*files, flags.test, reading.group, flags.test_group])
    train = open_any_size(files, reading, phases, DataRequest(missing=True))
    request = DataRequest(
        train.n_features, train.feature_names, missing=True, owner="the training data"
    )
    test = open_held_out("test", flags.test, flags.test_group, reading, phases, request)
    with phases.phase("check"):
        found = check_data(train, test)
    failing = SEVERITIES[: SEVERITIES.index(flags.fail_on) + 1]
    failed = any(finding.severity in failing for finding in found)
    result = {
        "data": data_summary(train),
        "test": None if test is None else data_summary(test),
        "findings": [finding.to_dict() for finding in found],
        "failed": failed,
        "seconds": phases.seconds,
    }
    print_json(result) if flags.json else _print(found, result)
    if failed:
        raise typer.Exit(FOUND)


def _print(found: Sequence[Finding], result: Mapping[str, Any]) -> None:
    for (severity, code), group in groupby(found, lambda one: (one.severity, one.code)):
        findings = list(group)
        rows = [(_message(one),) for one in findings]
        advice = dict.fromkeys(one.advice for one in findings)
        print_table(f"{severity}: {code}", [*rows, *((f"→ {text}",) for text in advice)])
    counts = [sum(one.severity == severity for one in found) for severity in SEVERITIES]
    numbers = [
        f"{n:,} {severity}{'s' if n != 1 else ''}"
        for n, severity in zip(counts, SEVERITIES, strict=True)
    ]
    data = result["data"]
    print_line(
        f"{', '.join(numbers)} in {data['documents']:,} documents, {data['queries']:,} queries "
        f"and {data['features']:,} features"
    )


def _message(finding: Finding) -> str:
    is_file = finding.place in ("train", "test")
    return f"{finding.place}: {finding.message}" if is_file else finding.message
