"""What a message advises, for somebody who has a page or an address instead of a command line.

Errors of the library end with the next step on the command line. Some of these steps the page and the API can
do too: those are put into their words. The others are for the owner of the library, and that is said.
"""

from __future__ import annotations

import re

OWNER = " (the owner of the library does that on the command line)"
SAID: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"`wordreel bank build` makes one", "make one in Hubness, or with POST /api/banks"),
        (r"`wordreel bank add (\S+) …` adds to it", "choose another name"),
        (r"`wordreel bank drop (\S+) --all` forgets it", r"DELETE /api/banks/\1 forgets it"),
        (r"`wordreel add FOLDER`", "Library, or POST /api/folders"),
        (r"--(norm|bank|beta|min-confidence)\b", r"\1"),
    )
)
COMMAND = re.compile(r"`wordreel [^`]+`|--[a-z]")


def for_page(message: str) -> str:
    """The message with a next step that its reader can take, or that says whose it is.

    >>> for_page("a least confidence needs a query bank; `wordreel bank build` makes one")
    'a least confidence needs a query bank; make one in Hubness, or with POST /api/banks'
    >>> for_page("the catalogue is damaged; run `wordreel verify`")
    'the catalogue is damaged; run `wordreel verify` (the owner of the library does that on the command line)'
    """
    for pattern, words in SAID:
        message = pattern.sub(words, message)
    return message + OWNER if COMMAND.search(message) and OWNER not in message else message
