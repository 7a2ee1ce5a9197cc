"""Faults of the network of clients."""

from __future__ import annotations

from tests.mutation.faults import Fault

NETWORK = ("tests/kgctl/client/network",)
ENGINE = ("tests/kgctl/client/engine",)


def fault(name: str, path: str, right: str, wrong: str, tests: tuple[str, ...] = NETWORK) -> Fault:
    return Fault(name, f"client/{path}", right, wrong, tests, "kgctl")


NETWORK_FAULTS = (
    fault(
        "refused credentials are tried again before the program has seen the error",
        "network/connections.py",
        "        return self.final_error is not None and peer.error is not None and peer.error.is_final\n",
        "        return False\n",
    ),
    fault(
        "a broker that does not answer is not left",
        "network/connections.py",
        "            elif now_ms >= link.deadline_ms and self._is_overdue(link, now_ms):\n",
        "            elif now_ms > link.setup_ms << 10 and self._is_overdue(link, now_ms):\n",
    ),
    fault(
        "a connection is replaced while it has requests",
        "network/connections.py",
        "        if link.is_idle and (link.is_leaving or now_ms >= link.expires_ms):\n",
        "        if link.is_leaving or now_ms >= link.expires_ms:\n",
    ),
    fault(
        "requests go to a session that has ended",
        "network/connections.py",
        "            and now_ms < link.expires_ms\n",
        "",
    ),
    fault(
        "a throttled client continues",
        "network/connections.py",
        "            and now_ms >= peer.throttled_until_ms\n",
        "",
    ),
    fault(
        "an answer to another request is taken for the answer",
        "network/connections.py",
        "            if not link.in_flight or correlation_id_of(frame) != link.in_flight[0].correlation_id:\n",
        "            if not link.in_flight:\n",
    ),
    fault(
        "answers of a broker that lags behind bring old leaders back",
        "network/metadata.py",
        "            if before is not None and -1 < one.leader_epoch < seen:\n",
        "            if before is not None and one.leader_epoch < -1:\n",
    ),
    fault(
        "a leader is used that a newer epoch has replaced",
        "network/metadata.py",
        "        if state is None or state.epoch < state.seen_epoch:\n",
        "        if state is None:\n",
    ),
    fault(
        "a client that has lost all nodes does not begin again",
        "network/metadata_update.py",
        "        return late or not can_hope\n",
        "        return late\n",
    ),
    fault(
        "a large answer loses its end",
        "engine/stream.py",
        "        if self._at == self._size:\n",
        "        if self._at >= self._size - 1:\n",
        ENGINE,
    ),
    fault(
        "what the socket does not take at once is lost",
        "engine/stream.py",
        "                if sent:\n                    out[0] = out[0][sent:]\n",
        "                if sent:\n                    out.popleft()\n",
        ENGINE,
    ),
    fault(
        "waits do not see what callbacks have done",
        "engine/engine.py",
        " or (has_called_back and self._waiters):\n",
        ":\n",
        ENGINE,
    ),
)
