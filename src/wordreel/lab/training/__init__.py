"""Training joint embeddings: losses, optimisers, data on the device, the loop, recipes."""
