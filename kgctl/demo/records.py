"""One hour of records of a shop: orders and page views as keyed JSON. Only the timestamps differ between runs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime

from broker.light_dataclasses import dataclass

HOUR_MS = 3_600_000
ORDERS, PAGE_VIEWS = "orders", "page-views"
PARTITIONS = {ORDERS: 6, PAGE_VIEWS: 6}
COUNTS = {ORDERS: 5_000, PAGE_VIEWS: 15_000}

_PRODUCTS = (
    ("espresso beans 1 kg", 18.90),
    ("hand grinder", 64.00),
    ("paper filters, 100", 4.50),
    ("gooseneck kettle", 79.00),
    ("milk jug", 21.50),
    ("cups, set of 6", 34.20),
    ("descaler", 9.90),
    ("scale with timer", 45.00),
)
_PAGES = ("/", "/beans", "/grinders", "/kettles", "/search", "/basket", "/checkout", "/account", "/blog/water")
_REFERRERS = (None, "https://search.example/", "https://news.example/coffee", "https://friends.example/feed")


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    key: bytes
    value: bytes
    timestamp_ms: int


def hour_of_records(end_ms: int, seed: int = 1) -> Iterator[Record]:
    """The records of the hour before `end_ms`, oldest first."""
    randomness = random.Random(seed)
    total = sum(COUNTS.values())
    left = dict(COUNTS)
    for number in range(total):
        timestamp_ms = end_ms - HOUR_MS + number * HOUR_MS // total + randomness.randrange(HOUR_MS // total)
        topic = randomness.choices(list(left), weights=list(left.values()))[0]
        left[topic] -= 1
        customer = f"customer-{randomness.randrange(1, 400):04d}"
        if topic == ORDERS:
            value = _order(randomness, COUNTS[topic] - left[topic], customer, timestamp_ms)
        else:
            value = _page_view(randomness, customer, timestamp_ms)
        yield Record(topic, customer.encode(), json.dumps(value, separators=(",", ":")).encode(), timestamp_ms)


def _order(randomness: random.Random, number: int, customer: str, timestamp_ms: int) -> dict[str, object]:
    bought = [
        (name, randomness.randrange(1, 4), price)
        for name, price in randomness.sample(_PRODUCTS, randomness.randrange(1, 4))
    ]
    return {
        "order": f"O-{number:06d}",
        "customer": customer,
        "at": _iso(timestamp_ms),
        "lines": [{"product": name, "count": count, "price": price} for name, count, price in bought],
        "total": round(sum(count * price for _, count, price in bought), 2),
        "currency": "EUR",
        "paid_by": randomness.choice(("card", "transfer", "voucher")),
    }


def _page_view(randomness: random.Random, customer: str, timestamp_ms: int) -> dict[str, object]:
    return {
        "customer": customer,
        "at": _iso(timestamp_ms),
        "page": randomness.choice(_PAGES),
        "referrer": randomness.choice(_REFERRERS),
        "session": f"{randomness.getrandbits(64):016x}",
        "shown_ms": randomness.randrange(20, 900),
    }


def _iso(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
