"""X on a device of PyTorch, mostly a GPU; sums over pairs there are exact integers."""

from marginrank._utils.optional import require

require("torch", "torch")
