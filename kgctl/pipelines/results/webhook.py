"""Posts notices to a URL as JSON. Messages name the host only: paths and headers may be secrets."""

from __future__ import annotations

import email.utils
import json
import random
import socket
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from kgctl.client.net.bounded_http import bounded_opener
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.results.documents import document
from kgctl.pipelines.results.notices import Notice

VERSION = 1
MAX_NOTICES = 100
ATTEMPTS, FIRST_PAUSE_S, MAX_PAUSE_S = 5, 0.5, 10.0
ANSWER_S, ALL_S = 10.0, 45.0
_TRANSIENT = frozenset({408, 425, 429})


@dataclass(frozen=True, slots=True)
class Limits:
    """`pause` waits for a number of seconds and returns whether to give up. Pauses are random, which keeps senders apart."""

    pause: Callable[[float], bool]
    attempts: int = ATTEMPTS
    first_pause_s: float = FIRST_PAUSE_S
    answer_s: float = ANSWER_S
    all_s: float = ALL_S


def post(
    url: str, headers: Sequence[tuple[str, str]], notices: Sequence[Notice], cluster: str, limits: Limits
) -> Iterator[Sequence[Notice]]:
    """Yield the notices of each request that the server accepted. Raises KgctlError; a redirect is an error."""
    deadline = time.monotonic() + limits.all_s
    # Its own certificates are in SSL_CERT_FILE or SSL_CERT_DIR, as for other programs.
    tls = ssl.create_default_context()
    for start in range(0, len(notices), MAX_NOTICES):
        some = notices[start : start + MAX_NOTICES]
        _try(_request(url, headers, some, cluster), tls, limits, deadline)
        yield some


def _request(
    url: str, headers: Sequence[tuple[str, str]], notices: Sequence[Notice], cluster: str
) -> urllib.request.Request:
    content = {
        "version": VERSION,
        "cluster": cluster,
        "verdicts": [document(notice, cluster) for notice in notices],
    }
    request = urllib.request.Request(url, json.dumps(content).encode(), method="POST")
    request.add_header("Content-Type", "application/json")
    request.add_header("User-Agent", "kgctl")
    key = uuid.uuid5(uuid.NAMESPACE_OID, " ".join(notice.id for notice in notices))
    request.add_header("Idempotency-Key", str(key))
    for name, value in headers:
        request.add_header(name, value)
    return request


def _try(request: urllib.request.Request, tls: ssl.SSLContext, limits: Limits, deadline: float) -> None:
    for attempt in range(1, limits.attempts + 1):
        wanted_s, end = 0.0, min(deadline, time.monotonic() + limits.answer_s)
        try:
            _send(request, tls, end, limits.answer_s)
        except urllib.error.HTTPError as error:
            with error:
                reason, wanted_s = f"HTTP {error.code}", _retry_after(error.headers)
                is_final = error.code < 500 and error.code not in _TRANSIENT
        except (OSError, HTTPException) as error:
            cause = error.reason if isinstance(error, urllib.error.URLError) else error
            # At the end of its time a connection is cut.
            cause = TimeoutError() if time.monotonic() >= end else cause
            reason, is_final = _reason(cause), isinstance(cause, ssl.SSLCertVerificationError)
        else:
            return
        pause = max(wanted_s, random.uniform(0, min(MAX_PAUSE_S, limits.first_pause_s * 2 ** (attempt - 1))))
        late = attempt == limits.attempts or time.monotonic() + pause >= deadline
        if is_final or late or limits.pause(pause):
            tried = "" if attempt == 1 else f" after {attempt} attempts"
            raise KgctlError(f"{reason}{tried}")


def _send(request: urllib.request.Request, tls: ssl.SSLContext, deadline: float, timeout: float) -> None:
    with bounded_opener(tls, deadline) as opener, opener.open(request, timeout=timeout) as answer:
        # The status counts; the rest of the answer is not needed.
        answer.read(1)


def _retry_after(headers: Any) -> float:
    """Seconds; 0 if the server does not say."""
    text = headers.get("Retry-After", "")
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return 0.0


def _reason(cause: Any) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"the certificate is not valid: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return f"TLS failed: {cause.reason}"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, socket.gaierror):
        return "unknown host name"
    if isinstance(cause, HTTPException):
        return "the server closed the connection, or does not speak HTTP"
    # Not the text of the error, which may contain the URL.
    return str(getattr(cause, "strerror", None) or "the connection failed").lower()
