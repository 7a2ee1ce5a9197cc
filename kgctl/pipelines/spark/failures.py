"""Why a job failed, as one sentence out of Spark's pages."""

from __future__ import annotations

import importlib
import pkgutil
import re

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.source.losses import ADVICE

# The last line of a Python worker's traceback, which Spark quotes in the middle of its own: of ours, and of any.
_OWN_ERROR = re.compile(r"^(kgctl(?:\.\w+)+)\.(\w+): (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Warning)): (.+)$", re.MULTILINE)
_SPARKS_OWN = ("Py4JJavaError", "PythonException", "StreamingQueryException", "SparkException")
# What Java says it was, at the end: Caused by: org.apache.spark.SparkException: text
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_TAGS = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
LONGEST = 600


class Interrupted(Exception):
    """A person wants to end."""


class JobFailed(KgctlError):
    """A job cannot go on; what it had committed stays, and the next run goes on there."""

    def __init__(self, job: str, reason: KgctlError) -> None:
        self.job, self.exit_code, self.name = job, reason.exit_code, reason.name
        # A run has no such option: to go on in the same tables would leave a gap that nobody sees.
        told = str(reason).replace(ADVICE, "another --out begins anew with what is there")
        super().__init__(f"job {job} failed: {told}")


def reason_of(error: BaseException) -> KgctlError:
    """What lies at the bottom: our own error if there is one in the chain, else the sentence of it that tells most."""
    seen: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in seen:
        if isinstance(step, KgctlError):
            return step
        seen.append(step)
        step = step.__cause__ or step.__context__
    return _from_text(str(error))


def _from_text(text: str) -> KgctlError:
    own = list(_OWN_ERROR.finditer(text))
    if own:
        module, name, told = own[-1].groups()
        kind = getattr(importlib.import_module(module), name, None) if module in _known_modules() else None
        failure = KgctlError(_short(told))
        if isinstance(kind, type) and issubclass(kind, KgctlError):
            failure.exit_code, failure.name = kind.exit_code, kind.name
        return failure
    return KgctlError(sentence_of(text))


def _known_modules() -> set[str]:
    """What a worker can have raised from: only what is installed here is imported by a name out of a text."""
    import kgctl

    return {module.name for module in pkgutil.walk_packages(kgctl.__path__, "kgctl.")}


def sentence_of(text: str) -> str:
    """One line, of bounded length: the innermost error of a Python worker or of Java, else the first line that says something."""
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
