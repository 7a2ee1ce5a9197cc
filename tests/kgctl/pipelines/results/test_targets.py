"""What --sink and --webhook-headers accept, and that messages keep secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.client.net.errors import BadValue
from kgctl.pipelines.results.targets import parse_target, read_headers


def test_a_label_has_neither_path_nor_query() -> None:
    target = parse_target("webhook:https://hooks.example.org:8443/services/T0/s3cret?token=s3cret")
    assert target.label == "webhook:https://hooks.example.org:8443"
    assert "s3cret" not in repr(target)


def test_a_url_can_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("https://example.org/s3cret\n")
    assert parse_target(f"webhook:@{tmp_path / 'url'}").where == "https://example.org/s3cret"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("https://example.org/s3cret", "a sink is kafka:TOPIC"),
        ("kafka:", "a sink is kafka:TOPIC"),
        ("kafka:a b", "'a b' is not the name of a topic"),
        ("kafka:..", "is not the name of a topic"),
        ("prometheus:/tmp", "is a folder"),
        ("prometheus:/tmp/x.txt", "'/tmp/x.txt' does not end in .prom"),
        ("prometheus:/no/such/x.prom", "the folder /no/such does not exist"),
        ("webhook:example.org/s3cret", "is https://HOST/PATH"),
        ("webhook:ftp://example.org/s3cret", "is https://HOST/PATH"),
        ("webhook:https://example.org/s3cret x", "is https://HOST/PATH"),
        ("webhook:https://[::1/s3cret", "is not valid"),
        (f"webhook:https://{'x' * 64}.example.org/s3cret", "is not valid"),
        ("webhook:https://example..org/s3cret", "is not valid"),
        ("webhook:https://me:s3cret@example.org/", "use --webhook-headers"),
        ("webhook:@/no/such", "cannot read /no/such: No such file or directory"),
    ],
)
def test_a_wrong_target_is_refused_without_its_secrets(text: str, message: str) -> None:
    with pytest.raises(BadValue) as raised:
        parse_target(text)
    assert message in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_headers_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "headers"
    path.write_text("# of the team\n\nAuthorization: Bearer s3cret\nX-Team:  data  \n")
    assert read_headers(path, []) == (("Authorization", "Bearer s3cret"), ("X-Team", "data"))


@pytest.mark.parametrize("line", ["s3cret", "Bad Name: s3cret", "X:", "X: s3cret\x07", "Host: s3cret"])
def test_a_wrong_header_is_refused_without_its_value(tmp_path: Path, line: str) -> None:
    path = tmp_path / "headers"
    path.write_text(f"X-Fine: 1\n{line}\n")
    with pytest.raises(BadValue, match="line 2") as raised:
        read_headers(path, [])
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Http"])
def test_headers_are_not_sent_unencrypted_to_another_machine(tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "headers"
    path.write_text("Authorization: s3cret\n")
    with pytest.raises(BadValue, match="use https"):
        read_headers(path, [parse_target(f"webhook:{scheme}://example.org/")])
    assert read_headers(path, [parse_target("webhook:http://127.0.0.1:1/"), parse_target("webhook:http://localhost/")])
