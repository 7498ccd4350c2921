"""The papers' models trained on one dataset with our own experts: what `studies/papers.py` is made of."""
