"""Exact sums of floats on a GPU: numbers are converted to integers, then added in any order.

A GPU adds in any order, so prefix sums of doubles differ from run to run; sums of integers do not.
A *segment* is a range of successive entries, for example the documents of a query. Its numbers are
multiplied by a power of two, the largest for which the sum of the segment stays below 2⁶², and
rounded to integers. Prefix sums run over all segments and wrap around at 2⁶⁴. Still, the difference
of two prefix sums inside a segment is exact and does not depend on the other segments.
"""

from typing import NamedTuple

import torch
from torch import Tensor

CAPACITY = 62  # number of bits that a sum may have
LARGEST_SHIFT = 1000  # largest exponent: 2^exponent and its inverse must be finite and positive
MANTISSA_BITS, EXPONENT_BIAS = 52, 1023  # format of a double


class Encoded(NamedTuple):
    """Floats converted to integers: each float is about its integer times a unit.

    All numbers of a segment, such as a query, have the same unit, a power of two.
    """

    integers: Tensor  # int64
    unit: Tensor  # float64, one per segment; NaN if a number of the segment is not finite


class Segments:
    """The division of a tensor into segments (such as queries), with exact sums over each segment.

    Segment k has the entries from offsets[k] to offsets[k + 1] − 1 (int64); `segment` (int32) has
    the index of the segment of each entry.
    """

    def __init__(self, offsets: Tensor, segment: Tensor) -> None:
        self.offsets = offsets
        self.segment = segment
        sizes = (offsets[1:] - offsets[:-1]).to(torch.float64)
        self._spare_bits = CAPACITY - torch.frexp(sizes).exponent.to(torch.int64)

    @classmethod
    def of(cls, offsets: Tensor) -> "Segments":
        numbers = torch.arange(offsets.numel() - 1, dtype=torch.int32, device=offsets.device)
        return cls(offsets, torch.repeat_interleave(numbers, offsets[1:] - offsets[:-1]))

    def spread(self, values: Tensor) -> Tensor:
        """Return a tensor that has, for each entry, the value of its segment in `values`."""
        return values.index_select(0, self.segment)

    def reduce(self, values: Tensor, how: str, initial: float | None = None) -> Tensor:
        """Return the maximum or minimum of each segment of a tensor; NaN if the segment has NaN.

        `how` is "max" or "min". `initial` counts as one more entry of each segment.
        """
        return torch.segment_reduce(values, how, offsets=self.offsets, initial=initial, unsafe=True)

    def encode(self, values: Tensor) -> Encoded:
        """Return floats as integers whose sums over a segment of the tensor cannot overflow."""
        scale, unit = self._scale(values)
        scaled = values * self.spread(scale)
        return Encoded(scaled.round_().to(torch.int64), unit)

    def encode_all_digits(self, values: Tensor) -> tuple[Encoded, Encoded]:
        """Return two integers per float: its rounded value, and the rest in a finer unit."""
        scale, unit = self._scale(values)
        scaled = values * self.spread(scale)
        rounded = scaled.round()
        finer = self.spread(_power_of_two(self._spare_bits))
        low = ((scaled - rounded) * finer).round_().to(torch.int64)
        return (
            Encoded(rounded.to(torch.int64), unit),
            Encoded(low, unit * _power_of_two(-self._spare_bits)),
        )

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over each segment of the tensor, correct except for the last digit."""
        high, low = (
            _differences(encoded.integers, self.offsets) * encoded.unit
            for encoded in self.encode_all_digits(values)
        )
        return high + low

    def _scale(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return one power of two per segment, to multiply its floats by, and its inverse."""
        # Two reductions touch less memory than computing |values| and reducing it.
        most, least = (self.reduce(values, how, initial=0.0) for how in ("max", "min"))
        largest = torch.maximum(most, -least)
        shift = self._spare_bits - torch.frexp(largest).exponent
        shift = shift.clamp_(max=LARGEST_SHIFT)
        return _power_of_two(shift), _power_of_two(-shift) + 0.0 * largest


def exact_total(values: Tensor) -> Tensor:
    """Return the sum of all entries as a one-entry tensor, correct except for the last digit."""
    offsets = torch.tensor([0, values.numel()], device=values.device)
    whole = torch.zeros(1, dtype=torch.int32, device=values.device).expand(values.numel())
    return Segments(offsets, whole).sum(values)


def prefix_sums(integers: Tensor) -> Tensor:
    """Return n + 1 prefix sums of n integers; entry k is the sum of the first k integers."""
    sums = torch.zeros(integers.numel() + 1, dtype=integers.dtype, device=integers.device)
    torch.cumsum(integers, 0, dtype=integers.dtype, out=sums[1:])
    return sums


def _differences(integers: Tensor, offsets: Tensor) -> Tensor:
    sums = prefix_sums(integers).index_select(0, offsets)
    return sums[1:] - sums[:-1]


def _power_of_two(exponent: Tensor) -> Tensor:
    # Set the bits of the double: exp2 and ldexp of a device may round.
    return ((exponent + EXPONENT_BIAS) << MANTISSA_BITS).view(torch.float64)
