"""Processes of one folder: each has a file of its pid and a log, so that `down` finds what is left."""

import os
import signal
import subprocess
import time

# Seconds between asking a process to end and ending it.
PATIENCE_S = 15


class Failure(Exception):
    """What went wrong, and what to do."""


def call(*words):
    """Runs a program to its end; returns what it printed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, words))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Process:
    """A process that runs in a group of its own, with its children."""

    def __init__(self, pid_file, child):
        self.pid_file = pid_file
        self.child = child

    def ended(self):
        return self.child.poll() is not None

    def members(self):
        """The processes of its group."""
        return group_members(self.child.pid)

    def stop(self):
        end_group(self.child.pid, self.child.poll)
        os.remove(self.pid_file)


def run(folder, name, words):
    """Begins a process; its output goes to log/NAME."""
    with open(os.path.join(folder, "log", name), "ab") as log:
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    pid_file = os.path.join(folder, "run", f"{name}.pid")
    with open(pid_file, "w", encoding="ascii") as file:
        file.write(f"{child.pid} {started(child.pid)}\n")
    return Process(pid_file, child)


def fields(pid):
    """The fields behind the name of a process (proc_pid_stat(5)): state, parent, group; or none if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return []


def started(pid):
    """The moment at which a process began, in ticks since the machine's start: with it a pid has no namesake."""
    found = fields(pid)
    return int(found[19]) if found else None


def group_members(group):
    """The processes of a group that have not ended."""
    found = {int(pid): fields(pid) for pid in filter(str.isdigit, os.listdir("/proc"))}
    return [pid for pid, parts in found.items() if parts and parts[0] != "Z" and parts[2] == str(group)]


def end_group(group, reap=lambda: None):
    """Asks a group to end; ends it after PATIENCE_S."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            reap()
            if not group_members(group):
                return
            time.sleep(0.05)


def end_left_over(folder):
    """Ends what an earlier run of this folder left: Headtime last, because mounts need it."""
    run_folder = os.path.join(folder, "run")
    if not os.path.isdir(run_folder):
        return
    names = [name for name in os.listdir(run_folder) if name.endswith(".pid")]
    for name in sorted(names, key=lambda name: name == "headtime.pid"):
        with open(os.path.join(run_folder, name), encoding="ascii") as file:
            pid, moment = file.read().split()
        if name == "headtime.pid":
            unmount_left_over(folder)
        if str(started(int(pid))) == moment:
            end_group(int(pid))
        os.remove(os.path.join(run_folder, name))
    unmount_left_over(folder)
    # A service that was killed leaves its mounts.
    unmount_below(folder, lambda kind: True)


def unmount_left_over(folder):
    """Unmounts everything below the folder but FUSE, the newest first, and detaches its loop devices."""
    unmount_below(folder, lambda kind: not kind.startswith("fuse"))
    listed = call("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")
    for line in listed.splitlines():
        device, _, behind = line.partition(" ")
        if behind.strip().startswith(folder + "/"):
            call("losetup", "--detach", device)


def unmount_below(folder, chosen):
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounted = [line.split()[1:3] for line in file]
    for at, kind in reversed(mounted):
        if at.startswith(folder + "/") and chosen(kind):
            call("umount", at)
