"""The store: features in blocks on disk, labels and queries beside them."""
