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
import shutil
import signal
import sys

import arms
import load
import processes
import report
from disks import Disks, NAMES
from processes import Failure
from store import PROXY, Store

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

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
    parser.add_argument("--folder", default="/var/tmp/headtime-swift", help="all state, about 8 GB [%(default)s]")
    parser.add_argument("--headtime", default=os.path.join(ROOT, "target", "release", "headtime"), help="[%(default)s]")
    parser.add_argument("--drive", default=os.path.join(ROOT, "drives", "quantum-atlas-10k.toml"), help="[%(default)s]")
    parser.add_argument("--volume-mib", type=int, default=1800, help="size of each volume [%(default)s]")
    parser.add_argument("--time-scale", type=float, default=1, help="times slower than the drive [%(default)s]")
    parser.add_argument("--preemption", action="store_true", help="large requests may be interrupted (Headtime's arms)")
    parser.add_argument("--audit-mb-s", type=float, default=AUDIT_MB_S, help="limit of an auditor, MB/s [%(default)s]")
    parser.add_argument("--audit-files", type=float, default=20, help="limit of each auditor, files/s [%(default)s]")
    parser.add_argument("--arm", action="append", choices=list(arms.ARMS), help="only this arm; repeat it for several")
    parser.add_argument("--mode", default="headtime", choices=("headtime", "kernel"), help="up: how drives are served")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each arm [%(default)s]")
    parser.add_argument("--keep", action="store_true", help="measure: keep the filled drives for the next time")
    parser.add_argument("--json", action="store_true", help="measure: print JSON instead of a table")
    parser.add_argument("--out", help="measure: write JSON to this file, too, after each turn")
    load.add_flags(parser)
    arguments = parser.parse_args()
    arguments.client = arms.client
    arguments.folder = os.path.realpath(arguments.folder)
    return arguments


def need(arguments):
    """Says at once what is missing."""
    if os.geteuid() != 0:
        raise Failure("root is needed for FUSE, loop devices, mounts and I/O priorities")
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program)})
    if missing:
        raise Failure(f"missing: apt-get install --no-install-recommends {' '.join(missing)}")
    if not os.path.exists(arguments.headtime):
        raise Failure(f"{arguments.headtime}: no such file: cargo build --release -p headtime, or --headtime FILE")
    if not os.path.exists(arguments.drive):
        raise Failure(f"{arguments.drive}: no such file: expected a profile (--drive FILE)")


def settings(arguments):
    names = ("headtime", "drive", "volume_mib", "time_scale", "preemption", "audit_mb_s", "audit_files")
    return {name: getattr(arguments, name) for name in names}


def filled_with(arguments):
    """What the images hold. Another answer fills them anew."""
    names = ("drive", "volume_mib", "objects", "written", "sizes")
    return {name: getattr(arguments, name) for name in names}


def prepare(arguments, disks, store):
    """Folder, configuration, servers without drives, and filled images; what is there is used again."""
    for part in ("run", "log", "images", "srv"):
        os.makedirs(os.path.join(arguments.folder, part), exist_ok=True)
    store.configure()
    store.begin_front()
    mark = os.path.join(arguments.folder, "filled.json")
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as file:
            if json.load(file) == filled_with(arguments):
                return
        os.remove(mark)
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
    with open(mark, "w", encoding="utf-8") as file:
        json.dump(filled_with(arguments), file)


def measure(arguments, disks, store):
    chosen = arguments.arm or list(arms.ARMS)
    turns = {arm: [] for arm in chosen}
    for repeat in range(arguments.repeats):
        # Another arm begins each round, and all arms of a round have the same operations.
        order = chosen[repeat % len(chosen) :] + chosen[: repeat % len(chosen)]
        arguments.seed += 1
        for arm in order:
            figures = arms.turn(arm, arguments, disks, store)
            turns[arm].append(figures)
            say(f"{repeat + 1}/{arguments.repeats} {arm}: {report.line(figures)}")
            if arguments.out:
                with open(arguments.out, "w", encoding="utf-8") as file:
                    json.dump(report.document(turns, arguments), file, indent=2)
    print(json.dumps(report.document(turns, arguments), indent=2) if arguments.json else report.table(turns, arguments))


def say(text):
    print(text, file=sys.stderr, flush=True)


def up(arguments, disks, store):
    """Leaves a store with all its daemons."""
    try:
        prepare(arguments, disks, store)
        disks.up(arguments.mode)
        store.begin_objects()
        for kind in ("auditor", "replicator", "reconstructor"):
            store.begin_daemons(kind)
    except BaseException:
        down(arguments, disks, store)
        raise
    say(f"http://127.0.0.1:{PROXY}/auth/v1.0, user test:tester, key testing; `run.py down` ends it")


def down(arguments, disks, store):
    """Ends everything, also what an earlier run left."""
    store.down()
    disks.down()
    processes.end_left_over(arguments.folder)


def stopped(number, _):
    # As after Ctrl-C: `finally` cleans up.
    raise KeyboardInterrupt(signal.Signals(number).name)


def main():
    arguments = flags()
    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGHUP, stopped)
    disks, store = Disks(arguments.folder, settings(arguments)), Store(arguments.folder, settings(arguments))
    need(arguments)
    processes.end_left_over(arguments.folder)
    if arguments.what == "down":
        shutil.rmtree(arguments.folder, ignore_errors=True)
        return
    if arguments.what == "up":
        up(arguments, disks, store)
        return
    try:
        prepare(arguments, disks, store)
        measure(arguments, disks, store)
    except Failure as failure:
        # The folder has the logs.
        arguments.keep = True
        raise Failure(f"{failure}\n{arguments.folder} stays for its logs: remove it by `run.py down`") from failure
    finally:
        down(arguments, disks, store)
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
