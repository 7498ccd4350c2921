"""The appearance network as torch modules that can be trained."""
