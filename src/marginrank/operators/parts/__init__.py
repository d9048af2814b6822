"""The backend for X split into parts of whole queries, on disk or on a cluster."""
