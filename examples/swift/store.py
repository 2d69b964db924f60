"""One Swift proxy and three object servers from Debian's packages, with their daemons.

Swift reads /etc/swift. Each process has a mount namespace of its own, in which ETC of the folder lies over /etc/swift:
the machine's files are neither read nor changed.
"""

import os
import shutil
import time
import urllib.request

from disks import NAMES
from processes import Failure, call, run

USER = "swift"

# Ports on 127.0.0.1, which are not Swift's defaults: a running store is not disturbed.
PROXY, MEMCACHED, ACCOUNT, CONTAINER = 18080, 18211, 18202, 18201
OBJECT_PORTS = {name: 18300 + number for number, name in enumerate(NAMES)}

# A partition is a folder on the disk; 2^8 of them for some thousand objects. A choice.
PART_POWER = 8

SWIFT = """[swift-hash]
swift_hash_path_suffix = headtime
swift_hash_path_prefix = example

[storage-policy:0]
name = replicated
default = yes

[storage-policy:1]
name = coded
policy_type = erasure_coding
ec_type = liberasurecode_rs_vand
ec_num_data_fragments = 2
ec_num_parity_fragments = 1
"""

# Timeouts are longer than Swift's (0.3 to 2 s): all servers share a few processors, and a busy machine is no broken one.
PROXY_SERVER = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {proxy}
workers = 2
user = {user}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache listing_formats tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 5
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{memcached}
connect_timeout = 5
pool_timeout = 5
io_timeout = 5
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
"""

# Account and container databases are on the machine's own disk: Swift's deployment guide puts them on faster disks.
DATABASE_SERVER = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 1
user = {user}
devices = {folder}/srv/databases
mount_check = false
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

# An object server blocks in a read: a worker for each request in flight at the disk. Without an I/O priority of its own
# it would have that of the nice value of this script.
OBJECT_SERVER = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 4
user = {user}
devices = {folder}/srv/{name}
mount_check = true
ionice_class = IOPRIO_CLASS_BE
ionice_priority = 4
recon_cache_path = {folder}/recon/{name}
[pipeline:main]
pipeline = object-server
[app:object-server]
use = egg:swift#object
[object-auditor]
ionice_class = IOPRIO_CLASS_IDLE
ionice_priority = 7
bytes_per_second = {audit_bytes}
files_per_second = {audit_files}
recon_cache_path = {folder}/recon/{name}
[object-replicator]
ionice_class = IOPRIO_CLASS_IDLE
ionice_priority = 7
sync_method = ssync
interval = 30
recon_cache_path = {folder}/recon/{name}
[object-reconstructor]
ionice_class = IOPRIO_CLASS_IDLE
ionice_priority = 7
interval = 30
recon_cache_path = {folder}/recon/{name}
"""


class Store:
    """The processes of Swift in one folder."""

    def __init__(self, folder, settings):
        self.folder = folder
        self.settings = settings
        self.front = []
        self.objects = []
        self.daemons = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def configure(self):
        """Writes configurations and rings, which are the same whenever the names and ports are."""
        os.makedirs(self.path("etc"), exist_ok=True)
        values = {
            "folder": self.folder,
            "user": USER,
            "proxy": PROXY,
            "memcached": MEMCACHED,
            "audit_bytes": int(self.settings["audit_mb_s"] * 1e6),
            "audit_files": self.settings["audit_files"],
        }
        self.write("swift.conf", SWIFT)
        self.write("proxy-server.conf", PROXY_SERVER.format(**values))
        for kind, port in (("account", ACCOUNT), ("container", CONTAINER)):
            self.write(f"{kind}-server.conf", DATABASE_SERVER.format(kind=kind, port=port, **values))
        for name in NAMES:
            text = OBJECT_SERVER.format(name=name, port=OBJECT_PORTS[name], **values)
            self.write(f"object-server-{name}.conf", text)
            os.makedirs(self.path("recon", name), exist_ok=True)
        os.makedirs(self.path("srv", "databases", "db"), exist_ok=True)
        for owned in ("recon", "srv"):
            for at, _, _ in os.walk(self.path(owned)):
                shutil.chown(at, USER, USER)
        if not os.path.exists(self.path("etc", "object-1.ring.gz")):
            self.build_rings()

    def write(self, name, text):
        with open(self.path("etc", name), "w", encoding="utf-8") as file:
            file.write(text)

    def build_rings(self):
        objects = [(OBJECT_PORTS[name], name) for name in NAMES]
        rings = {"account": [(ACCOUNT, "db")], "container": [(CONTAINER, "db")], "object": objects, "object-1": objects}
        for ring, devices in rings.items():
            builder = self.path("etc", f"{ring}.builder")
            call("swift-ring-builder", builder, "create", PART_POWER, len(devices), 1)
            for zone, (port, device) in enumerate(devices, start=1):
                call("swift-ring-builder", builder, "add", f"r1z{zone}-127.0.0.1:{port}/{device}", 100)
            call("swift-ring-builder", builder, "rebalance")

    def words(self, program, config, *more):
        """The words of a program of Swift in a mount namespace of its own."""
        hidden = 'mount --bind "$0" /etc/swift && exec "$@"'
        namespace = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", hidden, self.path("etc")]
        return [*namespace, program, f"/etc/swift/{config}", "-v", *more]

    def swift(self, name, program, config):
        """Begins a program of Swift."""
        return run(self.folder, name, self.words(program, config))

    def replicate_once(self):
        """Has each object server hash its partitions, as after weeks of service; otherwise the first pass does it."""
        for name in NAMES:
            call(*self.words("swift-object-replicator", f"object-server-{name}.conf", "once"))

    def begin_front(self):
        """Begins what does not touch the drives."""
        words = ["memcached", "-u", USER, "-l", "127.0.0.1", "-p", str(MEMCACHED), "-U", "0"]
        self.front.append(run(self.folder, "memcached", words))
        for kind in ("account", "container", "proxy"):
            self.front.append(self.swift(kind, f"swift-{kind}-server", f"{kind}-server.conf"))

    def begin_objects(self):
        """Begins the object servers. Their namespaces have the mounts of this moment."""
        for name in NAMES:
            shutil.chown(self.path("srv", name, name), USER, USER)
            self.objects.append(self.swift(f"object-{name}", "swift-object-server", f"object-server-{name}.conf"))
        for port in [PROXY, *OBJECT_PORTS.values()]:
            self.wait_for(port)

    def begin_daemons(self, kind):
        """Begins a daemon of each object server: auditor, replicator or reconstructor."""
        for name in NAMES:
            self.daemons.append(
                self.swift(f"{kind}-{name}", f"swift-object-{kind}", f"object-server-{name}.conf")
            )
        return self.daemons[-len(NAMES):]

    def wait_for(self, port, seconds=120):
        """Waits until a server answers."""
        end = time.monotonic() + seconds
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=5)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                pass
            if time.monotonic() > end or any(server.ended() for server in self.front + self.objects):
                raise Failure(f"port {port}: no answer: see {self.path('log')}")
            time.sleep(0.2)

    def end_objects(self):
        """Ends what has files on the drives, so that they can be unmounted."""
        for processes in (self.daemons, self.objects):
            while processes:
                processes.pop().stop()

    def down(self):
        self.end_objects()
        while self.front:
            self.front.pop().stop()
