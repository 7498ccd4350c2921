"""Train the embedded picture network further, on pictures and frames with their captions."""
