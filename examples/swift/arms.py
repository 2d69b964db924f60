"""The arms: how the drives are served, and who reads every object again. One turn measures one arm once."""

import time

import load
from processes import Failure
from store import PROXY

# Mode of the drives, scheduler of the loop devices, and the audit.
ARMS = {
    "off": ("headtime", None, None),
    "classified": ("headtime", None, "auditor"),
    "scrub": ("scrub", None, "scrub"),
    "mq-deadline-off": ("kernel", "mq-deadline", None),
    "mq-deadline": ("kernel", "mq-deadline", "auditor"),
    "bfq-off": ("kernel", "bfq", None),
    "bfq": ("kernel", "bfq", "auditor"),
}

# The arm without an audit on the same disks.
UNAUDITED = {"classified": "off", "scrub": "off", "mq-deadline": "mq-deadline-off", "bfq": "bfq-off"}


def client():
    return load.Client("127.0.0.1", PROXY, "test:tester", "testing")


class Audit:
    """Bytes of objects that were audited so far, on all drives together."""

    def __init__(self, kind, disks, store):
        self.kind = kind
        self.disks = disks
        self.processes = []
        if kind == "auditor":
            self.processes = store.begin_daemons("auditor")
        elif kind == "scrub":
            self.share = disks.used_share()
            disks.begin_scrubs()

    def audited_bytes(self):
        if self.kind == "auditor":
            return sum(read_by(pid) for process in self.processes for pid in process.members())
        if self.kind == "scrub":
            # A scrub verifies free space, too, which is no audit.
            return self.share * sum(report["verified_bytes"] for report in self.disks.scrubs().values())
        return 0

    def check(self):
        if any(process.ended() for process in self.processes):
            raise Failure("an auditor has ended: see the folder's log/auditor-*")


def read_by(pid):
    """Bytes that a process and its ended children read from files (proc(5): rchar)."""
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("rchar:")).split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def turn(arm, arguments, disks, store):
    """Serves the drives as the arm says, and measures the clients' load and the audit beside it."""
    mode, scheduler, kind = ARMS[arm]
    disks.up(mode, scheduler)
    try:
        store.begin_objects()
        store.begin_daemons("replicator")
        store.begin_daemons("reconstructor")
        audit = Audit(kind, disks, store)
        marks = []

        def mark():
            marks.append((time.monotonic(), audit.audited_bytes()))

        figures = load.measure(arguments, mark)
        mark()
        audit.check()
        (begin, before), (end, after) = marks
        figures["audited_mb_s"] = (after - before) / (end - begin) / 1e6
        if kind == "scrub":
            figures["damaged"] = sum(len(report["findings"]) for report in disks.scrubs().values())
        return figures
    finally:
        store.end_objects()
        disks.down()
