"""Training on raw video: decoding, loading and comparing frames."""
