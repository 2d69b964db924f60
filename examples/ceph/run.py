#!/usr/bin/env python3
"""Ceph on Headtime's disks: the p99 of clients while the media of each OSD are read.

  run.py up         a monitor, a manager and three OSDs on three emulated drives, until `down`
  run.py down       ends them and removes the folder
  run.py measure    fills an RBD image, runs all arms in turn, prints a table, and cleans up
  run.py told-apart prints whose requests reach the drives: how a deep scrub's reads differ from the clients'

Needs root, FUSE, loop devices, tracefs, Linux 6.11 (I/O priorities), Python 3, `headtime`, and of Debian 12:
  apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-osd ceph-common fio gcc libc6-dev
All state is in one folder. /etc is not changed.
"""

import argparse
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "stores"))

import arms
import load
import probe
import report
import session
from cluster import Cluster
from drives import Drives
from session import say

PROGRAMS = {
    "ceph-mon": "ceph-mon",
    "ceph-mgr": "ceph-mgr",
    "ceph-osd": "ceph-osd",
    "ceph": "ceph-common",
    "rbd": "ceph-common",
    "monmaptool": "ceph-common",
    "fio": "fio",
    "losetup": "mount",
    "ionice": "util-linux",
    "cc": "gcc",
}


def flags():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("up", "down", "measure", "told-apart"))
    session.add_flags(parser, "ceph", arms.ARMS, volume_mib=6000, size="7 GB")
    parser.add_argument("--write-cache", action="store_true", help="drives have a volatile write cache")
    load.add_flags(parser)
    arguments = parser.parse_args()
    arguments.folder = os.path.realpath(arguments.folder)
    arguments.capacity = {}
    return arguments


def settings(arguments):
    # Headtime switches the write cache of a real disk off by default, because the drive moves its head for it unasked.
    names = ("headtime", "drive", "volume_mib", "time_scale", "preemption", "write_cache")
    return session.chosen(arguments, names)


def prepare(arguments, disks, cluster):
    """Folder, monitor, manager, and drives with a filled image; what is there is used again."""
    filled = session.Filled(arguments.folder, session.chosen(arguments, ("drive", "volume_mib", "image_mib")))
    if not filled.is_so():
        # The monitor knows drives that are no more.
        shutil.rmtree(arguments.folder, ignore_errors=True)
    for part in ("run", "log", "images", "osd"):
        os.makedirs(os.path.join(arguments.folder, part), exist_ok=True)
    cluster.configure()
    cluster.begin_front()
    if filled.is_so():
        return
    say("the drive's profile")
    disks.learn()
    say(f"three OSDs, and an image of {arguments.image_mib} MiB, three times")
    disks.up("fill")
    cluster.make_osds(disks.loops)
    cluster.begin_osds(disks.loops, arms.WPQ)
    cluster.make_image(arguments.image_mib)
    load.fill(arguments)
    cluster.end_osds()
    disks.down()
    filled.mark()


def find_saturation(arguments, disks, cluster):
    """What clients get from the plain disks without a scrub; and what mClock believes that a drive can do."""
    mode, scheduler, queue, _, _ = arms.ARMS["noscrub"]
    disks.up(mode, scheduler)
    cluster.begin_osds(disks.loops, queue)
    arguments.saturation = load.saturation(arguments)
    cluster.end_osds()
    disks.down()
    say(f"saturation: {arguments.saturation:.0f} requests/s")


def measure(arguments, disks, cluster):
    prepare(arguments, disks, cluster)
    if not arguments.saturation:
        find_saturation(arguments, disks, cluster)
    rates = {int(part): arguments.saturation * int(part) / 100 for part in arguments.loads.split(",")}
    chosen = arguments.arm or list(arms.ARMS)
    turns = {arm: [] for arm in chosen}
    first_seed = arguments.seed
    for repeat, arm in session.rounds(chosen, arguments.repeats):
        # All arms of a round have the same requests.
        arguments.seed = first_seed + repeat
        found = arms.turn(arm, arguments, disks, cluster, rates)
        turns[arm].append(found)
        for percent, figures in found.items():
            say(f"{repeat + 1}/{arguments.repeats} {arm}, {percent} %: {report.line(figures)}")
        arguments.capacity = cluster.capacity()
        if arguments.out:
            session.write(report.document(turns, arguments, rates), arguments.out)
    if arguments.json:
        print(json.dumps(report.document(turns, arguments, rates), indent=2))
    else:
        print(report.table(turns, arguments, rates))


def told_apart(arguments, disks, cluster):
    """Counts requests of clients and of a deep scrub beside each other, as the drives get them."""
    prepare(arguments, disks, cluster)
    if not arguments.saturation:
        find_saturation(arguments, disks, cluster)
    disks.up("headtime")
    cluster.begin_osds(disks.loops, arms.WPQ, preloaded=arguments.arm == [arms.PRELOADED])
    cluster.deep_scrub()
    seen = probe.Probe(disks.loops.values(), requests=True)
    try:
        load.measure(arguments, arguments.saturation * 0.3)
    finally:
        seen.end()
    print(json.dumps(seen.reads(), indent=2) if arguments.json else probe.table(seen.reads()))


def up(arguments, disks, cluster):
    """Leaves a cluster."""
    prepare(arguments, disks, cluster)
    disks.up(arguments.mode)
    cluster.begin_osds(disks.loops, arms.WPQ)
    say(f"CEPH_CONF={cluster.path('ceph.conf')} ceph -s; `run.py down` ends it")


def main():
    arguments = flags()
    session.need(PROGRAMS, arguments)
    disks, cluster = Drives(arguments.folder, settings(arguments)), Cluster(arguments.folder)
    work = {"told-apart": told_apart}.get(arguments.what, measure)

    def down():
        probe.remove()
        cluster.down()
        disks.down()

    session.run(
        arguments,
        up=lambda: up(arguments, disks, cluster),
        measure=lambda: work(arguments, disks, cluster),
        down=down,
    )


if __name__ == "__main__":
    session.main(main)
