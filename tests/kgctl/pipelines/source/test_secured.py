"""Credentials on their way to the Spark process and its source."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from broker.config.properties import parse_properties
from kgctl.pipelines.settings import RunSettings, from_json
from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import read_options
from kgctl.pipelines.source.secured import CannotHandOver, check_secured, secured_options

SASL = (
    ("security.protocol", "SASL_PLAINTEXT"),
    ("sasl.mechanism", "PLAIN"),
    ("sasl.username", "alice"),
    ("sasl.password", "hu sh"),
)


def settings(**changed: object) -> RunSettings:
    return RunSettings(("decode",), "a:1", "out", **{"connection_properties": SASL} | changed)  # type: ignore[arg-type]


def test_the_settings_take_secrets_through_the_pipe_and_show_none() -> None:
    given = settings()
    assert from_json(given.to_json()) == given
    assert "hu sh" not in repr(given)
    assert "hu sh" not in repr(given.connection("spark"))


def test_the_source_reads_credentials_from_a_private_file_that_ends_with_the_run() -> None:
    with secured_options(settings()) as options:
        assert options.keys() == {"kgctl.commandConfig"}
        file = Path(options["kgctl.commandConfig"])
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert parse_properties(file.read_text()) == {**dict(SASL), "bootstrap.servers": "a:1"}
        read = read_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t", **options})
    assert not file.exists()
    assert read.connection.security == settings().connection("spark").security
    assert pickle.loads(pickle.dumps(read)) == read
    assert "hu sh" not in repr(read)


def test_a_plaintext_cluster_needs_no_file() -> None:
    with secured_options(settings(connection_properties=())) as options:
        assert options == {}


def test_sparks_own_connector_gets_javas_names_and_no_secret() -> None:
    tls = (("security.protocol", "SSL"), ("ssl.ca.location", "/ca.pem"))
    with secured_options(settings(source="kafka", connection_properties=tls)) as options:
        assert options == {
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.location": "/ca.pem",
            "kafka.ssl.truststore.type": "PEM",
        }
    with pytest.raises(CannotHandOver, match=r"--source kafka would show sasl\.password in Spark's plans"):
        check_secured(settings(source="kafka"))


def test_a_server_elsewhere_gets_no_credentials() -> None:
    with pytest.raises(CannotHandOver, match="--remote reads plaintext clusters only"):
        check_secured(settings(remote="sc://there:1"))
    check_secured(settings(remote="sc://there:1", connection_properties=()))


def test_a_context_is_an_option_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kgctl").mkdir()
    (tmp_path / "kgctl" / "config.toml").write_text('[contexts.prod]\nbootstrap.servers = "p:1"\nclient.id = "me"\n')
    connection = read_options({"kgctl.context": "prod", "subscribe": "t"}).connection
    assert (str(connection.bootstrap[0]), connection.client_id) == ("p:1", "me")
    with pytest.raises(BadOption, match="context: there is no context 'nope': the contexts are prod"):
        read_options({"kgctl.context": "nope", "subscribe": "t"})
