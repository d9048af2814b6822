"""Writers of exports, by target: each turns a model, as a Sum (``sums.py``), into files."""
