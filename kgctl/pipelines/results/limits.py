"""`--fail-on`: whether a verdict is as bad as a status, or worse."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import CONDITION_NOT_MET
from kgctl.pipelines.results.tables import rank_of
from kgctl.pipelines.results.verdicts import Verdict
from kgctl.pipelines.schemas.model import Table

_NAMED = 5


class VerdictReached(KgctlError):
    """A verdict is as bad as the user's limit, or worse."""

    name = "VERDICT"
    exit_code = CONDITION_NOT_MET


def check_verdicts(verdicts: Sequence[Verdict], tables: Sequence[Table], limit: str) -> None:
    """Raises VerdictReached, which names the worst groups."""
    table_of = {table.name: table for table in tables if limit in table.verdicts}
    ranked = [(rank_of(table_of[one.table], one.status), one) for one in verdicts if one.table in table_of]
    bad = [(rank, one) for rank, one in ranked if rank <= rank_of(table_of[one.table], limit)]
    if not bad:
        return
    bad.sort(key=lambda pair: (pair[0], -(pair[1].lag or 0), pair[1].group))
    shown = "; ".join(_line(one) for _, one in bad[:_NAMED])
    more = f"; and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else ""
    groups = "1 group is" if len(bad) == 1 else f"{len(bad):,} groups are"
    raise VerdictReached(f"{groups} {limit} or worse: {shown}{more}")


def _line(one: Verdict) -> str:
    metrics = [str(row["metric"]) for row in one.details if "metric" in row]
    what = ", ".join(metrics) or f"{one.unhealthy:,} of {one.judged:,} partition{'s' * (one.judged != 1)}"
    lag = f", lag {one.lag:,}" if one.lag else ""
    return f"{one.group} {one.status} ({what}{lag})"
