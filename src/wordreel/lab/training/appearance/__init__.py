"""Train the appearance network further, on pictures and frames of videos with their captions."""
