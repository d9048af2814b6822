"""The PyTorch backend: X on a GPU or CPU; sums over pairs are computed exactly, with integers."""

from marginrank._utils.optional import require

require("torch", "torch")
