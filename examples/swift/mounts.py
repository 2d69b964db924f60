"""The drives with an XFS on each, mounted where Swift's object servers expect them."""

import os
import subprocess

from disks import Disks, NAMES
from processes import call


class Mounts(Disks):
    """Mounted drives of one folder."""

    def mount_point(self, name):
        """Swift's folder of devices of one object server has one device."""
        return self.path("srv", name, name)

    def attach(self, name, scheduler):
        super().attach(name, scheduler)
        device, at = self.loops[name], self.mount_point(name)
        if subprocess.run(["blkid", "-p", device], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            call("mkfs.xfs", "-q", device)
        os.makedirs(at, exist_ok=True)
        call("mount", "-o", "noatime", device, at)

    def down(self):
        for name in NAMES:
            if os.path.ismount(self.mount_point(name)):
                call("umount", self.mount_point(name))
        super().down()

    def used_share(self):
        """The share of the volumes' bytes that files use."""
        found = [os.statvfs(self.mount_point(name)) for name in NAMES]
        return sum(1 - each.f_bfree / each.f_blocks for each in found) / len(found)

    def begin_scrubs(self):
        for name in NAMES:
            call(self.headtime, "scrub", name, "--detach", "--socket", self.path("run", "control"))

    def scrubs(self):
        return {name: self.ask("scrub", name, "--status") for name in NAMES}
