"""Reading and writing of data files: LETOR text, tables, preference pairs, TREC runs, stores."""
