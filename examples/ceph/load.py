"""The load of clients: `fio` with the rbd engine, which is Ceph's own library without the kernel."""

import json
import os
import subprocess

from cluster import IMAGE, POOL
from processes import Failure

# Sizes of a file system of a virtual machine: small, a database's page, read ahead. Shares are a choice.
SIZES = "4k/40:16k/40:64k/20"

# Percent of reads. A choice.
READS = 70

# Requests at once of a load with a rate: it stays ahead of stalls of seconds.
DEPTH = 256

# Requests at once that saturate three drives.
SATURATING_DEPTH = 64

PERCENTILES = {"50.000000": "p50_ms", "99.000000": "p99_ms", "99.900000": "p999_ms"}


def fio(folder, mib, *words):
    """Runs a job; returns its figures."""
    job = [
        "fio", "--name=load", "--ioengine=rbd", "--clientname=admin", f"--pool={POOL}", f"--rbdname={IMAGE}",
        f"--size={mib}M", "--output-format=json", "--percentile_list=50:99:99.9", *map(str, words),
    ]
    environment = {**os.environ, "CEPH_CONF": os.path.join(folder, "ceph.conf")}
    done = subprocess.run(job, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        # Figures of a job that has failed are of no use.
        raise Failure(f"{' '.join(job)}: {done.stderr.strip() or done.stdout[: done.stdout.find('{')].strip()}")
    # A warning of librbd may stand before the JSON.
    return json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]


def fill(arguments):
    """Writes the whole image."""
    fio(arguments.folder, arguments.image_mib, "--rw=write", "--bs=4M", "--iodepth=4")


def random_words(arguments, seconds, depth):
    return (
        "--rw=randrw", f"--rwmixread={READS}", f"--bssplit={SIZES}", "--norandommap", "--time_based",
        f"--ramp_time={arguments.warm_up}", f"--runtime={seconds}", f"--iodepth={depth}",
        f"--randseed={arguments.seed}", "--unified_rw_reporting=both",
    )


def saturation(arguments):
    """Requests a second with a queue that never empties."""
    words = random_words(arguments, arguments.seconds, SATURATING_DEPTH)
    return fio(arguments.folder, arguments.image_mib, *words)["mixed"]["iops"]


def measure(arguments, rate):
    """Requests at random moments at this rate, with latencies from the moment of submission."""
    reads = rate * READS / 100
    rates = (f"--rate_iops={max(1, round(reads))},{max(1, round(rate - reads))}", "--rate_process=poisson")
    job = fio(arguments.folder, arguments.image_mib, *random_words(arguments, arguments.seconds, DEPTH), *rates)
    return {"iops": job["mixed"]["iops"], **{kind: figures(job[kind]) for kind in ("mixed", "read", "write")}}


def figures(side):
    times = side["clat_ns"]
    found = {name: times["percentile"][key] / 1e6 for key, name in PERCENTILES.items()}
    return {"operations": side["total_ios"], "most_ms": times["max"] / 1e6, **found}


def add_flags(parser):
    """The flags of the load."""
    parser.add_argument("--image-mib", type=int, default=1500, help="size of the RBD image [%(default)s]")
    parser.add_argument("--loads", default="30,60,90", help="percent of saturation [%(default)s]")
    parser.add_argument("--saturation", type=float, help="requests/s; otherwise it is measured first")
    parser.add_argument("--seconds", type=int, default=60, help="measured time of each load [%(default)s]")
    parser.add_argument("--warm-up", type=int, default=5, help="seconds before it [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
