"""Checks before a command starts: flags that do not apply, and files that it would overwrite."""

import os
import stat
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from marginrank._utils.optional import require
from marginrank.cli.flags.declaration import flag
from marginrank.cli.flags.shared import KIND_OF_FLAG
from marginrank.cli.support.data import kind_of
from marginrank.cli.support.files import name_of, plot_format
from marginrank.cli.support.streams import check_stdout

CALLED = {"text": "text", "table": "a table", "store": "a store"}
STORES_ONLY = {"memory_limit", "dask"}

Pairs = Iterable[tuple[str, str]]  # pairs of flags


def check_run_flags(
    given: Collection[str],
    files: Sequence[str] | None,
    needed: Collection[str],
    excluded: Collection[str],
) -> None:
    """Raise ValueError if a command that evaluates TREC runs also got data files or other flags.

    `excluded` are flags that cannot be combined with runs, `needed` are flags that must be given.
    """
    if files:
        raise ValueError(
            f"{files[0]}: runs are evaluated without data files, on --qrels; drop this file."
        )
    for name in needed:
        if name not in given:
            raise ValueError(f"runs need {' and '.join(map(flag, needed))}; add {flag(name)}.")
    for name in (*excluded, *KIND_OF_FLAG):
        if name in given:
            raise ValueError(f"{flag(name)} does not apply to runs; drop it.")


def check_flags(
    given: Collection[str],
    files: Sequence[str],
    *,
    valid: str | None = None,
    test: str | None = None,
    needs: Pairs = (),
    conflicts: Pairs = (),
    writes: Collection[str] = (),
) -> None:
    """Raise ValueError for a flag that does not apply to the other flags or to the kind of data.

    `given` are the flags that the user has written; `files`, `valid` and `test` are the data files.
    `needs` are pairs of flags of which the first requires the second; `conflicts` are pairs that
    exclude each other. `writes` are flags that describe the output, so they apply to any kind of
    input.
    """
    for name, other in conflicts:
        if name in given and other in given:
            raise ValueError(f"{flag(name)} cannot be combined with {flag(other)}; drop one.")
    for name, other in needs:
        if name in given and other not in given:
            raise ValueError(f"{flag(name)} needs {flag(other)}.")
    others = {name: path for name, path in (("valid", valid), ("test", test)) if path is not None}
    for name, kind in KIND_OF_FLAG.items():
        described = files if name == "group" else [*files, *others.values()]
        if name in given and name not in writes and kind not in map(kind_of, described):
            _raise_wrong_kind(name, kind, described[0])
    for name, path in others.items():
        if f"{name}_group" in given and kind_of(path) != "text":
            _raise_wrong_kind(f"{name}_group", "text", path)
    for name in STORES_ONLY.intersection(given):
        for path in files:
            kind = kind_of(path)
            if kind != "store" and (path == "-" or os.path.exists(path)):
                raise ValueError(
                    f"{flag(name)} is for a store, but {name_of(path)} is {CALLED[kind]}; write "
                    f"one with: marginrank convert {path} NEW.store, and train on that."
                )


def _raise_wrong_kind(name: str, kind: str, path: str) -> None:
    plural = {"text": "text", "table": "tables"}[kind]
    raise ValueError(
        f"{flag(name)} is for {plural}, but {path} is {CALLED[kind_of(path)]}; drop {flag(name)}."
    )


def check_only_with(
    given: Collection[str], parameters: Any, only_with: Iterable[tuple[str, str, Sequence[str]]]
) -> None:
    """Raise ValueError for a flag that has no effect with the value of another parameter.

    `only_with` has triples: a flag, another parameter, and the values of this parameter with which
    the flag has an effect.
    """
    for name, other, values in only_with:
        value = getattr(parameters, other)
        if name in given and value not in values:
            spelled = flag(f"no_{name}" if getattr(parameters, name) is False else name)
            raise ValueError(
                f"{spelled} has no effect with {flag(other)} {value}; it needs "
                f"{flag(other)} {' or '.join(values)}."
            )


def check_writable(path: str | None, *, folder: bool = False) -> None:
    """Raise ValueError if a file (or a folder, if `folder`) cannot be written to this path."""
    if path is None:
        return
    if path == "-":
        raise ValueError('"-" is standard input; name a file to write to.')
    if not path:
        raise ValueError("the name of an output file is empty; pass a file name.")
    if not Path(path).parent.is_dir():
        raise ValueError(f"{path}: the folder {Path(path).parent} does not exist.")
    if Path(path).is_dir() and not folder:
        raise ValueError(f"{path} is a folder; name a file to write to.")
    is_device = Path(path).exists() and not Path(path).is_file() and not folder
    place = path if is_device else os.path.dirname(os.path.realpath(path))
    if not os.access(place, os.W_OK):
        raise ValueError(f"{path}: {place} is not writable.")


def check_plot(path: str | None) -> None:
    """Raise an error if matplotlib is missing, or cannot write a plot to this path."""
    if path is None:
        return
    check_writable(path)
    formats = require("matplotlib.backend_bases", "plot").FigureCanvasBase.get_supported_filetypes()
    if plot_format(path) not in formats:
        raise ValueError(f"{path} must end in one of {', '.join(f'.{f}' for f in formats)}.")


def check_files(
    inputs: Iterable[str | None], outputs: Iterable[str | None] = (), *, prints: bool = True
) -> None:
    """Raise an error if an input is missing, or an output would overwrite an input or output.

    `prints` is False if the command does not write to standard output.
    """
    if prints:
        check_stdout()
    read = [path for path in inputs if path is not None]
    if read.count("-") > 1:
        raise ValueError('"-" is given twice, but standard input can be read only once.')
    states = {path: _state(path) for path in read}
    written = [path for path in outputs if path is not None]
    for number, out in enumerate(written):
        for path, state in states.items():
            if _overwrites(out, state):
                raise ValueError(f"{out} would overwrite the input {path}; write to another file.")
        if os.path.realpath(out) in map(os.path.realpath, written[:number]):
            raise ValueError(f"{out} is given as two outputs; use different files.")
    for path, state in states.items():
        if _is_stored(state) and os.path.samestat(os.fstat(1), state):
            raise ValueError(f"standard output goes to the input {path}; redirect it elsewhere.")


def _state(path: str) -> os.stat_result:
    if path != "-":
        return os.stat(path)
    if sys.stdin is None:
        raise ValueError("standard input is closed; name a file to read.")
    return os.fstat(0)


def _is_stored(state: os.stat_result) -> bool:
    """Return True for the stat result of a file or folder, False for a pipe or terminal."""
    return stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)


def _overwrites(out: str, state: os.stat_result) -> bool:
    """Return True if writing to `out` would overwrite an input, given by its stat result.

    `out` may be the input itself or, if the input is a folder, inside of it.
    """
    if not _is_stored(state):
        return False
    place = Path(os.path.realpath(out))
    inside = place.parents if stat.S_ISDIR(state.st_mode) else []
    return any(p.exists() and os.path.samestat(p.stat(), state) for p in (place, *inside))
