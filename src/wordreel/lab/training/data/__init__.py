"""Videos and captions as training sees them.

`Pairs` are videos with captions, from a library, a published tree or anything else; several can be joined.
`FeatureStore` holds their features and `CaptionStore` their captions as tensors, on the device if they fit.
"""

from wordreel.lab.training.data.from_library import from_library
from wordreel.lab.training.data.from_tree import from_tree
from wordreel.lab.training.data.pairs import Pairs, join

__all__ = ["Pairs", "from_library", "from_tree", "join"]
