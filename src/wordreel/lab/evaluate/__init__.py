"""Retrieval metrics, rankings, significance tests, reports, and exchange with TREC."""
