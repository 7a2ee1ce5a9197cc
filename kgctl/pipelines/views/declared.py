"""Views that answer frequent questions, in SQL that DuckDB and Spark understand. Does not import Spark."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.model.health import EVALUATED, Health

LAST_REBALANCES = 100
_PLACE = ("group", "topic", "part")


@dataclass(frozen=True, slots=True)
class View:
    """`sql` quotes names as DuckDB does."""

    name: str
    summary: str
    columns: tuple[str, ...]
    sql: str

    @property
    def for_spark(self) -> str:
        return self.sql.replace('"', "`")


def _rank(status: str) -> str:
    cases = " ".join(f"when '{one}' then {rank}" for rank, one in enumerate(EVALUATED))
    return f"case {status} {cases} else {EVALUATED.index(Health.UNKNOWN)} end"


def _word(rank: str) -> str:
    cases = " ".join(f"when {number} then '{one}'" for number, one in enumerate(EVALUATED))
    return f"case {rank} {cases} end"


VIEWS = (
    View(
        "lag_now",
        "each partition of a group at the group's newest point in f_lag",
        (*_PLACE, "at", "committed", "log_end", "lag", "lag_ms", "consume_rate", "produce_rate", "eta_s"),
        """select "group", topic, part, "at", committed, log_end, lag, lag_ms, consume_rate, produce_rate, eta_s
from (select *, max("at") over (partition by "group") as newest from f_lag) points
where "at" = newest""",
    ),
    View(
        "worst_groups",
        "each group at its newest evaluation in health, worst first",
        ("group", "status", "unhealthy", "partitions", "lag", "at"),
        f"""select "group", {_word("worst")} as status, unhealthy, partitions, lag, "at"
from (
    select "group", min({_rank("status")}) as worst, sum(case status when '{Health.OK}' then 0 else 1 end) as unhealthy,
        count(*) as partitions, sum(lag) as lag, max("at") as "at"
    from (select *, max("at") over () as newest from health) evaluations
    where "at" = newest
    group by "group"
) groups_now
order by worst, lag desc nulls last, "group\"""",
    ),
    View(
        "last_rebalances",
        f"the newest {LAST_REBALANCES} rebalances, newest first",
        ("group", "generation", "started", "ended", "duration_ms", "cause", "reason", "members", "moved_parts"),
        f"""select "group", generation, started, ended, duration_ms, cause, reason, members, moved_parts
from f_rebalance
order by ended desc nulls last
limit {LAST_REBALANCES}""",
    ),
)
