"""Feature folders of published retrieval code: one reader per layout, and the import into a library."""

from wordreel.lab.datasets.trees.detect import KINDS, open_tree
from wordreel.lab.datasets.trees.tree import Tree

__all__ = ["KINDS", "Tree", "open_tree"]
