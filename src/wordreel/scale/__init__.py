"""The same jobs on many workers: processes of this machine, or a Ray cluster."""
