"""The store: a folder on disk that holds a data set, with X in binary and memory-mapped."""
