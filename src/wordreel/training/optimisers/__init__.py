"""How weights follow gradients: Adam and AdamW are torch's, RAdam, Lookahead and Ranger are here."""

from wordreel.training.optimisers.build import build_optimiser

__all__ = ["build_optimiser"]
