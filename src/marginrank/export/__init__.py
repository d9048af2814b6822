"""Models as other systems run them: search engines, databases, programs.

``registry.py`` lists the targets. Each is a function in ``targets/`` from a weighted sum to files;
``engines/`` run such files again, so that every export can be checked.
"""
