"""A sweep has the same bytes whatever runs it."""

import os
import random
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import distributed
import pytest

import headtime

EXPERIMENT = """
name = "e"
summary = "s"
drive = "quantum-atlas-10k"
workload = "oltp"
requests = 200
repeat = 2
[sweep]
policy = ["fcfs", "sptf"]
tasks = [1, 4, 8]
[figure]
x = "tasks"
y = ["mean_ms"]
"""


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "e.toml"
    path.write_text(EXPERIMENT)
    return path


def test_workers_and_shards_change_nothing(experiment, headtime_prints, tmp_path):
    whole = headtime.sweep(experiment)
    assert whole.json() == headtime_prints("experiment", experiment, "--json", "--out", "theirs.parquet")
    whole.write(tmp_path / "ours.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()
    with ThreadPoolExecutor(2) as threads:
        assert headtime.sweep(experiment, threads, shards=5).json() == whole.json()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert headtime.sweep(experiment, processes, shards=16).json() == whole.json()


def test_shards_merge_in_any_order(experiment):
    name, text = str(experiment), experiment.read_text()
    shards = [headtime.run_shard(name, text, number, 16) for number in range(1, 17)]
    whole = headtime.merge_shards(shards).json()
    random.Random(1).shuffle(shards)
    assert headtime.merge_shards([*shards, shards[0]]).json() == whole
    with pytest.raises(ValueError, match="runs are missing"):
        headtime.merge_shards(shards[:5])
    with pytest.raises(ValueError, match="I/N"):
        headtime.run_shard(name, text, 17, 16)
    with pytest.raises(ValueError, match="e.toml"):
        headtime.run_shard(name, text + "colour = 3", 1, 1)


@pytest.fixture
def two_workers():
    """Two processes with a thread each. A nanny begins a worker again that is lost."""
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            yield client


def test_dask_changes_nothing(experiment, two_workers):
    told = []
    swept = headtime.sweep(experiment, two_workers, progress=lambda *words: told.append(words))
    assert swept.json() == headtime.sweep(experiment).json()
    assert told == [("shards", done, 16) for done in range(1, 17)]


def test_a_killed_worker_changes_nothing(experiment, two_workers):
    """A worker with shards to do is killed when the first shard of the sweep has ended."""
    killed = []

    def kill(part, done, total):
        if not killed:
            busy = two_workers.processing()
            pids = two_workers.run(os.getpid)
            worker = max(busy, key=lambda worker: len(busy[worker]))
            assert busy[worker]
            os.kill(pids[worker], signal.SIGKILL)
            killed.append(pids[worker])

    swept = headtime.sweep(experiment, two_workers, progress=kill)
    assert killed and swept.json() == headtime.sweep(experiment).json()
    assert killed[0] not in two_workers.run(os.getpid).values()
