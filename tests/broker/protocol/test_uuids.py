"""Ids as Kafka chooses them."""

from __future__ import annotations

import uuid

from broker.protocol import uuids


def test_an_id_is_a_random_uuid() -> None:
    drawn = bytes(range(1, 17))
    assert uuid.UUID(bytes=uuids.chosen(lambda size: drawn[:size])) == uuid.UUID(bytes=drawn, version=4)


def test_no_id_begins_with_a_dash() -> None:
    firsts = list(range(255, -1, -1))
    texts = [uuids.spelled(uuids.chosen(lambda size: bytes([firsts.pop()]) + bytes(size - 1))) for _ in range(252)]
    assert len(set(texts)) == 252
    assert not [text for text in texts if text.startswith("-")]
    assert firsts == []
