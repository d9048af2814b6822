"""Summary of additive models as text, with curves drawn in characters."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from marginrank._utils.feature_names import name_of
from marginrank.cli.support.output import print_table
from marginrank.models.additive_model import AdditiveModel, Curve, Interaction

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 32  # most characters of a curve
SHADES = " ░▒▓█"


def describe_curves(model: AdditiveModel, top: int) -> dict[str, Any]:
    """Return a summary of an additive model: parameters, and the curves with the largest range."""
    names = model.feature_names
    order = sorted(range(model.n_features), key=lambda k: -model.curves[k].spread)
    return {
        "kind": "AdditiveRankSVM",
        "features": model.n_features,
        "features_in_use": sum(bool(c.missing or c.values.any()) for c in model.curves),
        "knots": sum(curve.knots.size for curve in model.curves),
        "parameters": model.parameters,
        "top_curves": [
            {
                "feature": name_of(k, names),
                "spread": model.curves[k].spread,
                "knots": model.curves[k].knots.tolist(),
                "values": model.curves[k].values.tolist(),
                "missing": model.curves[k].missing,
                "categorical": model.curves[k].categorical,
                "curve": _bars(model.curves[k]),
            }
            for k in order[:top]
        ],
        "interactions": [_described(one, names) for one in model.interactions],
    }


def _described(one: Interaction, names: Sequence[str] | None) -> dict[str, Any]:
    return {
        "features": [name_of(k, names) for k in one.features],
        "spread": one.spread,
        "knots": [knots.tolist() for knots in one.knots],
        "values": one.values.tolist(),
        "categorical": list(one.categorical),
        "map": _map(one),
    }


def _map(one: Interaction) -> list[str]:
    """Return the values of an interaction of two features drawn as lines of shaded characters.

    There is one line per knot of the first feature, with its largest knot on top.
    """
    values = one.values[1:, 1:]
    low, spread = float(values.min()), one.spread
    share = np.zeros(values.shape) if spread == 0 else (values - low) / spread
    shades = np.rint(share * (len(SHADES) - 1)).astype(int)
    return ["".join(SHADES[shade] for shade in line) for line in shades[::-1]]


def _bars(curve: Curve) -> str:
    """Return the values of a curve at its knots drawn as at most 32 bar characters."""
    values = curve.values
    if values.size > WIDTH:
        values = np.interp(np.linspace(0, values.size - 1, WIDTH), np.arange(values.size), values)
    low, spread = float(values.min()), float(np.ptp(values))
    share = np.zeros(values.size) if spread == 0 else (values - low) / spread
    return "".join(BARS[int(height)] for height in np.rint(share * (len(BARS) - 1)))


def print_curves(model: Mapping[str, Any]) -> None:
    """Print the summary of an additive model, from :func:`describe_curves`, as tables."""
    counts = ("features", "features_in_use", "knots")
    rows = [(name.replace("_", " "), model[name]) for name in counts]
    print_table(model["kind"], [*rows, *model["parameters"].items()])
    shown = [
        (one["feature"], one["spread"], _range(one), one["curve"]) for one in model["top_curves"]
    ]
    header = ("feature", "effect", "feature from … to", "curve, low to high")
    title = "Curves with the largest effect (highest minus lowest value)"
    print_table(title, shown, header=header)
    for one in model["interactions"]:
        _print_map(one)


def _print_map(one: Mapping[str, Any]) -> None:
    first, second = one["features"]
    ends = [f"{knots[0]:.4g} … {knots[-1]:.4g}" for knots in one["knots"]]
    rows = [("effect", one["spread"])]
    rows += [(f"{first}, upwards", ends[0]), (f"{second}, to the right", ends[1])]
    print_table(f"{first} and {second} together", [*rows, *(("", line) for line in one["map"])])


def _range(one: Mapping[str, Any]) -> str:
    return f"{one['knots'][0]:.4g} … {one['knots'][-1]:.4g}"
