"""The arms: how the drives are served, which queue an OSD has, and who reads the media.

One turn measures one arm once, at each load.
"""

import datetime
import threading
import time

import load
from disks import NAMES
from probe import Probe

WPQ = {"osd_op_queue": "wpq"}


def mclock(profile):
    return {"osd_op_queue": "mclock_scheduler", "osd_mclock_profile": profile}


# Two objects of 4 MiB are locked at a time instead of 25, with a pause of 3 s: about a fifth of the rate.
STRETCHED = {**WPQ, "osd_scrub_chunk_min": 1, "osd_scrub_chunk_max": 2, "osd_scrub_sleep": 3}

# Mode of the drives, scheduler of the loop devices, settings of the OSDs, whether Ceph scrubs deeply, and whether
# `headtime scan` reads the media.
ARMS = {
    "noscrub": ("kernel", "mq-deadline", WPQ, False, False),
    "wpq": ("kernel", "mq-deadline", WPQ, True, False),
    "mclock-balanced": ("kernel", "mq-deadline", mclock("balanced"), True, False),
    "mclock-high-client": ("kernel", "mq-deadline", mclock("high_client_ops"), True, False),
    "headtime-noscrub": ("headtime", None, WPQ, False, False),
    "headtime-wpq": ("headtime", None, WPQ, True, False),
    "idle-reads": ("headtime", None, WPQ, True, False),
    "scan": ("headtime", None, WPQ, False, True),
    "stretched": ("headtime", None, STRETCHED, True, True),
}

# The arm whose OSDs have idle_reads.c.
PRELOADED = "idle-reads"

# The arm without a scrub on the same disks.
UNSCRUBBED = {
    "wpq": "noscrub",
    "mclock-balanced": "noscrub",
    "mclock-high-client": "noscrub",
    "headtime-wpq": "headtime-noscrub",
    "idle-reads": "headtime-noscrub",
    "scan": "headtime-noscrub",
    "stretched": "headtime-noscrub",
}


def turn(arm, arguments, disks, cluster, rates):
    """Serves the drives as the arm says, and measures each load; returns the figures of each."""
    mode, scheduler, settings, deep, scan = ARMS[arm]
    if "osd_scrub_sleep" in settings:
        settings = {**settings, "osd_scrub_sleep": settings["osd_scrub_sleep"] * arguments.time_scale}
    disks.up(mode, scheduler)
    try:
        cluster.begin_osds(disks.loops, settings, preloaded=arm == PRELOADED)
        probe = Probe(disks.loops.values())
        try:
            found = {}
            for percent, rate in rates.items():
                if deep:
                    cluster.deep_scrub()
                if scan:
                    disks.begin_scans()
                found[percent] = loaded(arguments, disks, cluster, probe, rate, scan)
            return found
        finally:
            probe.end()
    finally:
        cluster.end_osds()
        disks.down()


def loaded(arguments, disks, cluster, probe, rate, scan):
    """The clients' latencies at a rate, and the bytes that were read for scrubs and scans beside them."""
    marks, modes = [], []

    def mark():
        modes.extend(disks.modes())
        scanned = disks.scanned_bytes() if scan else 0
        marks.append((time.monotonic(), time.time(), probe.scrubbed_bytes(), scanned))

    timer = threading.Timer(arguments.warm_up, mark)
    timer.start()
    try:
        figures = load.measure(arguments, rate)
    finally:
        timer.join()
    mark()
    (begin, moment, scrubbed, scanned), (end, _, scrubbed_then, scanned_then) = marks
    per_drive = (end - begin) * 1e6 * len(NAMES)
    figures["scrubbed_mb_s"] = (scrubbed_then - scrubbed) / per_drive
    figures["scanned_mb_s"] = (scanned_then - scanned) / per_drive
    # In safe mode Headtime does not use its belief: figures say little about it.
    figures["modes"] = modes
    locked = [wait for began, wait in map(lock_wait, cluster.slowest()) if wait and began >= moment]
    figures["locked_writes"] = len(locked)
    figures["longest_lock_ms"] = max(locked, default=0) * 1000
    return figures


def lock_wait(operation):
    """When an operation began, and the seconds that it waited for a scrub to leave its object; none if it did not."""
    events = operation["type_data"]["events"]
    waits = [at for at, event in enumerate(events) if event["event"] == "waiting for scrub"]
    seconds = sum(moment(events[at + 1]) - moment(events[at]) for at in waits if at + 1 < len(events))
    return moment(events[0]), seconds


def moment(event):
    return datetime.datetime.strptime(event["time"], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
