"""Experiments on many workers: Dask, or an executor of the standard library."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, as_completed
from os import PathLike
from pathlib import Path
from typing import Any

from headtime._native import Results, merge_shards, run_shard

#: How often Dask runs a shard again whose worker was lost. A choice.
RETRIES = 5


def sweep(
    experiment: str | PathLike[str],
    client: Any = None,
    *,
    shards: int = 16,
    progress: Callable[[str, int, int | None], Any] | None = None,
) -> Results:
    """Runs an experiment file in shards, and merges them: the results of ``headtime experiment``, byte for byte.

    ``client`` is a ``dask.distributed.Client``, whose lost workers are replaced, or an ``Executor`` of
    ``concurrent.futures``; without one, the runs use all cores of this machine. The number of workers and of shards
    changes nothing. Files that the experiment names are relative to each worker's current directory.
    ``progress(part, done, total)`` is called when a shard has ended; Ctrl-C cancels those that are not done.
    """
    path = Path(experiment)
    name, text = str(path), path.read_text()
    if client is None:
        return merge_shards([run_shard(name, text, 1, 1, progress=progress)])
    words = [(name, text, number, shards) for number in range(1, shards + 1)]
    if isinstance(client, Executor):
        futures = [client.submit(run_shard, *word, threads=1) for word in words]
        completed = as_completed(futures)
    else:
        futures = [client.submit(run_shard, *word, threads=1, pure=False, retries=RETRIES) for word in words]
        completed = _completed_by_dask(futures)
    try:
        for done, _ in enumerate(completed, start=1):
            if progress is not None:
                progress("shards", done, shards)
        return merge_shards([future.result() for future in futures])
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _completed_by_dask(futures: list[Any]) -> Any:
    """Dask's futures in the order in which they end."""
    from distributed import as_completed as completed

    return completed(futures)
