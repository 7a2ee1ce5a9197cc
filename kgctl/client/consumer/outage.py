"""How long a consumer has been unable to read: what passes soon is no error."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError, is_missing


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds until an outage is an error, and until a missing topic is: a new one may not be known everywhere yet."""

    outage: float = 60.0
    missing_topic: float = 5.0


class Outage:
    """Call `check` with the obstacle of a consumer while nothing arrives, and with None once something does."""

    def __init__(self, patience: Patience = Patience()) -> None:
        self._patience = patience
        self._since: float | None = None

    def check(self, obstacle: KgctlError | None, now: float, *, is_patient: bool = False) -> float | None:
        """For how many seconds there has been an obstacle. Raises one that lasts too long, unless `is_patient`.

        `now` is in seconds, of any clock.
        """
        if obstacle is None:
            self._since = None
            return None
        if self._since is None:
            self._since = now
        lasted = now - self._since
        if not is_patient and lasted > (
            self._patience.missing_topic if is_missing(obstacle) else self._patience.outage
        ):
            raise obstacle
        return lasted
