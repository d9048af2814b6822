"""Text, tables and pair files in, stores and text out."""
