"""One module per export target, or family of targets, that writes a model to files."""
