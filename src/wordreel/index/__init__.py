"""Exact nearest-neighbour search, with a hubness correction folded in."""
