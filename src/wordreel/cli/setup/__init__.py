"""Verbs about this installation: weights, models, the server, the demo."""
