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
