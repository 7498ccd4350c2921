"""Embeddings of a library: computed by its model, cached, and changed with the model."""
