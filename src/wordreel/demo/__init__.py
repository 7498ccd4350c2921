"""The clips and queries of the demo."""
