"""What the options of every command say: which cluster, which output, how long to wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from broker.light_dataclasses import dataclass, field, replace

if TYPE_CHECKING:
    import typer

    from kgctl.client.admin.admin import Admin
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.client.net.tracing import Trace
    from kgctl.client.schema_registry.settings import RegistrySettings
    from kgctl.contexts.handover import PortableSettings
    from kgctl.contexts.target import Given, Target
    from kgctl.model.failure import RowError
    from kgctl.render.selection import Selection, SortKey

C = TypeVar("C", bound="ConnectionSettings")


@dataclass(slots=True)
class Settings:
    """What a command finds as `ctx.obj`; `timeout` in seconds. `owns_process`: the process ends with the command.

    `command_line` are the words behind `kgctl`, `plan_file` is where --plan writes.
    """

    bootstrap: str | None = None
    context: str | None = None
    command_config: str | None = None
    output: str = "table"
    color: str = "auto"
    timeout: float = 30.0
    owns_process: bool = False
    is_timeout_given: bool = False
    wants_explanation: bool = False
    trace: Trace | None = None
    columns: tuple[str, ...] = ()
    sort: tuple[SortKey, ...] = ()
    no_headers: bool | None = None
    watch: float | None = None
    _is_kept: bool = False
    _kept: Admin | None = None
    confirmed: list[str] = field(default_factory=list)
    plan_file: str | None = None
    is_journaled: bool = True
    command_line: tuple[str, ...] = ()
    _target: Target | None = None
    _has_warned: bool = False
    _has_explained: bool = False

    def given(self) -> Given:
        from kgctl.contexts.target import Given

        return Given(self.bootstrap, self.context, self.command_config)

    def target(self) -> Target:
        """The chosen cluster. Raises BadContext; opens no connection and resolves no secret."""
        if self._target is None:
            from kgctl.contexts.target import choose

            self._target = choose(self.given())
            for sentence in self._target.notes:
                from kgctl.render import note

                note(f"Note: {sentence}" if sentence.endswith("?") else f"Note: {sentence}.")
        return self._target

    def use(self, target: Target) -> None:
        """A cluster that an option of the command names: advice on errors is then about it."""
        self._target = target

    def connection(self) -> ConnectionSettings:
        """How to reach the chosen cluster, with the time limit of the command or of the context."""
        from kgctl.contexts.connecting import connection_to

        found = connection_to(self.target(), timeout=self.timeout if self.is_timeout_given else None)
        return self._warned(found if self.trace is None else replace(found, trace=self.trace))

    def registry(self, url: str | None) -> RegistrySettings:
        """The schema registry at `url`, or that of the chosen cluster's context. Raises BadContext."""
        from kgctl.contexts.registry import registry_of

        return registry_of(self.target(), url, timeout=self.timeout if self.is_timeout_given else None)

    def portable_connection(self) -> PortableSettings:
        """The same for a process that this one starts."""
        from kgctl.contexts.connecting import DEFAULT_TIMEOUT_S, resolved
        from kgctl.contexts.handover import portable

        target = self.target()
        default = target.timeout or DEFAULT_TIMEOUT_S
        return self._warned(portable(resolved(target), timeout=self.timeout if self.is_timeout_given else default))

    def _warned(self, connection: C) -> C:
        """The same settings, after a warning, once, if they are less secure than they could be."""
        if not self._has_warned:
            self._has_warned = True
            for sentence in connection.security.warnings:
                from kgctl.render import note

                note(f"Warning: {sentence}.")
        return connection

    def admin(self) -> Admin:
        """A client of the chosen cluster; use it in a `with`."""
        if self._is_kept:
            from kgctl.commands.shared.kept_admin import KeptAdmin

            self._kept = self._kept or KeptAdmin(self.connection())
            return self._kept
        from kgctl.client.admin.admin import Admin

        return Admin(self.connection())

    @contextmanager
    def kept_connection(self) -> Iterator[None]:
        """Let all calls of `admin` share one client."""
        self._is_kept = True
        try:
            yield
        finally:
            self._is_kept = False
            self.drop_connection()

    def drop_connection(self) -> None:
        """Let the next call of `admin` start with a new client, which knows nothing of what has failed."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def show(
        self,
        rows: Sequence[Any],
        *,
        kind: str,
        row: type | None = None,
        verbose: bool = False,
        errors: Iterable[RowError | None] = (),
    ) -> None:
        """Print rows to stdout as --output and --color say.

        `row`: their type, for rows whose columns are known only at run time. `errors`: what failed and has no row of its own, such as a broker that did not answer.
        """
        from kgctl.render import show

        with _usage_errors():
            show(
                rows,
                self.output,
                self.color,
                kind=kind,
                row=row,
                verbose=verbose,
                errors=errors,
                selection=self.selection,
            )

    @property
    def selection(self) -> Selection:
        from kgctl.render.selection import Selection

        return Selection(self.columns, self.sort, not self.no_headers)

    def check_output(self, kinds: Sequence[str]) -> None:
        """Check the columns and the template for a command that shows rows of these kinds, before it asks the cluster."""
        from kgctl.render.formats import check_fields, is_program

        if not (self.columns or self.sort or is_program(self.output)):
            return
        from kgctl.render.layouts import layout_of
        from kgctl.render.selection import keys_of

        with _usage_errors():
            layouts = [layout_of(kind, ()) for kind in kinds]
            self.selection.check(layouts)
            if is_program(self.output):
                check_fields(self.output, [key for layout in layouts for key in keys_of(layout)])

    def explain(self, sentence: str) -> None:
        """With --explain, a sentence on stderr about where values come from, or why some are missing."""
        if self.wants_explanation:
            from kgctl.render import note

            note(sentence)

    def end_explanation(self) -> None:
        """For commands that have named no command of Kafka's tools."""
        if not (self._has_explained or self.watch):
            self.explain("kgctl cannot name a command of Kafka's tools for this.")

    def explain_as(self, tool: str, *arguments: str, config_option: str = "--command-config") -> None:
        """With --explain, the command of Kafka's own tools that does the same: `tool` with these arguments.

        The options that name the cluster are added.
        """
        if not self.wants_explanation:
            return
        import shlex

        from kgctl.contexts.names import BOOTSTRAP

        target = self.target()
        cluster = ["--bootstrap-server", target.text(BOOTSTRAP) or ""]
        cluster += [config_option, str(target.java_file)] if target.java_file else []
        self._has_explained = True
        self.explain(f"Kafka's tool: {shlex.join([tool, *cluster, *arguments])}")

    def connection_advice(self) -> str:
        """What to do when nothing listens at the address."""
        return self.target().advice


def settings(ctx: typer.Context) -> Settings:
    found = ctx.obj
    assert isinstance(found, Settings)
    return found


@contextmanager
def _usage_errors() -> Iterator[None]:
    from kgctl.render.program import BadFormat
    from kgctl.render.selection import BadColumn

    try:
        yield
    except BadColumn as error:
        import typer

        raise typer.BadParameter(str(error), param_hint="'--columns', '--sort'") from error
    except BadFormat as error:
        import typer

        raise typer.BadParameter(str(error), param_hint="'-o'") from error
