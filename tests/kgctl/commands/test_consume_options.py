"""`kgctl consume`: which options go together."""

from __future__ import annotations

import pytest

from tests.harness.commandline import Kgctl


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["t:"], "'t:' is not TOPIC or TOPIC:P"),
        (["t:x"], "'t:x' is not TOPIC or TOPIC:P"),
        (["t:3-1"], "the range 3-1 ends before it begins"),
        (["t:0-100000"], "names more than 100000 partitions"),
        (["t:0", "u"], "name topics or partitions of topics, not both: 'u' has no :PARTITION"),
        (["t:0", "--partition", 1], "Give TOPIC:PARTITION or --partition, not both"),
        (["--include", "t", "--partition", 1], "Give --include or --partition, not both"),
        (["t", "--offset", 3], "needs --partition or TOPIC:PARTITION"),
        (["t", "--partition", 1, "--group", "g"], "name partitions as TOPIC:PARTITION"),
        (["t", "--commit", "sync"], "'--commit': needs --group"),
        (["t", "--commit-interval", 1], "'--commit-interval': needs --group"),
        (["t", "--delivery", "at-most-once"], "'--delivery': needs --group"),
        (["t", "--notices"], "'--notices': needs --group"),
        (["t", "--group-protocol", "consumer"], "'--group-protocol': needs --group"),
        (["t", "--group", "g", "--group-protocol", "consumer", "--session-timeout", 9], "the broker decides it"),
        (
            ["t", "--group", "g", "--group-protocol", "consumer", "--assignor", "range", "--assignor", "a"],
            "can be given once",
        ),
        (["t:0", "--group", "g", "--notices"], "'--notices': needs a member of the group"),
        (["t:0", "--group", "g", "--assignor", "range"], "'--assignor': needs a member of the group"),
        (["t:0", "--group", "g", "--group-instance-id", "i"], "'--group-instance-id': needs a member of the group"),
        (["t", "--group", "g", "--commit", "sync", "--commit-interval", 1], "is for --commit auto"),
        (["t", "--group", "g", "--delivery", "at-most-once", "--commit-interval", 1], "is for --commit auto"),
        (["t", "--group", "g", "--delivery", "at-most-once", "--commit", "none"], "which commits before it prints"),
        (["t", "--group", "g", "--assignor", "fair"], "unknown assignor 'fair'"),
        (["t", "--group", "g", "--assignor", "no_such_module:A"], "cannot import no_such_module"),
        (["t", "--group", "g", "--assignor", "range", "--assignor", "range"], "two assignors have the name 'range'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], sentence: str) -> None:
    refused = Kgctl("127.0.0.1:1")("consume", *arguments)
    assert refused.exit_code == 2, refused.output
    assert sentence in " ".join(refused.stderr.replace("│", " ").split())
