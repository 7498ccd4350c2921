"""The models of the papers, in torch."""
