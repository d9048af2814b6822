"""Exports of models to search engines, databases and programs.

``registry.py`` lists the targets. Each is a function in ``targets/`` from the terms of a model to
files; ``engines.py`` runs these files, so every export can be verified.
"""
