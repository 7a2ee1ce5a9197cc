"""`kgctl compat kafka-configs` for quotas and SCRAM users, and numbers as Java writes them."""

from __future__ import annotations

import pytest

from kgctl.compat.java_numbers import parse_double, show_double
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl


def test_quotas_and_passwords_of_a_user_are_set_shown_and_removed(our_cluster: Cluster) -> None:
    def tool(*words: str, code: int = 0) -> str:
        done = Kgctl()("compat", "kafka-configs", "--bootstrap-server", our_cluster.bootstrap_servers, *words)
        assert done.exit_code == code, done.output
        assert "secret" not in done.output
        return done.stdout

    user = fresh("u")
    assert tool("--alter", "--user", user, "--add-config", "producer_byte_rate=1e7,request_percentage=50") == (
        f"Completed updating config for user {user}.\n"
    )
    tool("--alter", "--user", user, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=secret]")
    assert tool("--describe", "--user", user) == (
        f"Quota configs for user-principal '{user}' are producer_byte_rate=1.0E7, request_percentage=50.0\n"
        f"SCRAM credential configs for user-principal '{user}' are SCRAM-SHA-512=iterations=8192\n"
    )
    tool("--alter", "--user", user, "--delete-config", "producer_byte_rate,request_percentage")
    tool("--alter", "--user", user, "--delete-config", "SCRAM-SHA-512")
    assert tool("--describe", "--user", user) == ""
    assert tool("--alter", "--user", user, "--delete-config", "producer_byte_rate", code=5) == ""
    assert tool("--alter", "--user", user, "--add-config", "SCRAM-SHA-512=secret", code=1) == ""


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.0, "0.0"), (1024.0, "1024.0"), (1e7, "1.0E7"), (12345678.0, "1.2345678E7"), (0.001, "0.001"), (1e-5, "1.0E-5")],
)
def test_a_number_is_written_as_java_writes_it(number: float, text: str) -> None:
    assert show_double(number) == text
    assert parse_double(f" {text}d") == number


@pytest.mark.parametrize("text", ["", "fast", "1_0", "0x10", "1,5", "inf"])
def test_a_text_that_java_does_not_read_as_a_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        parse_double(text)
