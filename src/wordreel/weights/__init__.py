"""Weight files: which there are, how they arrive, how they are checked and read."""
