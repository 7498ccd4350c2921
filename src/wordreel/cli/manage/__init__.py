"""Verbs about a library: add to it, list it, check it, tag it."""
