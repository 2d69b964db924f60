"""What all tests need: the command line beside which the package runs, and a trace."""

import os
import subprocess
from pathlib import Path

import pytest

COMMAND = os.environ.get("HEADTIME", "headtime")


@pytest.fixture
def headtime_prints(tmp_path):
    """Runs the command line in a folder of its own and returns what it prints."""

    def run(*words):
        done = subprocess.run([COMMAND, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    return run


@pytest.fixture
def trace(tmp_path) -> Path:
    """Reads of single blocks with a skew: a multiplicative generator (Lehmer), any would do."""
    path, state = tmp_path / "mine.csv", 1
    with path.open("w") as file:
        for at in range(3000):
            state = state * 48271 % 0x7FFFFFFF
            block = (state % 60) * (state % 9)
            file.write(f"{at / 100},disk,R,{block * 4096},4096\n")
    return path
