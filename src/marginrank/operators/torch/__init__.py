"""X on a device of PyTorch, a card above all; sums over pairs there are exact integers."""

from marginrank._utils.optional import require

require("torch", "torch")
