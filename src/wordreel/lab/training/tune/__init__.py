"""Adapting the default model to a user's own captions. NumPy only: it works in the base install."""
