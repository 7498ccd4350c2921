"""Verbs of the laboratory, which load it when they run."""
