"""Headtime: hard disks and caches in virtual time, with results as Arrow tables.

>>> import headtime
>>> headtime.cache_curve("mine.csv", replacement=["lru", "arc"])

``headtime.System`` describes drive, policy and caches; ``headtime.simulate`` runs a load or a trace on it;
``headtime.cache_curve`` has miss ratios by size of the cache; ``headtime.profile`` finds the profile of a simulated
drive; ``headtime.validate`` compares drive models with real drives; ``headtime.sweep`` runs an experiment on many
workers. Results are tables for polars, pandas and pyarrow, and have the JSON and plots of the command line.
``headtime.Client`` asks a running service for streams and background tasks.

``progress=headtime.show_progress`` shows what long calls have done.
"""

from headtime._native import (
    Client,
    Drive,
    Pending,
    PolicyView,
    Profiled,
    Refused,
    Results,
    SeenRequest,
    Stream,
    System,
    Table,
    Trace,
    cache_curve,
    merge_shards,
    profile,
    run_shard,
    simulate,
    validate,
)
from headtime._progress import show_progress
from headtime._sweep import sweep

__all__ = [
    "Client",
    "Drive",
    "Pending",
    "PolicyView",
    "Profiled",
    "Refused",
    "Results",
    "SeenRequest",
    "Stream",
    "System",
    "Table",
    "Trace",
    "cache_curve",
    "merge_shards",
    "profile",
    "run_shard",
    "show_progress",
    "simulate",
    "sweep",
    "validate",
]
