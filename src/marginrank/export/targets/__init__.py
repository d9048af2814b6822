"""One target per file: a function from a weighted sum to the files of another system."""
