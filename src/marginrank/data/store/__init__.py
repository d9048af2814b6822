"""Storage of data sets on disk: a *store* is a folder of binary files that can be memory-mapped."""
