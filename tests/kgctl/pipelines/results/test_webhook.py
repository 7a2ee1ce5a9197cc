"""Webhooks: what is posted, what is tried again, and what a user sees when it fails."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.results.notices import Ledger, Notice
from kgctl.pipelines.results.targets import Target
from kgctl.pipelines.results.verdicts import read_verdicts
from kgctl.pipelines.results.webhook import MAX_NOTICES, Limits, post
from kgctl.pipelines.schemas import HEALTH
from tests.harness.certificates import Authority
from tests.harness.webhook_server import CUT, SILENT, WebhookServer
from tests.kgctl.pipelines.results.evaluations import evaluate


def notices(out: Path, **statuses: str) -> list[Notice]:
    evaluate(out, 0, **statuses)
    ledger = Ledger(out, Target("webhook", "x"), "c", wants_healthy=False)
    return ledger.due(read_verdicts(out, HEALTH), ["health"], 1000, 0)


def send(
    server: WebhookServer, some: Sequence[Notice], headers: Sequence[tuple[str, str]] = (), **limits: float
) -> list[float]:
    """The pauses that were taken."""
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    chosen = Limits(pause=pause, **limits)  # type: ignore[arg-type]
    assert [one for part in post(server.url, headers, some, "c", chosen) for one in part] == list(some)
    return pauses


def test_a_request_has_the_verdicts_with_their_reasons_and_the_headers(tmp_path: Path) -> None:
    some = notices(tmp_path, orders="OK STALLED", fine="OK")
    with WebhookServer(200).serving() as server:
        assert send(server, some, [("Authorization", "Bearer x")]) == []
    (request,) = server.requests
    assert (request.path, request.headers["Authorization"]) == ("/hooks/s3cret", "Bearer x")
    assert request.headers["Content-Type"] == "application/json"
    (found,) = request.content["verdicts"]
    unhealthy = {"topic": "orders", "partition": 1, "status": "STALLED", "lag": 11, "eta_s": None, "complete": 1.0}
    assert found == {
        "id": some[0].id,
        "table": "health",
        "cluster": "c",
        "group": "orders",
        "status": "STALLED",
        "previous": None,
        "since": "2024-01-01T12:00:00.000Z",
        "at": "2024-01-01T12:00:00.000Z",
        "repeated": 0,
        "resolved": False,
        "lag": 11,
        "judged": 2,
        "unhealthy_count": 1,
        "unhealthy": [unhealthy | {"reasons": ["why STALLED"]}],
        "unhealthy_more": 0,
    }


def test_failures_of_the_server_are_tried_again_with_the_same_key(tmp_path: Path) -> None:
    with WebhookServer(503, 429, CUT, 204).serving() as server:
        pauses = send(server, notices(tmp_path, g="STALLED"))
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert len(server.requests) == 4
    assert all(0 <= pause <= most for pause, most in zip(pauses, (0.5, 1, 2), strict=True))


def test_a_server_that_names_a_time_is_not_asked_before(tmp_path: Path) -> None:
    with WebhookServer(429, 200, retry_after="7").serving() as server:
        assert send(server, notices(tmp_path, g="STALLED")) == [7.0]


@pytest.mark.parametrize(
    "time", ["soon", "Mon, 99 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +99999999999999999999"]
)
def test_a_time_that_is_no_date_does_not_count(tmp_path: Path, time: str) -> None:
    with WebhookServer(429, 200, retry_after=time).serving() as server:
        (pause,) = send(server, notices(tmp_path, g="STALLED"))
    assert pause <= 0.5


def test_many_verdicts_go_in_several_requests(tmp_path: Path) -> None:
    some = notices(tmp_path, **{f"g{number}": "STALLED" for number in range(MAX_NOTICES + 1)})
    with WebhookServer(200).serving() as server:
        send(server, some)
    assert [len(request.content["verdicts"]) for request in server.requests] == [MAX_NOTICES, 1]


@pytest.mark.parametrize(
    ("status", "message", "requests"),
    [
        (404, "HTTP 404", 1),
        (302, "HTTP 302", 1),
        (500, "HTTP 500 after 5 attempts", 5),
        (CUT, "the server closed the connection, or does not speak HTTP after 5 attempts", 5),
        (SILENT, "no answer in time after 5 attempts", 5),
    ],
)
def test_a_failure_is_one_line_without_secrets(tmp_path: Path, status: int, message: str, requests: int) -> None:
    with WebhookServer(status).serving() as server:
        with pytest.raises(KgctlError) as raised:
            send(server, notices(tmp_path, g="STALLED"), [("Authorization", "s3cret")], answer_s=0.2)
        assert str(raised.value) == message
        assert len(server.requests) == requests


def test_a_server_that_is_not_there_is_named_by_its_failure(tmp_path: Path) -> None:
    with WebhookServer(200).serving() as server:
        pass
    with pytest.raises(KgctlError, match=r"^connection refused after 5 attempts$"):
        send(server, notices(tmp_path, g="STALLED"))


def test_the_end_of_the_run_ends_the_attempts(tmp_path: Path) -> None:
    some = notices(tmp_path, g="STALLED")
    with WebhookServer(500).serving() as server, pytest.raises(KgctlError, match="HTTP 500"):
        list(post(server.url, [], some, "c", Limits(pause=lambda _: True)))
    assert len(server.requests) == 1


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path / "ca")
    issued = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    some = notices(tmp_path, g="STALLED")
    with WebhookServer(200, context=context).serving() as server:
        with pytest.raises(
            KgctlError, match=r"^the certificate is not valid: self-signed certificate in certificate chain$"
        ):
            send(server, some)
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
        send(server, some)
    assert len(server.requests) == 1
