"""Why a job failed, as one sentence out of Spark's pages."""

from __future__ import annotations

import re

from kgctl.client.errors import KgctlError

# The last line of a Python worker's traceback, which Spark quotes in the middle of its own.
_PYTHON_ERROR = re.compile(
    r"^(?:[\w.]+\.)?(\w*(?:Error|Exception|Warning|Unreachable|Refused|NotFound|Damaged|TimedOut|NotKafka|Lost|Precondition|Busy|Unsupported|BadValue))(?:: (.*))?$",
    re.MULTILINE,
)
_TAGS = re.compile(r"^\[[A-Z_.0-9]+\]\s*")
LONGEST = 600


class Interrupted(Exception):
    """A person wants to end."""


class JobFailed(KgctlError):
    """A job cannot go on; what it had committed stays, and the next run goes on there."""

    def __init__(self, job: str, reason: KgctlError) -> None:
        self.job, self.exit_code, self.name = job, reason.exit_code, reason.name
        super().__init__(f"job {job} failed: {reason}")


def reason_of(error: BaseException) -> KgctlError:
    """What lies at the bottom: our own error if there is one in the chain, else the sentence of it that tells most."""
    seen: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in seen:
        if isinstance(step, KgctlError):
            return step
        seen.append(step)
        step = step.__cause__ or step.__context__
    return KgctlError(sentence_of(str(error)))


def sentence_of(text: str) -> str:
    """One line, of bounded length: the innermost error of a Python worker, else the first line that says something."""
    quoted = [match for match in _PYTHON_ERROR.finditer(text) if match.group(2)]
    own = [
        match
        for match in quoted
        if match.group(1) not in ("Py4JJavaError", "PythonException", "StreamingQueryException")
    ]
    if own:
        found = str(own[-1].group(2))
    else:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        found = next((line for line in lines if not line.startswith(("at ", "=="))), "Spark gave no reason")
    found = _TAGS.sub("", found)
    return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."
