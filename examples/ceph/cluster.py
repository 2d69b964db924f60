"""One monitor, one manager and three OSDs of Ceph from Debian's packages, in one folder.

Monitor and manager have their data on the machine's own disk. Each OSD has a BlueStore on one emulated drive, with its
database and its log on that drive, too.
"""

import json
import os
import socket
import struct
import time
import uuid

from disks import NAMES
from processes import Failure, call, run

HERE = os.path.dirname(os.path.abspath(__file__))

# Ports on 127.0.0.1, which are not Ceph's defaults: a running cluster is not disturbed.
MONITOR_V2, MONITOR_V1 = 13300, 16789

POOL, IMAGE = "load", "load"

# A PG is scrubbed as one. With three copies on three OSDs one PG is scrubbed at a time.
PLACEMENT_GROUPS = 16

# Of so many operations an OSD remembers its slowest, with the moments of each: more than wait for a scrub in a turn.
HISTORY = 2000

# Of each OSD. Its default is a share of 4 GiB.
CACHE_BYTES = 64 << 20

# Every setting that differs from Ceph's defaults has its reason. A scrub that was asked for has the priority of one
# that is due: its default of 120 would put it before clients (63). Caches are small, because the drives are: clients
# read from the drives, as from disks of terabytes.
CONF = """[global]
fsid = {fsid}
mon_host = [v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
public_network = 127.0.0.0/8
run_dir = {folder}/run
admin_socket = {folder}/run/$name.asok
log_file = {folder}/log/$name.log
crash_dir = {folder}/log
mon_cluster_log_file = {folder}/log/cluster.log
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_delete = true
mon_data_avail_warn = 2
mon_data_avail_crit = 1
rbd_cache = false
[mon]
mon_data = {folder}/mon
mon_max_pg_per_osd = 500
[mgr]
mgr_data = {folder}/mgr
mgr_initial_modules =
[osd]
osd_data = {folder}/osd/$id
osd_objectstore = bluestore
bluestore_cache_autotune = false
bluestore_cache_size = {cache}
osd_requested_scrub_priority = 5
osd_scrub_backoff_ratio = 0
osd_scrub_load_threshold = 1000
osd_op_history_size = {history}
osd_op_history_duration = 3600
osd_op_history_slow_op_threshold = 3600
"""

class Cluster:
    """The processes of Ceph in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.front = []
        self.osds = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def configure(self):
        """Writes the configuration, and makes the monitor's data if there are none."""
        known = self.path("fsid")
        if not os.path.exists(known):
            with open(known, "w", encoding="ascii") as file:
                file.write(str(uuid.uuid4()))
        with open(known, encoding="ascii") as file:
            self.fsid = file.read()
        values = {"folder": self.folder, "fsid": self.fsid, "v1": MONITOR_V1, "v2": MONITOR_V2, "cache": CACHE_BYTES}
        values["history"] = HISTORY
        with open(self.path("ceph.conf"), "w", encoding="utf-8") as file:
            file.write(CONF.format(**values))
        if os.path.exists(self.path("mon", "store.db")):
            return
        os.makedirs(self.path("mon"), exist_ok=True)
        os.makedirs(self.path("mgr"), exist_ok=True)
        address = f"[v2:127.0.0.1:{MONITOR_V2},v1:127.0.0.1:{MONITOR_V1}]"
        call("monmaptool", "--create", "--clobber", "--fsid", self.fsid, "--addv", "a", address, self.path("monmap"))
        call("ceph-mon", "-c", self.path("ceph.conf"), "--mkfs", "-i", "a", "--monmap", self.path("monmap"))

    def build_idle_reads(self):
        built = self.path("run", "idle_reads.so")
        call("cc", "-shared", "-fPIC", "-O2", "-o", built, os.path.join(HERE, "idle_reads.c"))
        return built

    def begin(self, name, program, number, *more):
        words = [*program, "-f", "-c", self.path("ceph.conf"), "-i", number, *more]
        return run(self.folder, name, words)

    def begin_front(self):
        self.front.append(self.begin("mon", ["ceph-mon"], "a"))
        self.wait_until("the monitor", lambda: self.ask("status")["quorum"])
        self.front.append(self.begin("mgr", ["ceph-mgr"], "a"))

    def ask(self, *words):
        """A command of Ceph; returns its JSON."""
        text = call("ceph", "-c", self.path("ceph.conf"), "--connect-timeout", "10", "--format", "json", *words)
        return json.loads(text) if text.strip() else None

    def tell(self, number, prefix):
        """A command to the socket of an OSD; returns its JSON. It costs less than a process of `ceph`."""
        with socket.socket(socket.AF_UNIX) as at:
            at.connect(self.path("run", f"osd.{number}.asok"))
            at.sendall(json.dumps({"prefix": prefix, "format": "json"}).encode() + b"\0")
            with at.makefile("rb") as file:
                return json.loads(file.read(*struct.unpack(">I", file.read(4))))

    def make_osds(self, loops):
        """Formats the drives."""
        for number, name in enumerate(NAMES):
            own = str(uuid.uuid4())
            self.ask("osd", "new", own, str(number))
            os.makedirs(self.path("osd", str(number)), exist_ok=True)
            self.link(number, loops[name])
            words = ["ceph-osd", "-c", self.path("ceph.conf"), "-i", number, "--mkfs", "--osd-uuid", own]
            call(*words)

    def link(self, number, device):
        block = self.path("osd", str(number), "block")
        if os.path.islink(block):
            os.remove(block)
        os.symlink(device, block)

    def begin_osds(self, loops, settings, preloaded=False):
        """Begins the OSDs on their drives with these settings, and waits until all data are there.

        With `preloaded` their large reads are idle: see idle_reads.c. Without an I/O priority of its own, an OSD would
        have that of the nice value of this script.
        """
        before = ["ionice", "-c2", "-n4"]
        if preloaded:
            before += ["env", f"LD_PRELOAD={self.build_idle_reads()}"]
        for number, name in enumerate(NAMES):
            self.link(number, loops[name])
            words = [f"--{key}={value}" for key, value in settings.items()]
            self.osds.append(self.begin(f"osd.{number}", [*before, "ceph-osd"], str(number), *words))
        self.wait_until("all placement groups active and clean", self.is_clean)

    def is_clean(self):
        if any(osd.ended() for osd in self.osds):
            raise Failure(f"an OSD has ended: see {self.path('log')}")
        status = self.ask("status")
        states = status["pgmap"].get("pgs_by_state", [])
        up = self.ask("osd", "stat")["num_up_osds"] == len(NAMES)
        return up and all(state["state_name"].startswith("active+clean") for state in states)

    def wait_until(self, what, so, seconds=180):
        end = time.monotonic() + seconds
        while True:
            try:
                if so():
                    return
            except Failure:
                # The monitor may be choosing.
                if any(process.ended() for process in self.front + self.osds):
                    raise
            if time.monotonic() > end:
                raise Failure(f"{what}: not in {seconds} s: see {self.path('log')}")
            time.sleep(0.5)

    def make_image(self, mib):
        self.ask("osd", "pool", "create", POOL, str(PLACEMENT_GROUPS), str(PLACEMENT_GROUPS))
        self.ask("osd", "pool", "application", "enable", POOL, "rbd")
        self.wait_until("the pool", self.is_clean)
        # No scrub but those that are asked for.
        for flag in ("noscrub", "nodeep-scrub"):
            self.ask("osd", "set", flag)
        words = ["--size", f"{mib}M", "--image-feature", "layering"]
        call("rbd", "-c", self.path("ceph.conf"), "create", f"{POOL}/{IMAGE}", *words)

    def deep_scrub(self):
        """Has every placement group scrubbed deeply, one after the other."""
        for number in range(len(NAMES)):
            self.ask("osd", "deep-scrub", str(number))

    def slowest(self):
        """The slowest operations that the OSDs remember."""
        for number in range(len(NAMES)):
            yield from self.tell(number, "dump_historic_ops_by_duration")["ops"]

    def capacity(self):
        """Requests a second that mClock believes of each OSD: the OSD measured them when it first began with mClock."""
        name = "osd_mclock_max_capacity_iops_hdd"
        return {each["section"]: float(each["value"]) for each in self.ask("config", "dump") if each["name"] == name}

    def end_osds(self):
        while self.osds:
            self.osds.pop().stop()

    def down(self):
        self.end_osds()
        while self.front:
            self.front.pop().stop()
