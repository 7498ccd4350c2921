"""Experts: recognisers that turn frames and sound into feature tracks."""
