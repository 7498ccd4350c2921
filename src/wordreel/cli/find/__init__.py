"""Verbs that find moments."""
