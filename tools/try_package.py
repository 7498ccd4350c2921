"""Add and search with an installed wordreel that has no extras; `make package` runs this.

Uses nothing but the package and what it depends on.
"""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

EXTRAS = ("torch", "fastapi", "faiss", "ray", "pytest")
SIGNS = ("GRAND OPENING", "PLATFORM NINE")


def draw(folder: Path) -> None:
    """Write a picture of each sign."""
    import cv2
    import numpy as np

    for number, words in enumerate(SIGNS):
        picture = np.full((360, 640, 3), 60 + 90 * number, np.uint8)
        cv2.putText(picture, words, (40, 200), cv2.FONT_HERSHEY_SIMPLEX, 1.8, (255, 255, 255), 4)
        cv2.imwrite(str(folder / f"sign{number}.png"), picture)


def run(*words: str) -> str:
    program = str(Path(sys.executable).parent / "wordreel")
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def main() -> None:
    if there := [name for name in EXTRAS if find_spec(name)]:
        raise SystemExit(f"the environment is not empty: it has {', '.join(there)}")
    with tempfile.TemporaryDirectory() as made:
        folder, library = Path(made), str(Path(made) / "library")
        draw(folder)
        run("add", str(folder), "--library", library)
        found = run("search", "grand", "opening", "--library", library)
    print(found, end="")
    if "sign0.png" not in found.splitlines()[0]:
        raise SystemExit("the search did not find the picture")


if __name__ == "__main__":
    main()
