"""No damage is silent: short forms of the parts, and brokers with planted faults, which the parts catch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.durability import bitrot, damage, images, missing_store, replacement
from tests.durability.damages import Damage
from tests.durability.images import Image
from tests.durability.parts import Violation
from tests.durability.spawning import Nursery, in_memory

pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture
def directory() -> Iterator[Path]:
    with in_memory() as path:
        yield path


@pytest.fixture(scope="module")
def image(nursery: Nursery) -> Iterator[Image]:
    with in_memory() as path:
        yield images.make(nursery, path, Random(6))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "rounds", "seed"),
    [(damage, 12, 40), (bitrot, 40, 40), (replacement, 3, 40), (missing_store, 2, 40)],
    ids=["damage", "bitrot", "replacement", "missing-store"],
)
def test_nothing_acknowledged_is_lost_silently(
    part: Callable[..., object], rounds: int, seed: int, directory: Path
) -> None:
    part.run(directory, seed, rounds, print)  # type: ignore[attr-defined]


# -- the judges


def flip_sealed(data_dir: Path, image: Image) -> Damage:
    """A bit of the last batch of the first segment of a partition."""
    name, path = _first_segment(data_dir, image)
    content = bytearray(path.read_bytes())
    last = next(b for b in image.ledger.partitions["a", 1].batches if content.find(b.content) > 300)
    content[content.find(last.content) + 70] ^= 4
    path.write_bytes(content)
    return Damage([f"{name}: flipped a bit"], {name})


def cut_active(data_dir: Path, image: Image) -> Damage:
    """The last record of a partition."""
    path = max((data_dir / _partition(image)).glob("*.log"))
    content = path.read_bytes()
    last = image.ledger.partitions["a", 1].batches[-1].content
    path.write_bytes(content[: content.index(last) + 20])
    name = str(path.relative_to(data_dir))
    return Damage([f"{name}: cut"], {name})


def _partition(image: Image) -> str:
    return f"segments/{image.ledger.topics['a'][1].hex()}/1"


def _first_segment(data_dir: Path, image: Image) -> tuple[str, Path]:
    path = min((data_dir / _partition(image)).glob("*.log"))
    return str(path.relative_to(data_dir)), path


@pytest.mark.parametrize(
    ("fault", "change", "caught_by"),
    [
        ("stored batches are not checked", flip_sealed, "bad CRC"),
        ("damage is skipped", flip_sealed, "stops silently"),
        ("damage has no name", flip_sealed, "does not name the damaged file"),
        ("ends are forgotten", cut_active, "ends at"),
    ],
)
def test_a_broker_that_hides_damage_is_caught(
    nursery: Nursery, image: Image, directory: Path, fault: str, change: Callable[[Path, Image], Damage], caught_by: str
) -> None:
    case = damage.Case(nursery, directory, image, Random(1), Counter(), fault)
    case.take(change(directory / "data", image))
    with pytest.raises(AssertionError, match=caught_by):
        case.serves_or_refuses()


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [("losses are not told", "lost silently"), ("damaged files are deleted", "is not kept as it was")],
)
def test_a_broker_that_hides_losses_is_caught(
    nursery: Nursery, image: Image, directory: Path, fault: str, caught_by: str
) -> None:
    case = damage.Case(nursery, directory, image, Random(1), Counter(), fault)
    case.take(flip_sealed(directory / "data", image))
    with pytest.raises(AssertionError, match=caught_by):
        case.accepts_loss()


def test_a_broker_that_forgets_a_missing_store_is_caught(nursery: Nursery, image: Image, directory: Path) -> None:
    case = damage.Case(nursery, directory, image, Random(1), Counter(), "a missing store is a new one")
    case.take(missing_store.remove(directory / "data", list(missing_store.EVIDENCE)))
    with pytest.raises(AssertionError, match="the broker started"):
        case.refuses_and_repairs()


def test_a_broker_that_keeps_a_replaced_directory_is_caught(nursery: Nursery, directory: Path) -> None:
    case = replacement.Case(nursery, directory / "case", Random(1), "a replaced directory is not noticed")
    try:
        with pytest.raises(AssertionError, match=r"still runs|acknowledged"):
            case.run()
    finally:
        case.end()


@pytest.mark.parametrize("fault", ["stored batches are not checked", "damage is skipped"])
def test_a_broker_that_hides_bit_rot_is_caught(nursery: Nursery, directory: Path, fault: str) -> None:
    failures: list[str] = []
    campaign = bitrot.Campaign(nursery, directory / "campaign", Random(1), Counter(), fault)
    try:
        campaign.run(10, failures.append)
    finally:
        campaign.end()
    assert failures


def test_a_failed_round_makes_the_part_fail(image: Image, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise AssertionError("a promise is broken")

    monkeypatch.setattr(damage.Case, "run", fail)
    monkeypatch.setattr(images, "make", lambda *_: image)
    with pytest.raises(Violation, match=r"1 of 1 rounds.*seed 40.*a promise is broken"):
        damage.run(directory, 40, 1, print)
