"""Every error wordreel raises on purpose. Each message says what happened and what to do next."""


class WordreelError(Exception):
    """Base of all errors a user can act on; the command line prints it without a traceback."""


class MediaError(WordreelError):
    """A file cannot be read as media. `reason` is one line, fit for a list of failures."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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


class FingerprintMismatch(LibraryError):
    """Embeddings of two different models, weights or preprocessings would be mixed."""


class QueryError(WordreelError):
    """A query or a filter cannot be understood."""


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
