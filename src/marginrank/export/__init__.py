"""Exports of models to search engines, databases and programs.

``registry.py`` lists the *targets*: the systems that can run an exported model. A target's function
in ``targets/`` writes the files; ``engines.py`` runs them, so every export can be verified.
"""
