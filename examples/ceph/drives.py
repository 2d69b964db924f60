"""The drives, and scans of their media by Headtime in the gaps between the OSDs' requests."""

from disks import Disks, NAMES
from processes import Failure, call


class Drives(Disks):
    """Served drives of one folder, without a file system: BlueStore needs none."""

    def begin_scans(self):
        """Begins a scan of each drive that has none."""
        running = {drive for drive, tasks in self.scans().items() if any(is_running(task) for task in tasks)}
        for name in NAMES:
            if name not in running:
                call(self.headtime, "scan", name, "--detach", "--socket", self.path("run", "control"))

    def modes(self):
        """How each drive is scheduled: `following` its belief, `safe` if it departed from that, `plain` without one."""
        return [drive["mode"] for drive in self.ask("ctl", "status")["drives"]]

    def scans(self):
        return {drive["drive"]: drive["tasks"] for drive in self.ask("ctl", "tasks")}

    def scanned_bytes(self):
        """Bytes that all scans have read so far."""
        scans = self.scans()
        if any(not is_running(tasks[-1]) for tasks in scans.values()):
            raise Failure("a scan has read its whole drive: expected a larger --volume-mib or fewer --seconds")
        if any(task["failed_bytes"] for tasks in scans.values() for task in tasks):
            raise Failure("a scan could not read a block of a sound drive")
        return sum(task["done_bytes"] for tasks in scans.values() for task in tasks)


def is_running(task):
    return task["state"] in ("active", "suspended")
