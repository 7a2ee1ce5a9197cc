"""format("kgctl") on a cluster with TLS and SASL, whose secrets appear in no plan, no progress and no error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.certificates import Authority
from tests.harness.running import RunningBroker
from tests.harness.sasl_conversations import add_scram_users, options_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "admin-secret"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The options for a broker with TLS and SCRAM, as for Spark's own connector."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
    data = tmp_path_factory.mktemp("data")
    with RunningBroker(data, authority=authority, listeners=listeners, **options_of("sasl_ssl")) as running:
        with running.client("PLAINTEXT") as client:
            add_scram_users(client)
        host, port = running.addresses["SASL_SSL"]
        yield {
            "kafka.bootstrap.servers": f"{host}:{port}",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": f'{SCRAM} required username="admin" password="{SECRET}";',
            "kafka.ssl.truststore.location": str(authority.ca_file),
            "kafka.ssl.truststore.type": "PEM",
        }


def test_records_go_round_and_no_plan_shows_a_secret(
    spark: SparkSession, secured: dict[str, str], tmp_path: Path
) -> None:
    rows = spark.createDataFrame([("one",), ("two",)], "value string")
    rows.write.format("kgctl").options(**secured, topic="secured").mode("append").save()
    batch = spark.read.format("kgctl").options(**secured, subscribe="secured").load()
    assert sorted(bytes(row.value) for row in batch.collect()) == [b"one", b"two"]
    stream = spark.readStream.format("kgctl").options(**secured, subscribe="secured", startingOffsets="earliest").load()
    writer = stream.select("value").writeStream.format("kgctl").options(**secured, topic="copied")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert spark.read.format("kgctl").options(**secured, subscribe="copied").load().count() == 2
    shown = [
        batch._jdf.queryExecution().toString(),  # type: ignore[attr-defined]
        query._jsq.explainInternal(True),
        *map(str, query.recentProgress),
        *(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file()),
    ]
    assert all(SECRET not in text for text in shown)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"kafka.sasl.jaas.config": f'{SCRAM} required username="bob" password="{SECRET}";'},
            "does not accept user 'bob'",
        ),
        ({"kafka.sasl.jaas.config": f'{SCRAM} required username="bob" password={SECRET}'}, "sasl.jaas.config: "),
        ({"kafka.ssl.trustore.location": "x"}, "did you mean ssl.truststore.location?"),
    ],
)
def test_an_error_names_the_reason_and_no_secret(
    spark: SparkSession, secured: dict[str, str], changes: dict[str, str], reason: str
) -> None:
    options = {**secured, **changes, "subscribe": "secured"}
    with pytest.raises(Exception, match="DATA_SOURCE") as failed:
        spark.read.format("kgctl").options(**options).load()
    assert reason in str(failed.value)
    assert SECRET not in str(failed.value)
