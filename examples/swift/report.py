"""Medians and spread of the turns, as a table and as JSON."""

import os

from arms import UNAUDITED
from tables import aligned, over, shown, spread

KERNEL = ("mq-deadline", "bfq")
COLUMNS = ("p50_ms", "p99_ms", "p999_ms")


def line(figures):
    """One turn."""
    times = " / ".join(f"{figures[column]:.0f}" for column in COLUMNS)
    return (
        f"p50 / p99 / p99.9 {times} ms, {figures['operations']} operations, {figures['failed']} failed, "
        f"audited {figures['audited_mb_s']:.2f} MB/s"
    )


def document(turns, arguments):
    """Everything that was measured, and how."""
    ran = {arm: each for arm, each in turns.items() if each}
    return {
        "drive": os.path.basename(arguments.drive),
        "time_scale": arguments.time_scale,
        "rate": arguments.rate,
        "seconds": arguments.seconds,
        "sizes": arguments.sizes,
        "preemption": arguments.preemption,
        "audit_mb_s_limit": arguments.audit_mb_s,
        "processors": os.cpu_count(),
        "kernel": os.uname().release,
        "load_average": os.getloadavg()[1],
        "arms": [summary(arm, ran) for arm in ran],
        "turns": ran,
    }


def summary(arm, turns):
    found = {"arm": arm, "repeats": len(turns[arm])}
    for column in (*COLUMNS, "audited_mb_s"):
        found[column] = spread([each[column] for each in turns[arm]])
    found["read_p99_ms"] = spread([each["read"]["p99_ms"] for each in turns[arm]])
    found["operations"] = sum(each["operations"] for each in turns[arm])
    found["failed"] = sum(each["failed"] for each in turns[arm])
    # Nothing damages the drives: a place that a scrub reports is a false alarm.
    found["damaged"] = sum(each.get("damaged", 0) for each in turns[arm])
    found["p99_over_unaudited"] = ratio(turns, arm, [UNAUDITED.get(arm)])
    found["p99_over_kernel"] = None if arm in KERNEL else ratio(turns, arm, KERNEL)
    return found


def ratio(turns, arm, others):
    """The p99 over the least p99 of the others, round by round."""
    beside = [[turn["p99_ms"] for turn in turns[other]] for other in others if other in turns]
    return over([turn["p99_ms"] for turn in turns[arm]], beside)


def table(turns, arguments):
    found = document(turns, arguments)
    times = ("p50 ms", "p99 ms", "p99.9 ms", "read p99 ms")
    head = ("arm", *times, "audited MB/s", "over unaudited", "over kernel", "failed")
    rows = [head]
    for each in found["arms"]:
        rows.append(
            (
                each["arm"],
                *(shown(each[column], 0) for column in (*COLUMNS, "read_p99_ms")),
                shown(each["audited_mb_s"], 2),
                shown(each["p99_over_unaudited"], 2),
                shown(each["p99_over_kernel"], 2),
                str(each["failed"]),
            )
        )
    lines = aligned(rows)
    lines.append(
        f"\nMedians, with the least and the most of {arguments.repeats} turns of {arguments.seconds:.0f} s; "
        f"{found['rate']} operations/s; load of the machine {found['load_average']:.1f}.\n"
        "over unaudited: p99 over that of the same disks without an audit (goal 1.1); "
        "over kernel: over the better p99 of mq-deadline and bfq beside the auditor (goal 0.7), round by round."
    )
    return "\n".join(lines)
