"""marginrank inspect."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from marginrank._utils.parameters import check_integer
from marginrank.cli.support import models as _models
from marginrank.cli.support.checks import check_files, check_flags_of_data
from marginrank.cli.support.data import kind_of, open_data
from marginrank.cli.support.files import name_of, regular_file
from marginrank.cli.support.flags import flag
from marginrank.cli.support.inspection import describe_data, describe_model, print_data, print_model
from marginrank.cli.support.options import KIND_OF_FLAG, Json, Reading
from marginrank.cli.support.output import print_json
from marginrank.cli.support.progress import Phases

if TYPE_CHECKING:
    from marginrank import RankingData

EXAMPLE = """\
inspect train.txt
inspect model.json --top 20"""


def inspect(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="A model, or data of any kind.", show_default=False),
    ],
    reading: Reading,
    top: Annotated[int, typer.Option(help="How many weights of a model to show.")] = 10,
    json: Json = False,
) -> None:
    """Show what is in data, or in a model."""
    check_integer("top", top, at_least=1)
    check_files([*files, reading.group])
    with ExitStack() as stack:
        paths = [stack.enter_context(regular_file(path)) for path in files]
        models = [name for name, path in zip(files, paths, strict=True) if _is_model(path)]
        if models and len(files) > 1:
            raise ValueError(f"{models[0]} is a model; inspect it alone, and the data alone.")
        if models:
            _show_model(paths[0], reading, top, json)
        else:
            _show_data(files, paths, reading, json)


def _is_model(path: str) -> bool:
    if kind_of(path) != "text":
        return False
    from marginrank.models import is_model

    return is_model(path)


def _show_model(path: str, reading: Reading, top: int, json: bool) -> None:
    for name in KIND_OF_FLAG:
        if name in reading.given:
            raise ValueError(f"{flag(name)} is for data, but {path} is a model; drop it.")
    model = describe_model(_models.load(path), top)
    print_json(model) if json else print_model(model)


def _show_data(files: list[str], paths: list[str], reading: Reading, json: bool) -> None:
    check_flags_of_data(reading.given, files)
    if "top" in reading.given:
        raise ValueError(f"--top is for models, but {files[0]} is data; drop it.")
    data = describe_data(_open(files, paths, reading))
    print_json(data) if json else print_data(data)


def _open(files: list[str], paths: list[str], reading: Reading) -> "RankingData":
    """Open data; what is packed in a store stays on disk if it does not fit in memory."""
    phases = Phases()
    if len(paths) > 1 or kind_of(paths[0]) != "store":
        return open_data(paths, reading, phases, name=name_of(files[0]))
    from marginrank.data.stored_data import open_if_it_fits

    with phases.reading(paths[0]):
        return open_if_it_fits(paths[0])
