"""What the examples of stores have in common: flags, what they need, rounds of arms, and how they end."""

import json
import os
import shutil
import signal
import sys

import processes
from processes import Failure

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def add_flags(parser, store, arms, volume_mib, size):
    """The flags of all stores. `size` says what the folder takes."""
    folder = f"/var/tmp/headtime-{store}"
    parser.add_argument("--folder", default=folder, help=f"all state, about {size} [%(default)s]")
    parser.add_argument("--headtime", default=os.path.join(ROOT, "target", "release", "headtime"), help="[%(default)s]")
    parser.add_argument("--drive", default=os.path.join(ROOT, "drives", "quantum-atlas-10k.toml"), help="[%(default)s]")
    parser.add_argument("--volume-mib", type=int, default=volume_mib, help="size of each volume [%(default)s]")
    parser.add_argument("--time-scale", type=float, default=1, help="times slower than the drive [%(default)s]")
    parser.add_argument("--preemption", action="store_true", help="large requests may be interrupted (Headtime's arms)")
    parser.add_argument("--arm", action="append", choices=list(arms), help="only this arm; repeat it for several")
    parser.add_argument("--mode", default="headtime", choices=("headtime", "kernel"), help="up: how drives are served")
    parser.add_argument("--repeats", type=int, default=5, help="turns of each arm [%(default)s]")
    parser.add_argument("--keep", action="store_true", help="measure: keep the filled drives for the next time")
    parser.add_argument("--json", action="store_true", help="measure: print JSON instead of a table")
    parser.add_argument("--out", help="measure: write JSON to this file, too, after each turn")


def need(programs, arguments):
    """Says at once what is missing. `programs` has the package of each."""
    if os.geteuid() != 0:
        raise Failure("root is needed for FUSE, loop devices, mounts and I/O priorities")
    missing = sorted({package for program, package in programs.items() if not shutil.which(program)})
    if missing:
        raise Failure(f"missing: apt-get install --no-install-recommends {' '.join(missing)}")
    if not os.path.exists(arguments.headtime):
        raise Failure(f"{arguments.headtime}: no such file: cargo build --release -p headtime, or --headtime FILE")
    if not os.path.exists(arguments.drive):
        raise Failure(f"{arguments.drive}: no such file: expected a profile (--drive FILE)")


def say(text):
    print(text, file=sys.stderr, flush=True)


def chosen(arguments, names):
    """The values of these flags."""
    return {name: getattr(arguments, name) for name in names}


class Filled:
    """A mark in the folder that says what the images hold. Another answer fills them anew."""

    def __init__(self, folder, holds):
        self.file = os.path.join(folder, "filled.json")
        self.holds = holds

    def is_so(self):
        if not os.path.exists(self.file):
            return False
        with open(self.file, encoding="utf-8") as file:
            return json.load(file) == self.holds

    def forget(self):
        if os.path.exists(self.file):
            os.remove(self.file)

    def mark(self):
        with open(self.file, "w", encoding="utf-8") as file:
            json.dump(self.holds, file)


def rounds(arms, repeats):
    """Number of the round and arm of each turn. Another arm begins each round."""
    for repeat in range(repeats):
        first = repeat % len(arms)
        for arm in arms[first:] + arms[:first]:
            yield repeat, arm


def write(document, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)


def run(arguments, up, measure, down):
    """Does what the command line says, and cleans up, also after Ctrl-C."""

    def stopped(number, _):
        # As after Ctrl-C: `finally` cleans up.
        raise KeyboardInterrupt(signal.Signals(number).name)

    signal.signal(signal.SIGTERM, stopped)
    signal.signal(signal.SIGHUP, stopped)
    processes.end_left_over(arguments.folder)
    if arguments.what == "down":
        down()
        shutil.rmtree(arguments.folder, ignore_errors=True)
    elif arguments.what == "up":
        try:
            up()
        except BaseException:
            down()
            processes.end_left_over(arguments.folder)
            raise
    else:
        measured(arguments, measure, down)


def measured(arguments, measure, down):
    try:
        measure()
    except Failure as failure:
        # The folder has the logs.
        arguments.keep = True
        raise Failure(f"{failure}\n{arguments.folder} stays for its logs: remove it by `run.py down`") from failure
    finally:
        down()
        processes.end_left_over(arguments.folder)
        if not arguments.keep:
            shutil.rmtree(arguments.folder, ignore_errors=True)


def main(work):
    try:
        work()
    except Failure as failure:
        sys.exit(f"run.py: {failure}")
