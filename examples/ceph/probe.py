"""Whose reads reach the drives: a uprobe on the function of ceph-osd that reads for a deep scrub, and the block layer.

BlueStore reads in the thread that asks. What a thread submits between entry and return of `be_deep_scrub` is therefore
a scrub's. A worker of the kernel may issue it later: device and sector tell whose it is. Ceph is not changed: the
function is an exported symbol of Debian's ceph-osd.
"""

import collections
import os
import re
import shutil
import struct
import subprocess
import threading

from processes import Failure
from tables import aligned

TRACING = "/sys/kernel/tracing"
GROUP = "headtime_ceph"

# ReplicatedBackend::be_deep_scrub(hobject_t const&, ScrubMap&, ScrubMapBuilder&, ScrubMap::object&)
SYMBOL = b"_ZN17ReplicatedBackend13be_deep_scrubERK9hobject_tR8ScrubMapR15ScrubMapBuilderRNS3_6objectE"

SECTOR = 512

# Classes of sizes: below so many KiB. BlueStore's blobs on a rotational drive have at most 64.
LIMITS = (16, 64, 65, 129)
SIZES = ("4-12", "16-60", "64", "68-128", "over 128")

LINE = re.compile(r"^\s*(?P<name>.+)-(?P<thread>\d+)\s+\[\d+\]\s+\S+\s+[\d.]+: (?P<event>\w+): (?P<rest>.*)$")
BIO = re.compile(r"^(?P<device>\d+,\d+) (?P<flags>\w+) (?P<sector>\d+) \+ (?P<sectors>\d+) \[(?P<name>.*)\]$")
REQUEST = re.compile(
    r"^(?P<device>\d+,\d+) (?P<flags>\w+) \d+ \(.*\) "
    r"(?P<sector>\d+) \+ (?P<sectors>\d+) (?P<ioprio>\S+) \[(?P<name>.*)\]$"
)


def file_offset(program, symbol):
    """Where an exported symbol of an ELF file of 64 bits begins, in bytes from the start of the file."""
    with open(program, "rb") as file:
        data = file.read()
    if data[:5] != b"\x7fELF\x02":
        raise Failure(f"{program}: expected an ELF file of 64 bits")
    programs, sections = struct.unpack_from("<QQ", data, 32)
    program_size, program_count, section_size, section_count = struct.unpack_from("<4H", data, 54)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + section_size * n) for n in range(section_count)]
    for header in headers:
        if header[1] != 11:  # SHT_DYNSYM
            continue
        names = headers[header[6]][4]
        for at in range(header[4], header[4] + header[5], 24):
            name, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", data, at)
            if data.startswith(symbol + b"\0", names + name):
                return in_file(data, programs, program_size, program_count, address)
    raise Failure(f"{program}: no symbol {symbol.decode()}: expected ceph-osd 16 of Debian 12")


def in_file(data, programs, size, count, address):
    for number in range(count):
        kind, _, offset, start, _, length = struct.unpack_from("<IIQQQQ", data, programs + size * number)
        if kind == 1 and start <= address < start + length:  # PT_LOAD
            return address - start + offset
    raise Failure(f"no segment has the address {address:#x}")


def write(path, text):
    """Python's files look for their position, which tracefs refuses."""
    file = os.open(os.path.join(TRACING, path), os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


class Probe:
    """Counts bytes of the drives' reads, those of deep scrubs apart, until `end`.

    With `requests`, reads are counted besides as the service gets them, with size, I/O priority and name of the thread.
    """

    def __init__(self, loops, requests=False):
        self.events = ("block_bio_queue", "block_rq_issue") if requests else ("block_bio_queue",)
        self.devices = {device_number(path): path for path in loops}
        self.scrubbing = set()
        self.bytes = collections.Counter()
        self.kinds = collections.Counter()
        self.submitted = {}
        self.begin()

    def begin(self):
        remove()
        program = shutil.which("ceph-osd")
        offset = file_offset(program, SYMBOL)
        write("uprobe_events", f"p:{GROUP}/scrub_in {program}:{offset:#x}\n")
        write("uprobe_events", f"r:{GROUP}/scrub_out {program}:{offset:#x}\n")
        os.mkdir(os.path.join(TRACING, "instances", GROUP))
        mine = f"instances/{GROUP}"
        for event in ("scrub_in", "scrub_out"):
            write(f"{mine}/events/{GROUP}/{event}/enable", "1")
        numbers = " || ".join(f"dev == {kernel_number(device)}" for device in self.devices)
        for event in self.events:
            write(f"{mine}/events/block/{event}/filter", numbers)
            write(f"{mine}/events/block/{event}/enable", "1")
        pipe = os.path.join(TRACING, mine, "trace_pipe")
        self.reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True, errors="replace")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.reader.stdout:
            found = LINE.match(line)
            if found:
                self.seen(found["thread"], found["event"], found["rest"])

    def seen(self, thread, event, rest):
        if event == "scrub_in":
            self.scrubbing.add(thread)
        elif event == "scrub_out":
            self.scrubbing.discard(thread)
        elif event == "block_bio_queue":
            self.queued(thread, BIO.match(rest))
        elif event == "block_rq_issue":
            self.issued(REQUEST.match(rest))

    def queued(self, thread, found):
        if found and "R" in found["flags"]:
            whose = "scrub" if thread in self.scrubbing else "others"
            self.bytes[whose] += int(found["sectors"]) * SECTOR
            if len(self.events) > 1:
                self.submitted[found["device"], found["sector"]] = whose

    def issued(self, found):
        whose = found and self.submitted.pop((found["device"], found["sector"]), None)
        if whose and found["flags"].startswith("R"):
            # The names of the kernel's workers have numbers.
            name = re.sub(r"\d.*$", "", found["name"]).rstrip("/")
            size = size_class(int(found["sectors"]) * SECTOR)
            self.kinds[found["flags"], found["ioprio"], name, size, whose] += 1

    def scrubbed_bytes(self):
        return self.bytes["scrub"]

    def reads(self):
        """Reads by what a block device sees of them, and how many of each were a deep scrub's."""
        rows = {}
        for (flags, ioprio, name, size, whose), count in self.kinds.items():
            row = rows.setdefault((flags, ioprio, name, size), {"scrub": 0, "others": 0})
            row[whose] += count
        keys = ("flags", "ioprio", "name", "size")
        order = sorted(rows, key=lambda key: (*key[:3], SIZES.index(key[3])))
        return [{**dict(zip(keys, key)), **rows[key]} for key in order]

    def end(self):
        write(f"instances/{GROUP}/tracing_on", "0")
        self.reader.terminate()
        self.reader.wait()
        self.thread.join()
        remove()


def size_class(length):
    for limit, name in zip(LIMITS, SIZES):
        if length < limit << 10:
            return name
    return SIZES[-1]


def table(reads):
    """What told a deep scrub's reads from others."""
    head = ("flags", "I/O priority", "thread", "size, KiB", "scrub", "others")
    rows = [head] + [
        (each["flags"], each["ioprio"], each["name"], each["size"], str(each["scrub"]), str(each["others"]))
        for each in reads
    ]
    return "\n".join(aligned(rows))


def device_number(path):
    number = os.stat(path).st_rdev
    return f"{os.major(number)},{os.minor(number)}"


def kernel_number(device):
    """A device's number in the kernel: MINORBITS is 20."""
    major, minor = map(int, device.split(","))
    return major << 20 | minor


def remove():
    """Removes the probe, also what an earlier run left."""
    instance = os.path.join(TRACING, "instances", GROUP)
    if os.path.isdir(instance):
        for event in ("scrub_in", "scrub_out"):
            if os.path.isdir(os.path.join(instance, "events", GROUP)):
                write(f"instances/{GROUP}/events/{GROUP}/{event}/enable", "0")
        os.rmdir(instance)
    with open(os.path.join(TRACING, "uprobe_events"), encoding="ascii") as file:
        present = [line.split()[0].partition(":")[2] for line in file]
    for event in present:
        if event.startswith(f"{GROUP}/"):
            write("uprobe_events", f"-:{event}\n")
