"""Joint embeddings of text and video, their checkpoints and the mixture similarity."""
