"""Turns Spark's long error texts into one sentence."""

from __future__ import annotations

import importlib
import pkgutil
import re

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.source.losses import ADVICE

# The last line of a Python worker's traceback, which Spark quotes in its text: a kgctl error, any error.
_OWN_ERROR = re.compile(r"^(kgctl(?:\.\w+)+)\.(\w+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(
    r"^(?!(?:java|javax|scala|org|com)\.)(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning)): (.+)$", re.MULTILINE
)
_SPARKS_OWN = ("Py4JJavaError", "PythonException", "StreamingQueryException", "SparkException")
# Java's last line about a cause. Caused by: org.apache.spark.SparkException: text
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
# Py4J's text about an exception of Java.
_CALLED = re.compile(r"\AAn error occurred while calling .+\n: (?:[\w.$]+: )?(.+)")
# PythonWorkerFactory of Spark.
_NO_WORKER = re.compile(r"Python worker failed to connect back|Python daemon failed to launch worker")
# What Linux says about a full disk, a quota, and a limit on the size of files.
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|File too large")
_NO_STATE = re.compile(r"\[CANNOT_LOAD_STATE_STORE|org\.rocksdb\.RocksDBException: ")
_WRONG_SETTING = re.compile(r"\[INVALID_CONF_VALUE\b")
_TAGS = re.compile(r"^\[[A-Z_.0-9]+\]\s*| SQLSTATE: \w{5}$")
LONGEST = 600


class Interrupted(Exception):
    """The user ended the run."""


class WorkerDidNotStart(KgctlError):
    """Spark gives a new Python process ten seconds to connect, which cannot be configured and can be too short."""

    name = "WORKER_DID_NOT_START"

    def __init__(self) -> None:
        super().__init__(
            "a Python worker did not start within the ten seconds that Spark waits: the machine is too busy"
        )


class DiskFull(KgctlError):
    name = "DISK_FULL"
    says_all = True

    def __init__(self) -> None:
        super().__init__("no space is left on a disk")


class WrongSetting(KgctlError):
    """Spark refuses the value of a setting; its text names both."""

    name = "WRONG_SETTING"
    says_all = True


class StateUnreadable(KgctlError):
    """Spark cannot load the state of a query from its checkpoint."""

    name = "STATE_UNREADABLE"


class JobFailed(KgctlError):
    """A job failed. What it had committed stays, and the next run continues from there.

    `says_all`, of this and other errors: the text explains the failure, so that Spark's log is not shown.
    """

    def __init__(self, job: str, reason: KgctlError) -> None:
        self.job, self.name, self.says_all = job, reason.name, getattr(reason, "says_all", False)
        # A run has no such option: continuing in the same tables would leave an invisible gap.
        text = str(reason).replace(ADVICE, "give another --out to start again with the records that are left")
        super().__init__(f"job {job} failed: {text}")


def reason_of(error: BaseException) -> KgctlError:
    """The root cause: the kgctl error in the chain, if there is one, else the most informative sentence of the text."""
    visited: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in visited:
        if isinstance(step, KgctlError):
            return step
        visited.append(step)
        step = step.__cause__ or step.__context__
    return _from_text(_text_of(error))


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except AssertionError:
        # The errors of Spark ask its JVM for their text; without it they have a description.
        return str(getattr(error, "_desc", "")) or type(error).__name__


def _from_text(text: str) -> KgctlError:
    if _NO_WORKER.search(text):
        return WorkerDidNotStart()
    if _NO_SPACE.search(text):
        return DiskFull()
    own = list(_OWN_ERROR.finditer(text))
    if own:
        module, name, message = own[-1].groups()
        kind = getattr(importlib.import_module(module), name, None) if module in _known_modules() else None
        failure = KgctlError(_short(message))
        if isinstance(kind, type) and issubclass(kind, KgctlError):
            failure.name = kind.name
        return failure
    sentence = sentence_of(text)
    if _WRONG_SETTING.search(text):
        return WrongSetting(sentence)
    return StateUnreadable(sentence) if _NO_STATE.search(text) else KgctlError(sentence)


def _known_modules() -> set[str]:
    """The modules of kgctl: a name found in a text must not import anything else."""
    import kgctl

    return {module.name for module in pkgutil.walk_packages(kgctl.__path__, "kgctl.")}


def sentence_of(text: str) -> str:
    """One line of bounded length: the innermost error of a Python worker or of Java, else the first meaningful line."""
    quoted = [match.group(2) for match in _PYTHON_ERROR.finditer(text) if match.group(1) not in _SPARKS_OWN]
    if quoted:
        return _short(quoted[-1])
    causes = [match.group(1) for match in _CAUSE.finditer(text)]
    if causes:
        return _short(causes[-1])
    if called := _CALLED.match(text):
        return _short(called.group(1))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _short(next((line for line in lines if not line.startswith(("at ", "=="))), "Spark gave no reason"))


def _short(text: str) -> str:
    text = _TAGS.sub("", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
