"""The PyTorch backend, for X on a GPU or CPU; sums over pairs are exact, with integers."""

from marginrank._utils.optional import require

require("torch", "torch")
