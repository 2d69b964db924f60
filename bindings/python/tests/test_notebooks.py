"""Every notebook runs from its beginning to its end."""

import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import headtime

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.py"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, trace, monkeypatch):
    monkeypatch.chdir(trace.parent)
    runpy.run_path(str(notebook))


def test_threads_change_nothing():
    def run(seed):
        return headtime.simulate("quantum-atlas-10k", workload="oltp", requests=300, seed=seed).json()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, range(6))) == [run(seed) for seed in range(6)]
