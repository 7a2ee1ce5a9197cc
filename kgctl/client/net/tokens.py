"""Fetches bearer tokens for OAUTHBEARER, and keeps one until it gets old. Imported only where tokens are used."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from broker.light_named_tuples import NamedTuple
from broker.security.secret import Secret
from kgctl.client.net.errors import AuthenticationFailed
from kgctl.client.net.security import (
    BadSecurity,
    ClientCredentials,
    MskIam,
    StaticToken,
    TokenCommand,
    TokenFile,
    TokenSource,
    UnsecuredToken,
)

# Of the lifetime of a token, as `sasl.login.refresh.window.factor`. After that, a token serves while there is no new one, if
# it has a few seconds left.
_FRESH, _LEAST_SECONDS = 0.8, 5.0
_MSK_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\.?$")


class Token(NamedTuple):
    """`expires_at` in seconds since 1970, if it is known."""

    secret: Secret
    expires_at: float | None


class Tokens:
    """The tokens of one client: its connections share a token until it has used most of its lifetime."""

    def __init__(self, source: TokenSource, clock: Callable[[], float] = time.time) -> None:
        self._source, self._clock = source, clock
        self._kept: Secret | None = None
        self._fresh_until = self._valid_until = 0.0

    def get(self, host: str, deadline: float) -> Secret:
        """A token for the broker at `host`. Raises AuthenticationFailed if there is none in time."""
        now = self._clock()
        if self._kept is None or now >= self._fresh_until:
            try:
                token = self._fetch(host, deadline)
            except AuthenticationFailed:
                if self._kept is not None and now < self._valid_until - _LEAST_SECONDS:
                    return self._kept
                raise
            end = token.expires_at if token.expires_at is not None else _expiry_of(token.secret)
            self._kept = token.secret
            self._fresh_until = now + (end - now) * _FRESH if end is not None else 0.0
            self._valid_until = end or 0.0
        return self._kept

    def _fetch(self, host: str, deadline: float) -> Token:
        source = self._source
        if isinstance(source, StaticToken):
            return Token(source.token, None)
        if isinstance(source, TokenFile):
            return Token(_read(source.path), None)
        if isinstance(source, TokenCommand):
            return _run(source.command, deadline)
        if isinstance(source, UnsecuredToken):
            return _unsecured(source, self._clock())
        if isinstance(source, ClientCredentials):
            from kgctl.client.net.token_endpoint import request_token

            document = request_token(source, deadline)
            return _from_document(document, "the token endpoint", self._clock())
        return _sign_for_msk(source, host)


def _read(path: str) -> Secret:
    try:
        with open(path, encoding="utf-8") as file:
            return Secret(file.read().strip())
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationFailed(
            f"no token: {path}: {getattr(error, 'strerror', None) or 'it is not text'}"
        ) from None


def _run(command: str, deadline: float) -> Token:
    """Run a command that prints a token, or the JSON document of a token endpoint."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise BadSecurity(f"sasl.oauthbearer.token.command: {str(error).lower()}") from None
    name = arguments[0] if arguments else ""
    try:
        done = subprocess.run(
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=max(0.1, deadline - time.monotonic()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AuthenticationFailed(f"no token: {name} did not end in time") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AuthenticationFailed(
            f"no token: {name}: {getattr(error, 'strerror', None) or 'it printed no text'}"
        ) from None
    printed = done.stdout.strip()
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["without a message"])[-1]
        raise AuthenticationFailed(f"no token: {name} failed with exit code {done.returncode}: {reason}")
    if not printed:
        raise AuthenticationFailed(f"no token: {name} printed nothing")
    if not printed.startswith("{"):
        return Token(Secret(printed), None)
    try:
        document = json.loads(printed)
    except (ValueError, RecursionError):
        document = {}
    return _from_document(document, name, time.time())


def _from_document(document: dict[str, Any], where: str, now: float) -> Token:
    token, seconds = document.get("access_token"), document.get("expires_in")
    if not isinstance(token, str) or not token:
        raise AuthenticationFailed(f"no token: the answer of {where} has no access_token")
    try:
        lifetime = float(seconds or 0)
    except (TypeError, ValueError, OverflowError):
        lifetime = 0.0
    return Token(Secret(token), now + lifetime if lifetime > 0 else None)


def _unsecured(source: UnsecuredToken, now: float) -> Token:
    """A token without a signature, as OAuthBearerUnsecuredLoginCallbackHandler of Kafka makes it."""
    # Whole seconds: a broker may refuse a time that its own clock has not reached.
    claims = {"iat": int(now), "exp": now + source.lifetime, **source.claims}
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    return Token(Secret(".".join([*(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])), None)


def _sign_for_msk(source: MskIam, host: str) -> Token:
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as Signer
    except ImportError:
        raise BadSecurity(
            "sasl.mechanism: IAM of Amazon MSK needs the package aws-msk-iam-sasl-signer-python: pip install 'kgctl[aws]'"
        ) from None
    region = source.region or _region_of(host)
    try:
        if source.role_arn is not None:
            session = [source.role_session] if source.role_session else []
            text, expiry_ms = Signer.generate_auth_token_from_role_arn(region, source.role_arn, *session)
        elif source.profile is not None:
            text, expiry_ms = Signer.generate_auth_token_from_profile(region, source.profile)
        else:
            text, expiry_ms = Signer.generate_auth_token(region)
    except Exception as error:  # noqa: BLE001, the library and botocore raise what they like
        raise AuthenticationFailed(
            f"no token of AWS IAM: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
    return Token(Secret(text), float(expiry_ms) / 1000)


def _region_of(host: str) -> str:
    import os

    found = _MSK_HOST.search(host)
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise BadSecurity(f"sasl.mechanism: {host} does not name an AWS region; set AWS_REGION")
    return region


def _expiry_of(token: Secret) -> float | None:
    """The end of a JWT, which is read without a check of its signature; None if the token is no JWT or has no end."""
    parts = token.reveal().split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
