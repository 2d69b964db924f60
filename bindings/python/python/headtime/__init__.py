"""Headtime: hard disks and caches in virtual time, with results as Arrow tables.

>>> import headtime
>>> headtime.cache_curve("mine.csv", replacement=["lru", "arc"])

``headtime.System`` describes drive, policy and caches; ``headtime.simulate`` runs a load or a trace on it;
``headtime.cache_curve`` has miss ratios by size of the cache; ``headtime.validate`` compares drive models with real
drives; ``headtime.sweep`` runs an experiment on many workers. Results are tables for polars, pandas and pyarrow, and have the JSON and plots of the command line.
"""

from headtime._native import (
    Drive,
    Pending,
    PolicyView,
    Results,
    System,
    Table,
    Trace,
    cache_curve,
    merge_shards,
    run_shard,
    simulate,
    validate,
)
from headtime._sweep import sweep

__all__ = [
    "Drive",
    "Pending",
    "PolicyView",
    "Results",
    "System",
    "Table",
    "Trace",
    "cache_curve",
    "merge_shards",
    "run_shard",
    "simulate",
    "sweep",
    "validate",
]
