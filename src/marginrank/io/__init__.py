"""Readers and writers of data files: LETOR text, tables, pairs, runs; and builders of stores."""
