"""Progress of long calls, as a line of text."""

from __future__ import annotations

import sys


def show_progress(part: str, done: int, total: int | None) -> None:
    """Shows what a call has done, on one line of standard error: ``simulate(..., progress=show_progress)``.

    ``done`` counts requests, demands, shards, or seconds of a drive that is profiled; ``total`` is None if it is not
    known.
    """
    of = f" of {total:,}, {min(done / total, 1):.0%}" if total else ""
    # The line begins anew, and what was there before is erased (ECMA-48).
    print(f"\r\033[K{part}: {done:,}{of}", end="", file=sys.stderr, flush=True)
