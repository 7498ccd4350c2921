"""Training of video-text models from raw video: loading, recipes and the session."""
