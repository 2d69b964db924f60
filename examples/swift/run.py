#!/usr/bin/env python3
"""Swift on Headtime's disks: the p99 of clients while every object is read again.

  run.py up        one proxy and three object servers on three emulated drives, until `down`
  run.py down      ends them and removes the folder
  run.py measure   fills the store, runs all arms in turn, prints a table, and cleans up

Needs root, FUSE, loop devices, Linux 6.11 (I/O priorities), Python 3, `headtime`, and of Debian 12:
  apt-get install --no-install-recommends swift-proxy swift-object swift-container swift-account memcached xfsprogs
All state is in one folder. /etc is not changed.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stores"))

import arms
import load
import processes
import report
import session
from disks import NAMES
from mounts import Mounts
from session import say
from store import PROXY, Store

# About what a scrub verified in the gaps at the default load, so that the arms compare at one audited rate. Swift's own
# default is 10.
AUDIT_MB_S = 4

PROGRAMS = {
    "swift-proxy-server": "swift-proxy",
    "swift-object-server": "swift-object",
    "swift-container-server": "swift-container",
    "swift-account-server": "swift-account",
    "swift-ring-builder": "swift",
    "memcached": "memcached",
    "mkfs.xfs": "xfsprogs",
    "losetup": "mount",
    "unshare": "util-linux",
}


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("up", "down", "measure"))
    session.add_flags(parser, "swift", arms.ARMS, volume_mib=1800, size="8 GB")
    parser.add_argument("--audit-mb-s", type=float, default=AUDIT_MB_S, help="limit of an auditor, MB/s [%(default)s]")
    parser.add_argument("--audit-files", type=float, default=20, help="limit of each auditor, files/s [%(default)s]")
    load.add_flags(parser)
    arguments = parser.parse_args()
    arguments.client = arms.client
    arguments.folder = os.path.realpath(arguments.folder)
    return arguments


def settings(arguments):
    names = ("headtime", "drive", "volume_mib", "time_scale", "preemption", "audit_mb_s", "audit_files")
    # Its arms compare schedulers on the medium, as they were first measured.
    return {**session.chosen(arguments, names), "write_cache": False}


def filled_with(arguments):
    names = ("drive", "volume_mib", "objects", "written", "sizes")
    return session.Filled(arguments.folder, session.chosen(arguments, names))


def prepare(arguments, disks, store):
    """Folder, configuration, servers without drives, and filled images; what is there is used again."""
    for part in ("run", "log", "images", "srv"):
        os.makedirs(os.path.join(arguments.folder, part), exist_ok=True)
    store.configure()
    store.begin_front()
    filled = filled_with(arguments)
    if filled.is_so():
        return
    filled.forget()
    for name in os.listdir(os.path.join(arguments.folder, "images")):
        os.remove(os.path.join(arguments.folder, "images", name))
    say("the drive's profile")
    disks.learn()
    say(f"{arguments.objects + int(arguments.written * load.WRITTEN_EXIST)} objects, three times each")
    disks.up("fill")
    store.begin_objects()
    load.fill(arguments)
    store.replicate_once()
    store.end_objects()
    disks.down()
    say("a copy with checksums")
    for name in NAMES:
        image = os.path.join(arguments.folder, "images", name)
        processes.call("cp", "--sparse=always", f"{image}.img", f"{image}-sums.img")
    disks.up("sums")
    for name in NAMES:
        disks.ask("scrub", name)
    disks.down()
    filled.mark()


def measure(arguments, disks, store):
    prepare(arguments, disks, store)
    chosen = arguments.arm or list(arms.ARMS)
    turns = {arm: [] for arm in chosen}
    first_seed = arguments.seed
    for repeat, arm in session.rounds(chosen, arguments.repeats):
        # All arms of a round have the same operations.
        arguments.seed = first_seed + repeat + 1
        figures = arms.turn(arm, arguments, disks, store)
        turns[arm].append(figures)
        say(f"{repeat + 1}/{arguments.repeats} {arm}: {report.line(figures)}")
        if arguments.out:
            session.write(report.document(turns, arguments), arguments.out)
    print(json.dumps(report.document(turns, arguments), indent=2) if arguments.json else report.table(turns, arguments))


def up(arguments, disks, store):
    """Leaves a store with all its daemons."""
    prepare(arguments, disks, store)
    disks.up(arguments.mode)
    store.begin_objects()
    for kind in ("auditor", "replicator", "reconstructor"):
        store.begin_daemons(kind)
    say(f"http://127.0.0.1:{PROXY}/auth/v1.0, user test:tester, key testing; `run.py down` ends it")


def main():
    arguments = flags()
    session.need(PROGRAMS, arguments)
    disks, store = Mounts(arguments.folder, settings(arguments)), Store(arguments.folder, settings(arguments))

    def down():
        store.down()
        disks.down()

    session.run(
        arguments,
        up=lambda: up(arguments, disks, store),
        measure=lambda: measure(arguments, disks, store),
        down=down,
    )


if __name__ == "__main__":
    session.main(main)
