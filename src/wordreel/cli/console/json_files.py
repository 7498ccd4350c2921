"""JSON files that verbs import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wordreel.errors import WordreelError

LARGEST = 256 * 2**20  # bytes


def read_json_list(path: Path) -> list[Any]:
    """The list in a JSON file.

    Raises:
        WordreelError: The file cannot be read, or holds something else.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise WordreelError(f"{path} is larger than {LARGEST / 2**20:.0f} MiB")
        rows = json.loads(path.read_bytes())
    except OSError as error:
        raise WordreelError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WordreelError(f"{path} is not JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise WordreelError(f"{path} does not hold a list of entries, as it is exported")
    return rows
