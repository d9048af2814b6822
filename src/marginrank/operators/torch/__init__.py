"""The PyTorch backend: X on a GPU or CPU; sums over pairs are exact sums of integers."""

from marginrank._utils.optional import require

require("torch", "torch")
