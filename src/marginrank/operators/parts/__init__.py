"""Matrix and loss over X split into parts of whole queries, on disk or on a cluster."""
