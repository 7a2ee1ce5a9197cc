"""A faster way to start Spark's JVM, the default on this machine: KGCTL_SPARK_FAST_START=0 turns it off.

It starts the JVM directly instead of through Spark's launcher, which is another JVM; it gives Python workers a
SPARK_HOME from which they import the compiled pyspark; and it keeps a class-data archive for the JVM in the cache.
`session.py` is the only module that imports this package.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kgctl.pipelines.spark.fast_start.class_archive import drop, find, make_in_background, using_flags
from kgctl.pipelines.spark.fast_start.gateway import class_path, connect, jars_class_path, start_jvm
from kgctl.pipelines.spark.fast_start.spark_home import light_spark_home
from kgctl.pipelines.spark.installation import scala_version
from kgctl.pipelines.spark.launcher import Launch, SparkDidNotStart, end_jvm

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

VARIABLE = "KGCTL_SPARK_FAST_START"


def is_enabled(master: str) -> bool:
    """On this machine unless the user turns it off, on a standalone cluster if the user asks for it.

    YARN and Kubernetes need the set-up that Spark's launcher does.
    """
    chosen = os.environ.get(VARIABLE, "")
    if not chosen:
        return master == "local" or master.startswith("local[")
    return chosen != "0" and master.startswith(("local", "spark://"))


@contextlib.contextmanager
def launched(launch: Launch, end_timeout_s: float) -> Iterator[JavaGateway]:
    """As `launcher.launched`."""
    launch = replace(launch, environ={**launch.environ, **_spark_home(launch)})
    archive = find(launch.java) if class_path(launch) == jars_class_path() else None
    process = start_jvm(launch, using_flags(launch.java, archive))
    try:
        # Importing takes as long as the JVM needs to start.
        import pyspark.sql  # noqa: F401

        try:
            gateway = connect(process, launch)
        except SparkDidNotStart:
            if archive is None:
                raise
            # The archive is only an optimization: start again without it.
            end_jvm(process, 0)
            process = start_jvm(launch, ())
            gateway = connect(process, launch)
            # Not earlier: a wrong JVM option fails both starts, and the archive may be good.
            drop(archive)
        yield gateway
    finally:
        end_jvm(process, end_timeout_s)
    make_in_background(launch.java)


def _spark_home(launch: Launch) -> dict[str, str]:
    # The workers of local-cluster write their files into SPARK_HOME.
    in_scratch = launch.conf.get("spark.master", "").startswith("local-cluster")
    home = light_spark_home(launch.scratch if in_scratch else None)
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala_version()}
