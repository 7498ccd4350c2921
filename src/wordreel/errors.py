"""Every error wordreel raises on purpose: a message, and where there is one, the next step to take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class NextStep:
    """What the user can do about an error, worded by each front end for its own users.

    `text` is an imperative clause. `command` is the command line that does it, without `wordreel` in front;
    `page` is where the page does it. A step without `page` is the library owner's.

    >>> NextStep("build a query bank", command="bank build", page="Settings → Ranking").for_command_line()
    'build a query bank: `wordreel bank build`'
    """

    text: str
    command: str | None = None
    page: str | None = None

    def for_command_line(self) -> str:
        """Return the step with the command to type."""
        return f"{self.text}: `wordreel {self.command}`" if self.command else self.text

    def for_page(self) -> str:
        """Return the step in words of the page."""
        if self.page:
            return f"{self.text} in {self.page}"
        return f"the owner of the library can {self.text}" if self.command else self.text


class WordreelError(Exception):
    """Base of all errors a user can act on; the command line prints it without a traceback.

    Args:
        message: What happened, in one line.
        next_step: What to do about it. `str(error)` appends it as a command.
    """

    def __init__(self, message: str, next_step: NextStep | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def __str__(self) -> str:
        if self.next_step is None:
            return self.message
        return f"{self.message}; {self.next_step.for_command_line()}"

    def __reduce__(self) -> tuple[type[WordreelError], tuple[str, NextStep | None]]:
        return type(self), (self.message, self.next_step)


class MediaError(WordreelError):
    """A file cannot be read as media; the message is one line, fit for a list of failures."""


class NotMedia(MediaError):
    """The file is not a container, picture or sound that wordreel opens."""


class BrokenMedia(MediaError):
    """The file claims to be media but cannot be decoded."""


class OverLimit(MediaError):
    """The file asks for more pixels, seconds, frames, bytes or time than the limits allow."""


class WeightsError(WordreelError):
    """A weight file is missing, or is not the file it should be."""


class WeightsMissing(WeightsError):
    """A weight file is not on this machine; the message names the command that brings it."""


class WeightsCorrupt(WeightsError):
    """A weight file does not have the hash it must have."""


class UnsafePickle(WeightsError):
    """A pickle asks for something other than arrays and plain containers."""


class LibraryError(WordreelError):
    """The library on disk cannot be used as asked."""


class LibraryBusy(LibraryError):
    """Somebody else is writing to the library."""


class LibraryReadOnly(LibraryError):
    """The library is on a disk that cannot be written, or belongs to somebody else."""


class DiskError(LibraryError):
    """The disk of the library is full, was made read-only, or fails."""


NOT_WRITABLE = (LibraryBusy, LibraryReadOnly, DiskError, OSError)
"""What a write raises that a reader can do without."""


class FingerprintMismatch(LibraryError):
    """Embeddings of two different models, weights or preprocessings would be mixed."""


class QueryError(WordreelError):
    """A query or a filter cannot be understood; `field` names the part at fault, where it is one."""

    def __init__(self, message: str, next_step: NextStep | None = None, *, field: str | None = None) -> None:
        super().__init__(message, next_step)
        self.field = field


class IndexServerError(WordreelError):
    """A vector server cannot be reached, or cannot do what is asked of it."""


class HubnessError(WordreelError):
    """Similarities, a query bank or its state cannot be used as asked."""


class BankError(WordreelError):
    """A query bank cannot be found, made or used as asked."""


class DatasetError(WordreelError):
    """A dataset's files cannot be read as what they should be."""


class EvaluationError(WordreelError):
    """Ranks, captions, runs or judgements cannot be measured as asked."""


class TrainingError(WordreelError):
    """A recipe, its data or a run cannot be used as asked."""
