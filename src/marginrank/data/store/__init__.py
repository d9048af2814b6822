"""The store: a folder on disk with the features, labels and queries of a data set."""
