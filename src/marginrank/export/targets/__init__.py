"""Writers of exports, by target: each turns a Sum (``sums.py``) into files."""
