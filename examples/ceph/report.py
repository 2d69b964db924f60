"""Medians and spread of the turns, as a table and as JSON."""

import os

from arms import UNSCRUBBED
from tables import aligned, over, shown, spread

# The arms on the kernel's scheduler that scrub.
KERNEL = ("wpq", "mclock-balanced", "mclock-high-client")
COLUMNS = ("p50_ms", "p99_ms", "p999_ms")
DAY_S = 86400


def line(figures):
    """One turn at one load."""
    times = " / ".join(f"{figures['mixed'][column]:.0f}" for column in COLUMNS)
    return (
        f"{figures['iops']:.0f} requests/s, p50 / p99 / p99.9 {times} ms, "
        f"scrubbed {figures['scrubbed_mb_s']:.2f} MB/s, scanned {figures['scanned_mb_s']:.2f} MB/s a drive, "
        f"{figures['locked_writes']} locked writes, the longest {figures['longest_lock_ms']:.0f} ms; "
        f"drives {' '.join(figures['modes'])}"
    )


def media_mb_s(turn):
    """The rate at which the media of a drive are read: that of the faster reader."""
    return max(turn["scrubbed_mb_s"], turn["scanned_mb_s"])


def days(mb_s):
    """Days of a TB at a rate; none if nothing is read."""
    return 1e6 / mb_s / DAY_S if mb_s > 0 else None


def share_of(values, wanted):
    return values.count(wanted) / len(values)


def document(turns, arguments, rates):
    """Everything that was measured, and how."""
    ran = {arm: each for arm, each in turns.items() if each}
    return {
        "drive": os.path.basename(arguments.drive),
        "time_scale": arguments.time_scale,
        "saturation_iops": arguments.saturation,
        "seconds": arguments.seconds,
        "image_mib": arguments.image_mib,
        "preemption": arguments.preemption,
        "write_cache": arguments.write_cache,
        "capacity_iops": arguments.capacity,
        "processors": os.cpu_count(),
        "kernel": os.uname().release,
        "load_average": os.getloadavg()[1],
        "loads": [
            {"percent": percent, "iops": rate, "arms": [summary(arm, ran, percent) for arm in ran]}
            for percent, rate in rates.items()
        ],
        "turns": ran,
    }


def summary(arm, turns, percent):
    own = [turn[percent] for turn in turns[arm]]
    found = {"arm": arm, "repeats": len(own)}
    for column in COLUMNS:
        found[column] = spread([turn["mixed"][column] for turn in own])
    for kind in ("read", "write"):
        found[f"{kind}_p99_ms"] = spread([turn[kind]["p99_ms"] for turn in own])
    for column in ("iops", "scrubbed_mb_s", "scanned_mb_s", "longest_lock_ms", "locked_writes"):
        found[column] = spread([turn[column] for turn in own])
    found["safe_share"] = share_of([mode for turn in own for mode in turn["modes"]], "safe")
    found["media_mb_s"] = spread([media_mb_s(turn) for turn in own])
    found["days_per_tb"] = days(found["media_mb_s"]["median"])
    found["p99_over_unscrubbed"] = ratio(turns, arm, percent, [UNSCRUBBED.get(arm)])
    found["p99_over_kernel"] = None if arm in KERNEL else ratio(turns, arm, percent, KERNEL)
    return found


def ratio(turns, arm, percent, others):
    """The p99 over the least p99 of the others, round by round."""

    def p99(name):
        return [turn[percent]["mixed"]["p99_ms"] for turn in turns[name]]

    return over(p99(arm), [p99(other) for other in others if other in turns])


def table(turns, arguments, rates):
    found = document(turns, arguments, rates)
    head = (
        "load", "arm", "requests/s", "p50 ms", "p99 ms", "p99.9 ms", "scrub MB/s", "scan MB/s", "days a TB",
        "longest lock ms", "over unscrubbed", "over kernel", "safe mode",
    )
    rows = [head]
    for load in found["loads"]:
        for each in load["arms"]:
            rows.append((f"{load['percent']} %", each["arm"], *cells(each)))
    lines = aligned(rows)
    lines.append(
        f"\nMedians, with the least and the most of {arguments.repeats} turns of {arguments.seconds} s; saturation "
        f"{found['saturation_iops']:.0f} requests/s; load of the machine {found['load_average']:.1f}.\n"
        "scrub, scan: read by deep scrubs and by Headtime, of each drive; days a TB: at the faster of them.\n"
        "over unscrubbed: p99 over that of the same disks without a scrub (goal 1.1); "
        "over kernel: over the best p99 of Ceph's queues beside a deep scrub (goal 0.7), round by round.\n"
        "safe mode: drives, at begin and end of each turn, that did not do what their belief predicts and were "
        "scheduled without it: by a write cache, or by a machine that is too busy to emulate them in time."
    )
    return "\n".join(lines)


def cells(each):
    in_days = "-" if each["days_per_tb"] is None else f"{each['days_per_tb']:.1f}"
    return (
        *(shown(each[column], 0) for column in ("iops", *COLUMNS)),
        shown(each["scrubbed_mb_s"], 2),
        shown(each["scanned_mb_s"], 2),
        in_days,
        shown(each["longest_lock_ms"], 0),
        shown(each["p99_over_unscrubbed"], 2),
        shown(each["p99_over_kernel"], 2),
        f"{each['safe_share']:.0%}",
    )
