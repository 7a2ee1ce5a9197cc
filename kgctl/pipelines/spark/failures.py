"""Turns Spark's long error texts into one sentence."""

from __future__ import annotations

import importlib
import pkgutil
import re

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.source.losses import ADVICE

# The last line of a Python worker's traceback, which Spark quotes in its text: a kgctl error, any error.
_OWN_ERROR = re.compile(r"^(kgctl(?:\.\w+)+)\.(\w+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning)): (.+)$", re.MULTILINE)
_SPARKS_OWN = ("Py4JJavaError", "PythonException", "StreamingQueryException", "SparkException")
# Java's last line about a cause. Caused by: org.apache.spark.SparkException: text
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_TAGS = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
LONGEST = 600


class Interrupted(Exception):
    """The user ended the run."""


class JobFailed(KgctlError):
    """A job failed. What it had committed stays, and the next run continues from there."""

    def __init__(self, job: str, reason: KgctlError) -> None:
        self.job, self.name = job, reason.name
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
    own = list(_OWN_ERROR.finditer(text))
    if own:
        module, name, message = own[-1].groups()
        kind = getattr(importlib.import_module(module), name, None) if module in _known_modules() else None
        failure = KgctlError(_short(message))
        if isinstance(kind, type) and issubclass(kind, KgctlError):
            failure.name = kind.name
        return failure
    return KgctlError(sentence_of(text))


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
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return _short(next((line for line in lines if not line.startswith(("at ", "=="))), "Spark gave no reason"))


def _short(text: str) -> str:
    text = _TAGS.sub("", text)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
