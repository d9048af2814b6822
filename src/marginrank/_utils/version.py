"""The version number of marginrank."""

__version__ = "0.1.0"
