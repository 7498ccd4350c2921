"""Worker processes here and on a Ray cluster."""
