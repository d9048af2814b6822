"""What a fit costs: sweeps over X."""

from dataclasses import dataclass


@dataclass
class SweepCounter:
    """Counts sweeps over X; a sweep over a sample counts as its share."""

    total: float = 0.0
