"""Samples of groups: one snapshot, or several over a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.times import span_ms
from kgctl.client.net.errors import BadValue
from kgctl.commands.groups.facts import add_facts
from kgctl.model.groups import Listing
from kgctl.watch.lag import Sample

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.commands.shared.settings import Settings

# Commits come every few seconds: between the first and the last sample, others show when. A cluster that needs long to
# answer is asked less often.
SAMPLES = 6
# How long, and how much of __consumer_offsets is read for the times of commits.
FACTS_S, FACTS_BYTES = 5.0, 32 << 20
_LEAST_S, _MOST_S = 1.0, 3600.0
_SHARE = 4

SampleTime = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="DURATION",
        help="Watch for this long, such as 5s or 2m, to measure rates.",
        show_default=False,
    ),
]


def sample_seconds(text: str | None) -> float | None:
    """The value of --sample in seconds."""
    return None if text is None else seconds_of(text, "--sample")


def seconds_of(text: str, option: str) -> float:
    """A duration such as 5s in seconds. BadParameter unless it is between a second and an hour."""
    try:
        seconds = span_ms(text) / 1000
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
    if not _LEAST_S <= seconds <= _MOST_S:
        raise typer.BadParameter(f"{text!r} is not between 1s and 1h.", param_hint=f"'{option}'")
    return seconds


def names_of(admin: Admin, groups: Sequence[str] | None) -> tuple[list[str], Listing]:
    """The groups that are named, or all; and the listing, whose errors are those of brokers that did not answer."""
    listing = Listing(()) if groups else admin.list_groups()
    return sorted(set(groups or ())) or [row.group for row in listing.groups], listing


def take_samples(admin: Admin, names: Sequence[str], seconds: float | None) -> list[Sample]:
    """One sample, or several over at least this many seconds, the last one at the end."""
    samples = [_sample(admin, names)]
    if seconds is None:
        return samples
    until_s = samples[0].at_s + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        took_s = time.monotonic() - samples[-1].at_s
        pause_s = max(seconds / (SAMPLES - 1) - took_s, _SHARE * took_s)
        time.sleep(left_s if pause_s + took_s > left_s else pause_s)
        samples.append(_sample(admin, names))
    return samples


def with_facts(admin: Admin, chosen: Settings, sample: Sample) -> Sample:
    """The sample with the times of commits that only __consumer_offsets has."""
    if all(group.error or group.committed_at or not group.partitions for group in sample.groups.values()):
        return sample
    found = add_facts(admin, chosen, list(sample.groups.values()), seconds=FACTS_S, most_bytes=FACTS_BYTES)
    return replace(sample, groups={group.group: group for group in found})


def _sample(admin: Admin, names: Sequence[str]) -> Sample:
    at_s, wall_ms = time.monotonic(), time.time_ns() // 1_000_000
    described = admin.describe_groups(names, commit_times=True)
    return Sample(at_s, wall_ms, {group.group: group for group in described})
