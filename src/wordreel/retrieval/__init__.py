"""Retrieval metrics: ranks, recall and tests of significance."""
