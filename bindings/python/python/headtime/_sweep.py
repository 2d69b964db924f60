"""Experiments on many workers: Dask, or an executor of the standard library."""

from __future__ import annotations

from concurrent.futures import Executor
from os import PathLike
from pathlib import Path
from typing import Any

from headtime._native import Results, merge_shards, run_shard

#: How often Dask runs a shard again whose worker was lost. A choice.
RETRIES = 5


def sweep(experiment: str | PathLike[str], client: Any = None, *, shards: int = 16) -> Results:
    """Runs an experiment file in shards, and merges them: the results of ``headtime experiment``, byte for byte.

    ``client`` is a ``dask.distributed.Client``, whose lost workers are replaced, or an ``Executor`` of
    ``concurrent.futures``; without one, the runs use all cores of this machine. The number of workers and of shards
    changes nothing. Files that the experiment names are relative to each worker's current directory.
    """
    path = Path(experiment)
    name, text = str(path), path.read_text()
    if client is None:
        return merge_shards([run_shard(name, text, 1, 1)])
    words = [(name, text, number, shards) for number in range(1, shards + 1)]
    if isinstance(client, Executor):
        futures = [client.submit(run_shard, *word, threads=1) for word in words]
        return merge_shards([future.result() for future in futures])
    futures = [client.submit(run_shard, *word, threads=1, pure=False, retries=RETRIES) for word in words]
    return merge_shards(client.gather(futures))
