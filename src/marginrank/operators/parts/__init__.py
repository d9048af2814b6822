"""X in parts of whole queries, wherever they are, behind one objective."""
