"""Studies are scripts: their folder is the first place they look for one another."""

import sys
from pathlib import Path

PLACE = str(Path(__file__).parents[2] / "studies")
if PLACE not in sys.path:
    sys.path.insert(0, PLACE)
