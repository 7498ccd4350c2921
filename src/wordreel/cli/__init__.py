"""The command line: one file per verb. The only place in wordreel that prints or exits."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the `wordreel` program."""
    from wordreel.cli.app import app
    from wordreel.errors import WordreelError

    try:
        app(prog_name="wordreel")
    except WordreelError as error:
        print(f"wordreel: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Close quietly, and keep Python from complaining at exit.
        sys.stderr.close()
        sys.exit(141)
    except BaseException as error:
        if not _interrupted(error):
            raise
        print("\nwordreel: stopped. Nothing is lost; the same command resumes.", file=sys.stderr)
        sys.exit(130)


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C caused an error. Libraries may raise another one for it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return error is not None
