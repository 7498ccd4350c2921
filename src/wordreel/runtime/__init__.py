"""Weight files: found, fetched, checked, kept; networks run by onnxruntime; the encoder of sentences."""
