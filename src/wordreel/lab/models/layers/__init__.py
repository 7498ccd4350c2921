"""Layers of the trainable models."""
