"""Changes of the user's file: atomic, private, with the comments kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.security.secret import Secret
from kgctl.contexts import store
from kgctl.contexts.context_file import read_file
from kgctl.contexts.names import BadContext
from kgctl.contexts.values import reference
from tests.kgctl.contexts.folders import Home

COMMENTED = """# my clusters
[contexts.prod]  # the real one
bootstrap.servers = "a:1"  # two soon
# the password
sasl.password = { env = "P" }
timeout = 10

[contexts.dev]
bootstrap.servers = "b:1"
"""


def test_a_stored_context_is_read_back_as_it_was(home: Home) -> None:
    given = {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "sasl.password": Secret('q"\\\n\u00e9'),
        "sasl.username": "alice",
        "ssl.key.password": reference("command", "pass 'a b'", home.file.parent),
        "sasl.oauthbearer.token.command": "token --now",
        "read-only": "true",
        "timeout": "2.5",
    }
    path = store.put("prod.eu", given, environ=home.environ)
    found = read_file(path)
    assert found is not None
    assert found.contexts["prod.eu"].settings == given
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_changes_keep_comments_and_everything_else(home: Home) -> None:
    home.write(COMMENTED, mode=0o644)
    store.change("prod", {"bootstrap.servers": "c:1", "color": "red"}, ["timeout"], environ=home.environ)
    assert home.file.read_text() == COMMENTED.replace('"a:1"', '"c:1"').replace("timeout = 10", 'color = "red"')
    assert home.file.stat().st_mode & 0o777 == 0o600
    store.remove("prod", environ=home.environ)
    assert home.file.read_text().endswith('[contexts.dev]\nbootstrap.servers = "b:1"\n')
    assert "prod" not in home.file.read_text()


def test_dotted_and_nested_keys_are_changed_in_place(home: Home) -> None:
    home.write('[contexts.prod]\nsasl = { mechanism = "PLAIN", username = "alice" }\n"bootstrap.servers" = "a:1"\n')
    store.change("prod", {"sasl.username": "bob", "bootstrap.servers": "b:1"}, environ=home.environ)
    assert home.file.read_text() == (
        '[contexts.prod]\nsasl = { mechanism = "PLAIN", username = "bob" }\n"bootstrap.servers" = "b:1"\n'
    )


def test_a_name_is_not_taken_twice(home: Home) -> None:
    home.write(COMMENTED)
    with pytest.raises(BadContext, match="'prod' exists already"):
        store.put("prod", {"bootstrap.servers": "x:1"}, environ=home.environ)
    store.put("prod", {"bootstrap.servers": "x:1"}, replace=True, environ=home.environ)
    found = read_file(home.file)
    assert found is not None
    assert found.contexts["prod"].settings == {"bootstrap.servers": "x:1"}


def test_a_link_to_the_file_stays_a_link(home: Home, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text(COMMENTED)
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(real)
    store.change("dev", {"timeout": "1"}, environ=home.environ)
    assert home.file.is_symlink()
    assert "timeout = 1" in real.read_text()


def test_a_failed_change_leaves_the_file_and_nothing_else(home: Home) -> None:
    home.write(COMMENTED)
    with pytest.raises(BadContext, match="color: 'beige' is not one of"):
        store.change("prod", {"color": "beige"}, environ=home.environ)
    assert home.file.read_text() == COMMENTED
    assert os.listdir(home.file.parent) == ["config.toml"]


def test_removing_the_current_context_leaves_none(home: Home) -> None:
    home.write(COMMENTED)
    home.use("prod")
    done = home.kgctl("context", "remove", "prod")
    assert (done.exit_code, "There is no current context now" in done.stderr) == (0, True)
    assert [row["current"] for row in home.rows("context", "list")] == [False]
    assert home.kgctl("context", "remove", "prod").exit_code == 5


def test_an_empty_value_is_a_value(home: Home) -> None:
    done = home.kgctl("context", "add", "prod", "--bootstrap", "a:1", "--set", "ssl.endpoint.identification.algorithm=")
    assert done.exit_code == 0, done.output
    assert 'ssl.endpoint.identification.algorithm = ""\n' in home.file.read_text()
    for wrong in ("bootstrap.servers=", "security.protocol=SLL", "sasl.mechanism=GSSAPI"):
        assert home.kgctl("context", "add", "dev", "--set", wrong).exit_code == 2


def test_use_refuses_a_context_that_does_not_exist(home: Home) -> None:
    home.write(COMMENTED)
    assert home.kgctl("context", "use", "nope").exit_code == 5
    assert home.kgctl("context", "use", "dev").exit_code == 0
    assert [row["context"] for row in home.rows("context", "list") if row["current"]] == ["dev"]
    assert home.kgctl("context", "use", "--none").exit_code == 0
    assert not any(row["current"] for row in home.rows("context", "list"))


def test_a_java_file_becomes_a_context_and_comes_back(home: Home) -> None:
    java = Path("client.properties")
    java.write_text(
        "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nacks=all\n"
        "ssl.truststore.location=ca.jks\nssl.truststore.password=hush\n"
        'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\\n  username="a" password="b\\\\"";\n'
    )
    done = home.kgctl("context", "import", str(java), "--name", "prod", "--use")
    assert done.exit_code == 0, done.output
    assert "not about the connection: acks." in done.stderr
    for printed in ((), ("--out", "-"), ("--out", "/dev/stdout")):
        refused = home.kgctl("context", "export", "prod", "--with-secrets", *printed)
        assert (refused.exit_code, refused.stdout) == (2, "")
    exported = home.kgctl("context", "export", "prod", "--with-secrets", "--out", "out.properties")
    assert exported.exit_code == 0, exported.output
    assert Path("out.properties").stat().st_mode & 0o777 == 0o600
    for file, truststore in ((java, "ca.jks"), (Path("out.properties"), str(Path("ca.jks").absolute()))):
        shown = {row["setting"]: row["value"] for row in home.rows("context", "show", "--command-config", str(file))}
        assert shown["ssl.truststore.location"] == truststore
    from broker.config.properties import parse_properties

    wanted = parse_properties(java.read_text())
    del wanted["acks"]
    wanted["ssl.truststore.location"] = str(Path("ca.jks").absolute())
    assert parse_properties(Path("out.properties").read_text()) == wanted
    assert home.kgctl("context", "export", "prod", "--with-secrets").exit_code == 2


def test_an_export_has_javas_names(home: Home) -> None:
    home.write(
        '[contexts.prod]\nsecurity.protocol = "SASL_SSL"\nsasl.mechanism = "SCRAM-SHA-512"\nsasl.username = "al\\"ice"\n'
        'sasl.password = { env = "P" }\nssl.ca.location = "ca.pem"\n'
    )
    assert home.kgctl("context", "export", "prod").stdout.splitlines() == [
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        f"ssl.truststore.location={home.file.parent / 'ca.pem'}",
        "ssl.truststore.type=PEM",
        'sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="al\\\\"ice";',
        "# sasl.password: left out, it is a secret (env P)",
    ]
    home.write('[contexts.prod]\nssl.ca.pem = "c"\nssl.certificate.pem = "d"\nssl.key.pem = { env = "K" }\n')
    assert home.kgctl("context", "export", "prod").stdout.splitlines() == [
        "ssl.truststore.certificates=c",
        "ssl.keystore.certificate.chain=d",
        "ssl.truststore.type=PEM",
        "ssl.keystore.type=PEM",
        "# ssl.key.pem: left out, it is a secret (env K)",
    ]


def test_an_export_has_the_schema_registry_and_comes_back(home: Home) -> None:
    home.write(
        '[contexts.prod]\nbootstrap.servers = "a:1"\nschema.registry.url = "https://r:8081"\n'
        'schema.registry.basic.auth.user.info = { env = "R" }\nschema.registry.ssl.ca.location = "ca.pem"\n'
    )
    public = [
        "bootstrap.servers=a:1",
        "schema.registry.url=https://r:8081",
        f"schema.registry.ssl.truststore.location={home.file.parent / 'ca.pem'}",
        "schema.registry.ssl.truststore.type=PEM",
    ]
    assert home.kgctl("context", "export", "prod").stdout.splitlines() == [
        *public,
        "# schema.registry.basic.auth.user.info: left out, it is a secret (env R)",
    ]
    exported = home.kgctl("context", "export", "prod", "--with-secrets", "--out", "o.properties", R="alice:secret")
    assert exported.exit_code == 0, exported.output
    assert set(Path("o.properties").read_text().splitlines()) == {
        *public,
        "basic.auth.user.info=alice:secret",
        "basic.auth.credentials.source=USER_INFO",
    }
    done = home.kgctl("context", "import", "o.properties", "--name", "again")
    assert (done.exit_code, "Left out" in done.stderr) == (0, False), done.output
    values = {row["setting"]: row["value"] for row in home.rows("context", "show", "again")}
    assert values["schema.registry.ssl.ca.location"] == str(home.file.parent / "ca.pem")
    assert values["schema.registry.basic.auth.user.info"] == "***"
    home.write('[contexts.prod]\nschema.registry.url = "http://r"\nschema.registry.bearer.auth.token = { env = "T" }\n')
    exported = home.kgctl("context", "export", "prod", "--with-secrets", "--out", "t.properties", T="secret")
    assert Path("t.properties").read_text().splitlines() == [
        "schema.registry.url=http://r",
        "bearer.auth.token=secret",
        "bearer.auth.credentials.source=STATIC_TOKEN",
    ]


def test_a_truststore_of_java_is_not_taken_for_certificates_in_pem(home: Home) -> None:
    java = Path("client.properties")
    java.write_text(
        "bootstrap.servers=a:1\nschema.registry.url=https://r\nschema.registry.ssl.truststore.location=ca.jks\n"
    )
    done = home.kgctl("context", "import", str(java), "--name", "prod")
    assert (
        "Left out, because they are not about the connection: schema.registry.ssl.truststore.location." in done.stderr
    )


def test_the_editor_gets_a_private_copy_and_an_invalid_result_is_refused(home: Home, tmp_path: Path) -> None:
    home.write(COMMENTED)
    good = tmp_path / "good"
    good.write_text('#!/bin/sh\nstat -c %a "$1" >&2\nsed -i s/a:1/z:1/ "$1"\n')
    bad = tmp_path / "bad"
    bad.write_text('#!/bin/sh\necho nope = 1 >> "$1"\n')
    for program in (good, bad):
        program.chmod(0o755)
    assert home.kgctl("context", "edit", EDITOR=str(good), VISUAL="").exit_code == 0
    assert home.file.read_text() == COMMENTED.replace("a:1", "z:1")
    done = home.kgctl("context", "edit", VISUAL=str(bad))
    assert done.exit_code == 2
    assert "line 10: unknown setting 'nope'" in done.stderr
    (kept,) = home.file.parent.glob("edited-*.toml")
    assert str(kept) in done.stderr
    assert home.file.read_text() == COMMENTED.replace("a:1", "z:1")


def test_the_shell_completes_context_names(home: Home) -> None:
    home.write(COMMENTED)
    for words in ("kgctl groups list --context p", "kgctl context use p"):
        done = home.kgctl(_KGCTL_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1))
        assert done.stdout.split() == ["prod"], words
