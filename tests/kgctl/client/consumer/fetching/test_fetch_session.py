"""What a fetch session sends, and which answers it accepts."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.consumer.fetching.session import Asked, FetchSession, Wanted
from kgctl.model.topic_partition import TopicPartition

FOO, BAR, BAR2 = b"f" * 16, b"b" * 16, b"B" * 16
NAMES = {"foo": FOO, "bar": BAR}
VERSION = 18


def wanted(*rows: tuple[str, int, int], ids: dict[str, bytes] = NAMES) -> dict[TopicPartition, Wanted]:
    return {
        TopicPartition(topic, partition): Wanted(ids.get(topic, ZERO_UUID), offset, 5, 100)
        for topic, partition, offset in rows
    }


def answer(
    *rows: tuple[str, int], session: int = 0, ids: dict[str, bytes] = NAMES, error: int = 0, throttled: int = 0
) -> FetchResponse:
    topics: dict[str, FetchResponse.Topic] = {}
    for topic, partition in rows:
        one = topics.setdefault(
            topic, FetchResponse.Topic(topic=topic, topic_id=ids.get(topic, ZERO_UUID), partitions=[])
        )
        one.partitions.append(FetchResponse.Partition(partition_index=partition, high_watermark=0, records=b""))
    return FetchResponse(
        error_code=error, session_id=session, throttle_time_ms=throttled, responses=list(topics.values())
    )


def sent(asked: Asked) -> list[str]:
    return [f"{topic.topic}-{row.partition}@{row.fetch_offset}" for topic in asked.topics() for row in topic.partitions]


def forgotten(asked: Asked) -> list[tuple[str, bytes, list[int]]]:
    return [(topic.topic, topic.topic_id, topic.partitions) for topic in asked.forgotten()]


def opened(*rows: tuple[str, int, int], ids: dict[str, bytes] = NAMES) -> FetchSession:
    """A session 123 that has these partitions."""
    session = FetchSession()
    session.ask(wanted(*rows, ids=ids))
    assert (
        session.answered(answer(*[(t, p) for t, p, _ in rows], session=123, ids=ids), VERSION if ids else 12)
        is not None
    )
    return session


def test_a_broker_without_sessions_gets_full_requests() -> None:
    session = FetchSession()
    for offset in (0, 10):
        asked = session.ask(wanted(("foo", 0, offset), ("foo", 1, 10)))
        assert (asked.session_id, asked.epoch, asked.is_full) == (0, 0, True)
        assert sent(asked) == [f"foo-0@{offset}", "foo-1@10"]
        rows = session.answered(answer(("foo", 0), ("foo", 1)), VERSION)
        assert rows is not None
        assert [one for one, _ in rows] == [TopicPartition("foo", 0), TopicPartition("foo", 1)]


@pytest.mark.parametrize("ids", [NAMES, {}], ids=["by id", "by name"])
def test_an_incremental_request_has_what_changed_was_added_and_was_removed(ids: dict[str, bytes]) -> None:
    version = VERSION if ids else 12
    session = opened(("foo", 0, 0), ("foo", 1, 10), ids=ids)
    asked = session.ask(wanted(("foo", 0, 0), ("foo", 1, 20), ("bar", 0, 7), ids=ids))
    assert (asked.session_id, asked.epoch, asked.is_full, asked.max_version) == (123, 1, False, version)
    assert (sent(asked), forgotten(asked)) == (["foo-1@20", "bar-0@7"], [])
    assert session.answered(answer(("foo", 1), session=123, ids=ids), version) is not None
    asked = session.ask(wanted(("foo", 1, 20), ids=ids))
    assert (asked.epoch, sent(asked)) == (2, [])
    assert forgotten(asked) == [("foo", ids.get("foo", ZERO_UUID), [0]), ("bar", ids.get("bar", ZERO_UUID), [0])]
    assert session.answered(answer(session=123), version) == []
    assert session.epoch == 3


def test_what_is_sent_again_goes_behind_the_partitions_that_did_not_change() -> None:
    session = opened(("foo", 0, 0), ("foo", 1, 0), ("bar", 0, 0))
    session.ask(wanted(("foo", 0, 5), ("foo", 1, 0), ("bar", 0, 0)))
    assert [str(one) for one in session.partitions] == ["foo-1", "bar-0", "foo-0"]


def test_a_session_that_the_broker_does_not_know_is_opened_again() -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 0)))
    assert session.answered(answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND), VERSION) is None
    asked = session.ask(wanted(("foo", 0, 0)))
    assert (asked.session_id, asked.epoch, sent(asked)) == (0, 0, ["foo-0@0"])


@pytest.mark.parametrize("error", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR])
def test_any_other_error_closes_the_session_and_opens_another(error: int) -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 0)))
    assert session.answered(answer(error=error), VERSION) is None
    asked = session.ask(wanted(("foo", 0, 0)))
    assert (asked.session_id, asked.epoch, asked.is_full) == (123, 0, True)


def test_a_lost_answer_closes_the_session_and_opens_another() -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 0)))
    session.failed()
    asked = session.ask(wanted(("foo", 0, 0)))
    assert (asked.session_id, asked.epoch, sent(asked)) == (123, 0, ["foo-0@0"])


def test_a_broker_may_end_a_session_with_an_answer() -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 0)))
    assert session.answered(answer(("foo", 0), session=0), VERSION) is not None
    asked = session.ask(wanted(("foo", 0, 0)))
    assert (asked.session_id, asked.epoch) == (0, 0)


def test_the_epoch_wraps_to_one() -> None:
    session = opened(("foo", 0, 0))
    session.epoch = 2**31 - 1
    session.ask(wanted(("foo", 0, 0)))
    session.answered(answer(session=123), VERSION)
    assert session.epoch == 1


@pytest.mark.parametrize(
    "rows",
    [[("foo", 0)], [("foo", 0), ("foo", 1), ("bar", 0)], [("foo", 0), ("foo", 2)]],
    ids=["one is missing", "one too many", "another one"],
)
@pytest.mark.parametrize("ids", [NAMES, {}], ids=["by id", "by name"])
def test_a_full_answer_must_have_exactly_the_partitions_of_the_request(
    ids: dict[str, bytes], rows: list[tuple[str, int]]
) -> None:
    session = FetchSession()
    session.ask(wanted(("foo", 0, 0), ("foo", 1, 0), ids=ids))
    assert session.answered(answer(*rows, session=9, ids=ids), VERSION if ids else 12) is None
    assert session.ask(wanted(("foo", 0, 0), ids=ids)).session_id == 0


def test_an_answer_with_an_unknown_topic_id_is_not_accepted() -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 0)))
    assert session.answered(answer(("bar", 0), session=123), VERSION) is None


def test_an_incremental_answer_about_a_partition_outside_the_session_is_not_accepted() -> None:
    session = opened(("foo", 0, 0))
    session.ask(wanted(("foo", 0, 1)))
    assert session.answered(answer(("foo", 1), session=123), VERSION) is None
    assert session.ask(wanted(("foo", 0, 1))).epoch == 0


def test_an_empty_answer_of_a_broker_that_throttles_opens_no_session() -> None:
    session = FetchSession()
    session.ask(wanted(("foo", 0, 0)))
    assert session.answered(answer(session=5, throttled=100), VERSION) is None
    assert session.ask(wanted(("foo", 0, 0))).session_id == 0


def test_a_topic_that_was_deleted_and_created_again_replaces_its_old_id() -> None:
    session = opened(("bar", 0, 0))
    asked = session.ask(wanted(("bar", 0, 0), ids={"bar": BAR2}))
    assert (sent(asked), forgotten(asked), asked.by_id) == (["bar-0@0"], [("bar", BAR, [0])], True)
    assert asked.topics()[0].topic_id == BAR2


def test_ids_are_used_as_soon_as_all_topics_have_one() -> None:
    session = opened(("foo", 0, 0), ids={})
    asked = session.ask(wanted(("foo", 0, 0)))
    assert (asked.session_id, asked.by_id, sent(asked), forgotten(asked)) == (123, True, ["foo-0@0"], [])


def test_names_are_used_while_a_topic_has_no_id() -> None:
    session = opened(("foo", 0, 0))
    asked = session.ask(wanted(("foo", 0, 0), ("new", 0, 0)))
    assert (asked.by_id, asked.max_version) == (False, 12)
    asked = opened(("foo", 0, 0)).ask(wanted(("foo", 0, 0), ids={}))
    assert (asked.by_id, sent(asked), forgotten(asked)) == (False, ["foo-0@0"], [])


def test_names_are_used_to_forget_a_topic_without_id() -> None:
    session = opened(("foo", 0, 0), ids={})
    asked = session.ask({})
    assert (asked.by_id, forgotten(asked)) == (False, [("foo", ZERO_UUID, [0])])
    asked = opened(("foo", 0, 0)).ask({})
    assert (asked.by_id, forgotten(asked)) == (True, [("foo", FOO, [0])])


def test_another_topic_may_join_a_session_after_all_others_left() -> None:
    session = opened(("foo", 0, 0))
    session.ask({})
    session.answered(answer(session=123), VERSION)
    asked = session.ask(wanted(("bar", 0, 0)))
    assert (asked.session_id, asked.epoch, sent(asked), asked.by_id) == (123, 2, ["bar-0@0"], True)


def test_closing_sends_the_final_epoch_if_there_is_a_session() -> None:
    assert FetchSession().close() is None
    asked = opened(("foo", 0, 0)).close()
    assert asked is not None
    assert (asked.session_id, asked.epoch, sent(asked)) == (123, -1, [])


def test_partitions_of_a_topic_that_do_not_stand_together_keep_their_order() -> None:
    asked = FetchSession().ask(wanted(("foo", 0, 0), ("bar", 0, 0), ("foo", 1, 0)))
    assert sent(asked) == ["foo-0@0", "bar-0@0", "foo-1@0"]
