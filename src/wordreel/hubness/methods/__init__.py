"""The normalisations, one per file: formula, cost and citation."""
