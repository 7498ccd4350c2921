"""The command line: one file per verb. The only place in wordreel that prints or exits."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `wordreel` program."""
    from wordreel.cli.app import app
    from wordreel.errors import WordreelError

    try:
        app()
    except WordreelError as error:
        print(f"wordreel: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("\nwordreel: stopped. Nothing is lost: the same command goes on from here.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Close quietly, and keep Python from complaining at exit.
        sys.stderr.close()
        sys.exit(141)
