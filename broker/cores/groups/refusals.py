"""Refusals: an error ends a request before it has changed anything."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode


class Refused(Exception):
    """The request is answered with this error; the text is the error message of the answer."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
