"""Users, ACLs and quotas are kept in the store: by kind and name, with the next flush, and through a rescue."""

from __future__ import annotations

import random
from pathlib import Path

from broker.rescue import holding, plan_rescue, rescue
from broker.storage.store.checked_pages import PAGE_BYTES
from tests.harness.store_damages import flip
from tests.harness.stores import open_log


def test_a_record_is_found_by_kind_and_name_and_survives_a_kill_once_it_is_flushed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    records = log.security_records
    records.put("users", "b", "1")
    records.put("users", "a", "2")
    records.put("acls", "a", "3")
    assert log.dirty
    assert list(records.all("users").items()) == [("a", "2"), ("b", "1")]
    log.flush()
    records.put("users", "a", "4")
    records.delete("users", "b")
    records.delete("users", "unknown")
    log.flush()
    records.put("users", "uncommitted", "")
    log.close(clean=False)
    log = open_log(tmp_path)
    assert log.security_records.all("users") == {"a": "4"}
    assert log.security_records.all("acls") == {"a": "3"}
    assert log.security_records.all("quotas") == {}
    log.close()


def rescued(path: Path) -> tuple[dict[str, str], list[str]]:
    into = path.with_name("rescued")
    with holding(path):
        plan = plan_rescue(path, lambda size: None)
        rescue(plan, into, lambda size: None)
    log = open_log(into)
    found = log.security_records.all("acls")
    log.close()
    return found, plan.warnings


def test_a_rescue_keeps_the_records_of_intact_pages_and_says_what_to_check(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    expected = {f"{number}": f"{number}" * (3000 if number == 7 else 9) for number in range(300)}
    for name, value in expected.items():
        log.security_records.put("acls", name, value)
    log.security_records.put("acls", "deleted", "x" * 50)
    log.flush()
    log.security_records.delete("acls", "deleted")
    log.close()
    flip(path / "store.db", random.Random(2), 0, 100)
    found, warnings = rescued(path)
    assert found == expected
    assert any("users, ACLs and quotas may be lost" in warning for warning in warnings)


def test_a_rescue_does_not_bring_a_revoked_record_back_from_an_older_copy_of_its_page(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    for number in range(300):
        log.security_records.put("acls", f"{number:03d}", "granted" * 5)
    log.close()
    log = open_log(path)
    for number in range(300):
        log.security_records.put("acls", f"{number:03d}", "revoked" * 5)
    log.flush()
    log.close(clean=False)
    # The WAL holds the newer copies of the pages.
    wal = path / "store.db-wal"
    content = bytearray(wal.read_bytes())
    for frame in range(32, len(content), PAGE_BYTES + 24):
        content[frame + 24 + 3000] ^= 1
    wal.write_bytes(content)
    found, _ = rescued(path)
    assert "granted" * 5 not in found.values()
