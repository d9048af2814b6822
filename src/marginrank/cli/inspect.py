"""marginrank inspect."""

from typing import Annotated

import typer

from marginrank.cli import _models
from marginrank.cli._data import kind_of, open_data
from marginrank.cli._inspection import describe_data, describe_model, print_data, print_model
from marginrank.cli._options import Json, Reading, reads_data
from marginrank.cli._output import print_json
from marginrank.cli._progress import Phases

EXAMPLE = """\
inspect train.txt
inspect model.json --top 20"""


@reads_data
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
    if len(files) == 1 and _is_model(files[0]):
        model = describe_model(_models.load(files[0]), top)
        print_json(model) if json else print_model(model)
        return
    data = describe_data(open_data(files, reading, Phases()))
    print_json(data) if json else print_data(data)


def _is_model(path: str) -> bool:
    if path == "-" or kind_of(path) != "text":
        return False
    from marginrank.models import is_model

    return is_model(path)
