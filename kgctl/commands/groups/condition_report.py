"""What `groups wait` and `groups assert` report: rows, sentences, a JUnit file, annotations for GitHub, the exit code."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import KgctlError
from kgctl.commands.groups.condition_values import Observed
from kgctl.commands.shared.settings import Settings
from kgctl.conditions.errors import BadCondition
from kgctl.conditions.evaluation import Unknown, failures
from kgctl.conditions.observation import is_absent
from kgctl.conditions.parsing import parse
from kgctl.conditions.syntax import Condition, text_of
from kgctl.conditions.variables import VARIABLES
from kgctl.exit_codes import CONDITION_NOT_MET, NOT_FOUND, PARTLY_FAILED, exit_code_of
from kgctl.model.conditions import ConditionRow
from kgctl.model.failure import RowError
from kgctl.render import note

For = Annotated[
    str,
    typer.Option("--for", metavar="CONDITION", help="Such as 'state == Stable and lag < 100'.", show_default=False),
]
Junit = Annotated[
    Path | None,
    typer.Option("--junit", metavar="FILE", help="Write the result to FILE as JUnit XML, too.", show_default=False),
]
GRAMMAR = (
    "A condition compares variables (== != < <= > >=) and combines comparisons with not, and, or, ( ). "
    "A value that is not known meets no condition. Variables:"
)
EXPLANATION = "Kafka's tools cannot check or wait for conditions."


def grammar() -> str:
    """The part of the help that lists the variables."""
    lines = [f"  {name:<11} {variable.meaning}" for name, variable in VARIABLES.items()]
    return f"{GRAMMAR}\n\n\b\n" + "\n".join(lines)


def parsed(text: str) -> Condition:
    """The condition, or BadParameter with the column."""
    try:
        return parse(text)
    except BadCondition as error:
        raise typer.BadParameter(str(error), param_hint="'--for'") from None


def row_of(
    condition: Condition, seen: Observed, waited_ms: int | None = None, held_ms: int | None = None
) -> ConditionRow:
    failed = failures(condition, seen.values)
    error = seen.group.error
    texts = tuple(map(str, failed))
    if not failed:
        error = None
    elif is_absent(seen.group):
        # Each value is missing for the same reason, which the error says.
        texts = tuple(text_of(failure.part) for failure in failed)
        error = RowError("GROUP_ID_NOT_FOUND", f"Consumer group '{seen.group.group}' does not exist.")
    return ConditionRow(
        group=seen.group.group,
        is_met=not failed,
        condition=text_of(condition),
        failed=texts,
        values={str(one): None if isinstance(value, Unknown) else value for one, value in seen.values.items()},
        waited_ms=waited_ms,
        held_ms=held_ms,
        error=error,
    )


class Report:
    """Collects the result of a command and concludes it."""

    def __init__(self, chosen: Settings, command: str, condition: Condition, junit: _JunitFile | None) -> None:
        self._chosen, self._command, self._condition = chosen, command, condition
        self._junit = junit
        self._began = time.monotonic()

    def conclude(self, rows: Sequence[ConditionRow], errors: Sequence[RowError] = ()) -> None:
        """Show the rows and exit with the code that they mean."""
        self._chosen.show(rows, kind="group-conditions", errors=errors)
        sentences = {row.group: _sentence(row) for row in rows if not row.is_met or row.error}
        for sentence in [*sentences.values(), *(error.message for error in errors)]:
            self._complain(sentence)
        self._write(rows, sentences, errors)
        code = _exit_code(rows, errors)
        if code:
            raise typer.Exit(code)

    def fail(self, groups: Sequence[str], error: KgctlError) -> None:
        """Report an error that left no rows; the caller raises it."""
        _annotate(self._command, str(error))
        failed = [ConditionRow(name, False, text_of(self._condition), error=error.as_row()) for name in groups]
        self._write(failed, dict.fromkeys(groups, str(error)), () if groups else (error.as_row(),))

    def _complain(self, sentence: str) -> None:
        note(f"Error: {sentence}")
        _annotate(self._command, sentence)

    def _write(self, rows: Sequence[ConditionRow], sentences: Mapping[str, str], errors: Sequence[RowError]) -> None:
        if self._junit is None:
            return
        from kgctl.render.junit import Case, junit_xml

        each_s = (time.monotonic() - self._began) / max(1, len(rows))
        cases = [Case(row.group, row.condition, each_s, sentences.get(row.group), _is_error(row)) for row in rows]
        cases += [Case("cluster", text_of(self._condition), 0.0, error.message, True) for error in errors]
        self._junit.write(junit_xml(self._command, cases))


@contextmanager
def reporting(
    chosen: Settings, command: str, condition: Condition, junit: Path | None, groups: Sequence[str]
) -> Iterator[Report]:
    """A report that also has the error which ends the block. The JUnit file is opened first: a bad path fails at once."""
    report = Report(chosen, command, condition, None if junit is None else _JunitFile(junit))
    try:
        yield report
    except KgctlError as error:
        report.fail(groups, error)
        raise


class _JunitFile:
    """Replaces the file as a whole; writes into a device, a pipe or a link. Raises BadParameter if that cannot work."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory")
            self._is_replaced = not path.is_symlink() and (path.is_file() or not path.exists())
            if not self._is_replaced:
                return
            handle, name = tempfile.mkstemp(prefix=".kgctl-", suffix=".xml", dir=path.parent)
        except OSError as error:
            raise typer.BadParameter(f"cannot write {str(path)!r}: {error.strerror}.", param_hint="'--junit'") from None
        os.close(handle)
        os.unlink(name)

    def write(self, text: str) -> None:
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}") if self._is_replaced else self._path
        try:
            part.write_text(text, encoding="utf-8")
            if self._is_replaced:
                part.replace(self._path)
        except OSError as error:
            if self._is_replaced:
                with suppress(OSError):
                    part.unlink()
            note(f"Warning: cannot write {str(self._path)!r}: {error.strerror}.")


def _is_error(row: ConditionRow) -> bool:
    return row.error is not None


def _sentence(row: ConditionRow) -> str:
    if row.error is not None:
        message = row.error.message.rstrip(".")
        return f"{message}; {_unmet(row)}" if row.failed and "does not exist" not in message else message
    return f"group '{row.group}': {_unmet(row)}"


def _unmet(row: ConditionRow) -> str:
    after = "" if row.waited_ms is None else f" within {row.waited_ms / 1000:g} s"
    if not row.failed:
        held = 0 if row.held_ms is None else row.held_ms / 1000
        return f"the condition did not hold long enough{after}: {row.condition} has held for {held:.1f} s"
    return f"the condition was not met{after}: {'; '.join(row.failed)}"


def _exit_code(rows: Sequence[ConditionRow], errors: Sequence[RowError]) -> int:
    """3 if a condition is not met, 5 if only groups are missing; other errors have their own code, 4 if they differ."""
    codes = {exit_code_of(row.error) if row.error else CONDITION_NOT_MET for row in rows if not row.is_met}
    codes |= {exit_code_of(error) for error in errors}
    if len(codes) < 2:
        return max(codes, default=0)
    return CONDITION_NOT_MET if codes <= {CONDITION_NOT_MET, NOT_FOUND} else PARTLY_FAILED


def _annotate(command: str, sentence: str) -> None:
    """In GitHub Actions, an annotation: a line on stderr that the runner understands."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from kgctl.render.annotations import annotation

        note(annotation(command, sentence))
