"""Bytes that are JSON text, where the difference matters."""

from __future__ import annotations


class JsonText(bytes):
    """One line of JSON in UTF-8. Prints as it is, and becomes a part of a JSON document without quotes."""

    __slots__ = ()
