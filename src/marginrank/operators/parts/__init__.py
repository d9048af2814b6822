"""The backend for a feature matrix in parts of whole queries, on disk or on a cluster."""
