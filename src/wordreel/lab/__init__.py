"""The laboratory: datasets, models of the papers, training, evaluation and checkpoints of others.

It uses the product; the product never imports it.
"""
