"""The Spark session that all tests of a run share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark import fast_start
from kgctl.pipelines.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.kgctl.pipelines.source.second_session import SecondSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session", autouse=True)
def start_fast() -> Iterator[None]:
    """Sessions start the fast way, except in the tests of Spark's own launcher."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast_start.VARIABLE, "1")
        yield


@pytest.fixture(scope="session")
def spark(start_fast: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    settings = RunSettings(
        jobs=(),
        bootstrap="127.0.0.1:1",
        out=str(tmp_path_factory.mktemp("out")),
        master="local[1]",
        conf=(("spark.sql.shuffle.partitions", "1"), ("spark.sql.adaptive.enabled", "false")),
        quick=True,
        log_file=str(tmp_path_factory.mktemp("spark") / "spark.log"),
    )
    with open_session(settings, app_name="tests") as session:
        yield session


@pytest.fixture(scope="session")
def connector_session() -> Iterator[SecondSession]:
    """A session with Spark's Kafka connector, in another process."""
    from tests.harness.reference_kafka import Unavailable
    from tests.kgctl.pipelines.source.connector_jars import connector_jars
    from tests.kgctl.pipelines.source.second_session import second_session

    try:
        jars = connector_jars()
    except Unavailable as reason:
        pytest.skip(f"no jars of Spark's Kafka connector: {reason}")
    with second_session(jars) as opened:
        yield opened
