"""Three emulated drives, served by `headtime serve`, as block devices.

    image file -> headtime serve (drive's timing) -> FUSE file -> loop device [scheduler]
"""

import json
import os
import re
import time

from processes import Failure, call, run

NAMES = ("d1", "d2", "d3")

# MB/s. The bus of the measured Atlas 10K carries less than its medium reads (docs/reference/configuration.md).
BUS_MB_S = 80

# A second for 10 ms: filling and the first scrub are no measurement.
FAST = 0.01

# KiB. Loop devices over FUSE read 2.5 MiB ahead; disks have VM_READAHEAD_PAGES of Linux.
READ_AHEAD_KB = 128

# The smallest queue of the kernel, BLKDEV_MIN_RQ: the scheduler decides, not the drive.
LEAST_REQUESTS = 4


class Disks:
    """The drives of one folder. A mode is how they are served: see `toml`."""

    def __init__(self, folder, settings):
        self.folder = folder
        self.settings = settings
        self.headtime = settings["headtime"]
        self.service = None
        self.loops = {}

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def fuse_file(self, name):
        """A service of several drives has a folder for each."""
        return self.path("fuse", name, name)

    def learn(self):
        """Writes the drive with a faster bus, and the profile that `headtime profile` finds of it (simulated)."""
        with open(self.settings["drive"], encoding="utf-8") as file:
            text = file.read()
        # A block has 512 bytes; the keys are milliseconds a block.
        text, found = re.subn(r"(?m)^((?:read|write)_block_ms) = .*$", rf"\1 = {512 / BUS_MB_S / 1000:.5f}", text)
        if found == 0:
            raise Failure(f"{self.settings['drive']}: expected read_block_ms and write_block_ms in [bus]")
        with open(self.path("drive.toml"), "w", encoding="utf-8") as file:
            file.write(text)
        call(self.headtime, "profile", "--drive", self.path("drive.toml"), "-o", self.path("belief.toml"), "--quiet")

    def toml(self, mode):
        """The configuration of the service.

        fill:     no timing to speak of, to put files on the drives
        sums:     the same with checksums, for the first scrub
        kernel:   the drive's own queue; a scheduler of the kernel is on the loop device
        headtime: our policy with the profiled belief, classes by I/O priority; preemption if it was asked for
        scrub:    the same with checksums, on images of their own
        """
        fast = mode in ("fill", "sums")
        ours = mode in ("headtime", "scrub")
        checksums = mode in ("sums", "scrub")
        write_cache = str(self.settings["write_cache"]).lower()
        preemption = ours and self.settings["preemption"]
        scale = FAST if fast else self.settings["time_scale"]
        belief = "emulated" if fast else self.path("belief.toml") if ours else "nothing"
        parts = []
        for name in NAMES:
            image = self.path("images", f"{name}-sums.img" if checksums else f"{name}.img")
            sums = f"checksums = \"{self.path('images', name + '.sums')}\"" if checksums else ""
            parts.append(
                f"[[drive]]\nname = \"{name}\"\nbelief = \"{belief}\"\n"
                f"policy = \"{'drive' if mode == 'kernel' else 'sptf-sw60'}\"\n"
                f"[drive.back_end]\nkind = \"emulated\"\ndrive = \"{self.path('drive.toml')}\"\n"
                f"image = \"{image}\"\ntime_scale = {scale}\nwrite_cache = {write_cache}\nbus_mb_s = {BUS_MB_S}\n"
                + ("[drive.preemption]\n" if preemption else "")
                + f"[[drive.volume]]\nname = \"{name}\"\nsize = \"{self.settings['volume_mib']} MiB\"\n{sums}\n"
                f"[[drive.export]]\nname = \"{name}\"\nvolume = \"{name}\"\n"
                + ("classify = \"ioprio\"\n" if ours else "")
            )
        parts.append(
            f"[[nbd]]\nunix = \"{self.path('run', 'nbd')}\"\n[fuse]\nmount = \"{self.path('fuse')}\"\n"
            f"[control]\nsocket = \"{self.path('run', 'control')}\"\n"
        )
        return "\n".join(parts)

    def up(self, mode, scheduler=None):
        """Serves the drives in a mode, as block devices."""
        config = self.path("run", "headtime.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(self.toml(mode))
        os.makedirs(self.path("fuse"), exist_ok=True)
        self.service = run(self.folder, "headtime", [self.headtime, "serve", config])
        for name in NAMES:
            self.wait_for(lambda: os.path.exists(self.fuse_file(name)))
            self.attach(name, scheduler)
        if mode in ("headtime", "scrub"):
            self.wait_for(self.watched)

    def attach(self, name, scheduler):
        """A rotational loop device over the file of FUSE."""
        device = call("losetup", "--show", "--find", "--direct-io=on", self.fuse_file(name)).strip()
        self.loops[name] = device
        queue = {"rotational": "1", "read_ahead_kb": str(READ_AHEAD_KB), "scheduler": "none"}
        if scheduler:
            # The depth is taken while there is no scheduler.
            queue = {**queue, "nr_requests": str(LEAST_REQUESTS)}
        for key, value in [*queue.items(), ("scheduler", scheduler or "none")]:
            with open(f"/sys/block/{os.path.basename(device)}/queue/{key}", "w", encoding="ascii") as file:
                file.write(value)

    def down(self):
        """Detaches and stops."""
        for device in self.loops.values():
            call("losetup", "--detach", device)
        self.loops = {}
        if self.service:
            self.service.stop()
            self.service = None

    def wait_for(self, so, seconds=60):
        end = time.monotonic() + seconds
        while not so():
            if self.service.ended() or time.monotonic() > end:
                raise Failure(f"headtime serve: see {self.path('log', 'headtime')}")
            time.sleep(0.1)

    def ask(self, *words):
        """A command of Headtime to the service; returns what it prints as JSON."""
        return json.loads(call(self.headtime, *words, "--json", "--socket", self.path("run", "control")))

    def watched(self):
        drives = self.ask("ctl", "status")["drives"]
        return all(export["devices"] for drive in drives for export in drive["classified"])
