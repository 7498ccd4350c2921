"""Published checkpoints into wordreel's modules."""
