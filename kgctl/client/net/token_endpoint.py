"""Asks a token endpoint for a token: the client credentials grant of OAuth 2, as KIP-768 does it."""

from __future__ import annotations

import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from base64 import b64encode
from http.client import HTTPException
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

from kgctl.client.net.bounded_http import bounded_opener
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TlsFailed
from kgctl.client.net.security import ClientCredentials
from kgctl.client.net.steps import Endpoint
from kgctl.client.net.tls import TlsClient

_ATTEMPTS = 4
_MAX_BYTES = 1 << 20
_TIMEOUT = 10.0


def request_token(source: ClientCredentials, deadline: float) -> dict[str, Any]:
    """The JSON document of the endpoint. Retries a failure of the server a few times. Raises AuthenticationFailed or TlsFailed."""
    tls = TlsClient(source.tls)
    with bounded_opener(tls.context, deadline) as opener:
        return _try(source, tls, opener, deadline)


def _try(source: ClientCredentials, tls: TlsClient, opener: Any, deadline: float) -> dict[str, Any]:
    request = _request(source)
    for attempt in range(_ATTEMPTS):
        left = deadline - time.monotonic()
        try:
            if left <= 0:
                raise TimeoutError
            return _ask(opener, request, min(left, source.read_timeout or source.connect_timeout or _TIMEOUT), deadline)
        except urllib.error.HTTPError as error:
            with error:
                failure: KgctlError = _failed(source, _answer_of(error))
            is_final = error.code < 500 and error.code != 429
        except (OSError, HTTPException, ValueError) as error:
            late = time.monotonic() >= deadline
            failure = _explain(source, tls, TimeoutError() if late else error)
            is_final = late or not _may_pass(error)
        pause = min(source.retry_backoff * 2**attempt, source.retry_backoff_max)
        if is_final or attempt == _ATTEMPTS - 1 or time.monotonic() + pause >= deadline:
            raise failure from None
        time.sleep(pause)
    raise AssertionError("unreachable")


def _request(source: ClientCredentials) -> urllib.request.Request:
    encode = quote_plus if source.url_encode else str
    pair = f"{encode(source.client_id)}:{encode(source.client_secret.reveal())}"
    form = {"grant_type": "client_credentials"} | ({"scope": source.scope} if source.scope else {})
    return urllib.request.Request(
        source.url,
        urlencode(form).encode(),
        {
            "Authorization": "Basic " + b64encode(pair.encode()).decode(),
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        method="POST",
    )


def _ask(opener: urllib.request.OpenerDirector, request: Any, timeout: float, deadline: float) -> dict[str, Any]:
    with opener.open(request, timeout=timeout) as answer:
        body = bytearray()
        while piece := answer.read1(65536):
            body += piece
            if len(body) > _MAX_BYTES:
                raise ValueError("the answer is too large")
            if time.monotonic() > deadline:
                raise TimeoutError
    document = json.loads(bytes(body))
    if not isinstance(document, dict):
        raise ValueError("the answer is not a JSON object")
    return document


def _answer_of(error: urllib.error.HTTPError) -> str:
    """What the endpoint says about its refusal (RFC 6749, section 5.2)."""
    said = ""
    try:
        document = json.loads(error.read(65536))
        said = ": ".join(str(document[name])[:200] for name in ("error", "error_description") if document.get(name))
    except (OSError, ValueError, AttributeError, HTTPException):
        pass
    return f"HTTP {error.code}" + (f", {said}" if said else "")


def _explain(source: ClientCredentials, tls: TlsClient, error: Exception) -> KgctlError:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLError):
        parts = urlsplit(source.url)
        said = tls.explain(Endpoint(parts.hostname or "", parts.port or 443), cause)
        return TlsFailed(f"token endpoint {said}") if isinstance(said, TlsFailed) else said
    if isinstance(cause, TimeoutError):
        return _failed(source, "no answer in time")
    if isinstance(cause, socket.gaierror):
        return _failed(source, "unknown host name")
    if isinstance(cause, json.JSONDecodeError | UnicodeDecodeError):
        return _failed(source, "the answer is not JSON")
    return _failed(source, str(getattr(cause, "strerror", None) or cause))


def _may_pass(error: Exception) -> bool:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(cause, ConnectionResetError | BrokenPipeError | HTTPException)


def _failed(source: ClientCredentials, reason: str) -> AuthenticationFailed:
    parts = urlsplit(source.url)
    return AuthenticationFailed(
        f"no token from {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}: {reason}"
    )
