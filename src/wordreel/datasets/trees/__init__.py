"""The folders that published retrieval code keeps its features in, one reader per layout."""

from wordreel.datasets.trees.guess import KINDS, open_tree
from wordreel.datasets.trees.layout import Tree

__all__ = ["KINDS", "Tree", "open_tree"]
