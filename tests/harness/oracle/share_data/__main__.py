"""`python -m tests.harness.oracle.share_data`: what members of share groups get, compared with a real Kafka 4.1 over sockets.

record FILE --seeds A-B    record walks from a Kafka that is started for this
alteration FILE            record a script of AlterShareGroupOffsets from a Kafka 4.2
check FILE ...             play recordings on our broker
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from broker.local import LocalBroker
from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.share_data.files import play, read, record, record_alterations, write
from tests.harness.oracle.verdict import seeds_of
from tests.harness.reference_kafka import ReferenceKafka


def _record(options: argparse.Namespace) -> int:
    with ReferenceKafka() as kafka:
        write(options.file, record(address_of(kafka.bootstrap_servers), options.seeds))
    return 0


def _alteration(options: argparse.Namespace) -> int:
    with ReferenceKafka(version="4.2.0") as kafka:
        write(options.file, [record_alterations(address_of(kafka.bootstrap_servers))])
    return 0


def _check(options: argparse.Namespace) -> int:
    differing = 0
    for path in options.files:
        walks = read(path)
        with LocalBroker() as broker:
            found = play(address_of(broker.bootstrap_servers), walks)
        differing += len(found)
        print(f"{path}: {len(walks)} walks, {sum(len(walk['steps']) for walk in walks)} steps", *found, sep="\n")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.oracle.share_data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("record")
    made.set_defaults(function=_record)
    made.add_argument("file", type=Path)
    made.add_argument("--seeds", type=seeds_of, required=True, help="FIRST-LAST")
    made = commands.add_parser("alteration")
    made.set_defaults(function=_alteration)
    made.add_argument("file", type=Path)
    made = commands.add_parser("check")
    made.set_defaults(function=_check)
    made.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    return int(options.function(options))


if __name__ == "__main__":
    sys.exit(main())
