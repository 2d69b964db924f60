"""A sweep has the same bytes whatever runs it."""

import random
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

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


class LosesWorkers:
    """A client with Dask's interface, whose workers die now and then: what Dask does about it, without Dask."""

    def __init__(self):
        self.dice = random.Random(7)
        self.lost = 0

    def submit(self, run, *words, pure, retries, **more):
        for _ in range(retries):
            if self.dice.random() < 0.5:
                self.lost += 1
                continue
            return run(*words, **more)
        return run(*words, **more)

    def gather(self, futures):
        return list(futures)


def test_lost_workers_change_nothing(experiment):
    client = LosesWorkers()
    assert headtime.sweep(experiment, client).json() == headtime.sweep(experiment).json()
    assert client.lost > 3


def test_dask_changes_nothing(experiment):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert headtime.sweep(experiment, client).json() == headtime.sweep(experiment).json()
