"""Bearer tokens: from a file, a command, AWS and a token endpoint over HTTPS; kept while they are fresh."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.security.secret import Secret
from kgctl.client.net.client_properties import security_from
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TlsFailed
from kgctl.client.net.security import BadSecurity, TokenSource
from kgctl.client.net.tokens import Tokens
from kgctl.exit_codes import UNREACHABLE, USAGE, exit_code_of
from tests.harness.certificates import Authority, Issued
from tests.harness.listeners import listening, listening_in_parallel, wait_for_the_end
from tests.harness.token_endpoint import TokenEndpoint

OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"


def source(jaas: str = "", **properties: str) -> TokenSource:
    """The source of `sasl.` properties that are given with underscores."""
    named = {"sasl." + name.replace("_", "."): value for name, value in properties.items()}
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"} | named
    security = security_from(given | ({"sasl.jaas.config": f"{OAUTH} {jaas};"} if jaas else {}))
    assert security.sasl is not None
    assert security.sasl.token is not None
    return security.sasl.token


def token_of(source: TokenSource, timeout: float = 5) -> str:
    return Tokens(source).get("broker.example", time.monotonic() + timeout).reveal()


def failure(source: TokenSource, timeout: float = 5) -> KgctlError:
    with pytest.raises(KgctlError) as failed:
        token_of(source, timeout)
    return failed.value


def jwt(**claims: object) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), "signature"])


# --- files, commands, unsecured tokens, AWS ---


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    tokens = Tokens(source(oauthbearer_token_endpoint_url=path.as_uri()))
    assert tokens.get("", time.monotonic() + 5) == Secret("first")
    path.write_text("second\n")
    assert tokens.get("", time.monotonic() + 5) == Secret("second")
    path.unlink()
    with pytest.raises(AuthenticationFailed, match=r"token: No such file"):
        tokens.get("", time.monotonic() + 5)


def test_a_command_prints_a_token_or_the_document_of_an_endpoint() -> None:
    assert token_of(source(oauthbearer_token_command=f"{sys.executable} -c 'print(\"a-token\")'")) == "a-token"
    document = '{"access_token": "b-token", "expires_in": 60}'
    assert token_of(source(oauthbearer_token_command=f"echo '{document}'")) == "b-token"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-program --token", "no token: no-such-program: No such file"),
        ("false", "no token: false failed with exit code 1: without a message"),
        ("""sh -c 'echo hidden; echo "log in first" >&2; exit 3'""", "sh failed with exit code 3: log in first"),
        ("true", "no token: true printed nothing"),
        ("echo '{}'", "no token: the answer of echo has no access_token"),
        ("sleep 5", "no token: sleep did not end in time"),
    ],
)
def test_a_command_without_a_token_fails_in_one_line(command: str, reason: str) -> None:
    failed = failure(source(oauthbearer_token_command=command), timeout=0.2 if "sleep" in command else 5)
    assert reason in str(failed)
    assert "hidden" not in str(failed)
    assert exit_code_of(failed) == UNREACHABLE


def test_an_unsecured_token_has_its_claims() -> None:
    made = source('unsecuredLoginStringClaim_sub="alice" unsecuredLoginListClaim_scope="|a|b"')
    header, claims, signature = token_of(made).split(".")
    assert (header, signature) == (base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode(), "")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert (decoded["sub"], decoded["scope"], decoded["exp"] - decoded["iat"] >= 3600) == ("alice", ["a", "b"], True)


def test_a_token_is_kept_until_it_gets_old(tmp_path: Path) -> None:
    path, now = tmp_path / "token", 1_000_000.0
    tokens = Tokens(source(oauthbearer_token_endpoint_url=path.as_uri()), clock=lambda: now)
    first, second = jwt(exp=now + 100, number=1), jwt(exp=now + 200, number=2)
    path.write_text(first)
    assert tokens.get("", 0).reveal() == first
    path.write_text(second)
    now += 79
    assert tokens.get("", 0).reveal() == first
    now += 2
    assert tokens.get("", 0).reveal() == second


def test_a_token_that_ends_at_no_time_is_used() -> None:
    token = jwt(exp=10**400)
    assert token_of(source(oauthbearer_token=token)) == token
    document = json.dumps({"access_token": "a-token", "expires_in": 10**400})
    assert token_of(source(oauthbearer_token_command=f"echo '{document}'")) == "a-token"


def test_an_old_token_serves_while_there_is_no_new_one(tmp_path: Path) -> None:
    path, now = tmp_path / "token", 1_000_000.0
    tokens = Tokens(source(oauthbearer_token_endpoint_url=path.as_uri()), clock=lambda: now)
    path.write_text(jwt(exp=now + 100))
    kept = tokens.get("", 0)
    path.unlink()
    now += 90
    assert tokens.get("", 0) == kept
    now += 6
    with pytest.raises(AuthenticationFailed, match="No such file"):
        tokens.get("", 0)


def msk(**options: str) -> TokenSource:
    jaas = "".join(f' {name}="{value}"' for name, value in options.items())
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    return source(jaas.strip(), login_callback_handler_class=handler)


def test_amazons_signer_makes_a_token_for_the_region_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-key")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    host = "b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com"
    token = Tokens(msk()).get(host, time.monotonic() + 5).reveal()
    signed = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    assert signed.startswith("https://kafka.eu-west-1.amazonaws.com/?Action=kafka-cluster%3AConnect")
    assert "AKIAEXAMPLE" in signed
    assert "hidden-key" not in signed


def test_amazon_needs_a_region_and_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert "broker.example does not name an AWS region; set AWS_REGION" in str(failure(msk()))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert exit_code_of(failure(msk())) == UNREACHABLE


def test_amazon_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    failed = failure(msk())
    assert "pip install 'kgctl[aws]'" in str(failed)
    assert exit_code_of(failed) == USAGE


# --- the token endpoint ---


def source_of(endpoint: TokenEndpoint, authority: Authority | None = None, **properties: str) -> TokenSource:
    trust = f' ssl.truststore.location="{authority.ca_file}"' if authority else ""
    jaas = f'clientId="me:1" clientSecret="client-secret" scope="kafka read"{trust}'
    return source(jaas, oauthbearer_token_endpoint_url=endpoint.url, login_retry_backoff_ms="1", **properties)


GOOD = (200, b'{"access_token": "issued", "expires_in": 300, "token_type": "Bearer"}')


@pytest.fixture
def context(authority: Authority, server_context: Callable[[Issued], ssl.SSLContext]) -> ssl.SSLContext:
    return server_context(authority.server("login"))


def test_client_credentials_get_a_token(authority: Authority, context: ssl.SSLContext) -> None:
    with TokenEndpoint(context, GOOD).serving() as endpoint:
        tokens = Tokens(source_of(endpoint, authority))
        for _ in range(2):
            assert tokens.get("", time.monotonic() + 5) == Secret("issued")
    (asked,) = endpoint.asked
    assert asked.form == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}
    assert asked.authorization == "Basic " + base64.b64encode(b"me:1:client-secret").decode()


def test_the_credentials_can_be_url_encoded(authority: Authority, context: ssl.SSLContext) -> None:
    with TokenEndpoint(context, GOOD).serving() as endpoint:
        assert token_of(source_of(endpoint, authority, oauthbearer_header_urlencode="true")) == "issued"
    assert endpoint.asked[0].authorization == "Basic " + base64.b64encode(b"me%3A1:client-secret").decode()


def test_a_failure_of_the_server_is_tried_again_a_few_times(authority: Authority, context: ssl.SSLContext) -> None:
    with TokenEndpoint(context, (503, b""), (500, b""), GOOD).serving() as endpoint:
        assert token_of(source_of(endpoint, authority)) == "issued"
    with TokenEndpoint(context, (503, b"")).serving() as endpoint:
        assert "HTTP 503" in str(failure(source_of(endpoint, authority)))
    assert len(endpoint.asked) == 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, b'{"error": "invalid_client", "error_description": "no"}'), "HTTP 401, invalid_client: no"),
        ((400, b"<html>"), "HTTP 400"),
        ((302, b""), "HTTP 302"),
        ((200, b"<html>"), "the answer is not JSON"),
        ((200, b"[]"), "the answer is not a JSON object"),
        ((200, b"{}"), "has no access_token"),
        ((200, b" " * (1 << 20) + b"{}  "), "the answer is too large"),
    ],
)
def test_a_refusal_is_final(
    authority: Authority, context: ssl.SSLContext, answer: tuple[int, bytes], reason: str
) -> None:
    with TokenEndpoint(context, answer).serving() as endpoint:
        failed = failure(source_of(endpoint, authority))
    assert reason in str(failed)
    assert "client-secret" not in str(failed)
    assert len(endpoint.asked) == 1
    assert exit_code_of(failed) == UNREACHABLE


def test_the_endpoint_must_prove_who_it_is(context: ssl.SSLContext) -> None:
    with TokenEndpoint(context, GOOD).serving() as endpoint:
        failed = failure(source_of(endpoint))
    assert isinstance(failed, TlsFailed)
    assert "token endpoint 127.0.0.1:" in str(failed)
    assert "is issued by CN=kgctl test CA" in str(failed)
    assert endpoint.asked == []


def test_an_endpoint_that_is_down_or_silent_ends_in_time(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    jaas = 'clientId="me" clientSecret="client-secret"'
    refused = failure(source(jaas, oauthbearer_token_endpoint_url=f"https://127.0.0.1:{closed}/token"))
    assert "Connection refused" in str(refused)
    with listening(wait_for_the_end) as silent:
        url = f"https://{silent}/token"
        begun = time.monotonic()
        assert "in time" in str(failure(source(jaas, oauthbearer_token_endpoint_url=url), timeout=0.3))
        assert time.monotonic() - begun < 5


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 400 No\r\nContent-Length: 999\r\n\r\n"])
def test_an_endpoint_that_drips_ends_in_time(head: bytes) -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)

    jaas = 'clientId="me" clientSecret="client-secret"'
    with listening_in_parallel(drip) as endpoint:
        begun = time.monotonic()
        failed = failure(source(jaas, oauthbearer_token_endpoint_url=f"http://{endpoint}/token"), timeout=0.3)
        assert time.monotonic() - begun < 5
    assert str(failed).endswith(("no answer in time", "HTTP 400"))


def test_a_token_endpoint_without_tls_is_used_with_a_warning() -> None:
    with TokenEndpoint(None, GOOD).serving() as endpoint:
        assert token_of(source_of(endpoint)) == "issued"
        properties = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "mine",
        }
    assert "travels in the clear" in security_from(properties).warnings[0]


def test_a_command_that_cannot_be_read_is_a_wrong_option() -> None:
    with pytest.raises(BadSecurity, match=r"sasl\.oauthbearer\.token\.command: no closing quotation"):
        token_of(source(oauthbearer_token_command="echo 'x"))
