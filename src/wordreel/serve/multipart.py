"""Files in forms, read as they arrive.

Starlette's own parser writes the whole file to the system's temporary folder first, however little space that
has; here the bytes go straight to where uploads are stored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from wordreel.serve.problems import Problem

MAX_PART_HEAD = 16 * 1024  # bytes


class FormFile:
    """The first file of a form: `open` reads up to it, `blocks` yields its bytes."""

    def __init__(self, stream: AsyncIterator[bytes], content_type: str) -> None:
        _, options = parse_options_header(content_type)
        if not options.get(b"boundary"):
            raise Problem(400, "bad_request", "the form has no boundary; send multipart/form-data", "file")
        self.filename = ""
        self._stream = stream
        self._name, self._value = b"", b""
        self._is_file, self._opened, self._ended = False, False, False
        self._data: list[bytes] = []
        self._parser = MultipartParser(
            options[b"boundary"],
            {
                "on_header_field": self._on_header_name,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_data,
                "on_part_end": self._on_part_end,
            },
        )

    async def open(self) -> None:
        """Read until the file starts; raises a `Problem` where the form has none."""
        async for block in self._stream:
            self._feed(block)
            if self._opened:
                return
        raise Problem(422, "invalid", "the form has no file; send one in the field `file`", "file")

    async def blocks(self) -> AsyncIterator[bytes]:
        """The bytes of the file; what follows it in the form is read and dropped."""
        for data in self._take():
            yield data
        async for block in self._stream:
            self._feed(block)
            for data in self._take():
                yield data
        if not self._ended:
            raise Problem(422, "invalid", "the form ends in the middle of its file; send it again", "file")

    def _feed(self, block: bytes) -> None:
        try:
            self._parser.write(block)
        except FormParserError as error:
            raise Problem(422, "invalid", f"the form cannot be read: {error}", "file") from error

    def _take(self) -> list[bytes]:
        data, self._data = self._data, []
        return data

    def _on_header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._check_head()

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._check_head()

    def _check_head(self) -> None:
        if len(self._name) + len(self._value) > MAX_PART_HEAD:
            raise FormParserError("the head of a part is too long")

    def _on_header_end(self) -> None:
        if self._name.lower() == b"content-disposition" and not self._opened:
            _, options = parse_options_header(self._value)
            if b"filename" in options:
                self._is_file = True
                self.filename = options[b"filename"].decode("utf-8", "replace")
        self._name, self._value = b"", b""

    def _on_headers_finished(self) -> None:
        self._opened = self._opened or self._is_file

    def _on_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file and not self._ended:
            self._data.append(data[start:end])

    def _on_part_end(self) -> None:
        self._ended = self._ended or self._is_file
