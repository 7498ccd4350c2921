"""`wordreel.Library`, one file for each group of its methods."""

from wordreel.api.library import Library

__all__ = ["Library"]
