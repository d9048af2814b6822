"""Export of models to search engines, databases and programming languages.

A *target* is a system that can run an exported model; ``registry.py`` lists them. For each target,
a function in ``targets/`` writes the files, and a function in ``engines.py`` scores documents with
them, to verify the export.
"""
