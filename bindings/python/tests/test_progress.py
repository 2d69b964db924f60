"""Progress is told while a call runs, and an exception of the callable ends the call."""

import subprocess
import sys

import pytest

import headtime


class Heard(list):
    def __call__(self, part, done, total):
        self.append((part, done, total))


def test_calls_tell_their_progress(trace, tmp_path):
    heard = Heard()
    headtime.simulate("quantum-atlas-10k", workload="oltp", requests=30_000, progress=heard)
    parts, done, totals = zip(*heard)
    assert set(parts) <= {"simulated"} and set(totals) <= {30_000}
    assert list(done) == sorted(done) and done[-1] <= 30_000


def test_an_exception_of_the_callable_ends_the_call():
    def full(part, done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        headtime.simulate("quantum-atlas-10k", workload="oltp", requests=100_000_000, progress=full)
    with pytest.raises(RuntimeError, match="enough"):
        headtime.profile("quantum-atlas-10k", budget_s=600_000, progress=full)


def test_a_line_shows_it(capsys):
    headtime.show_progress("simulated", 1500, 3000)
    headtime.show_progress("simulated", 1500, None)
    assert capsys.readouterr().err == "\r\033[Ksimulated: 1,500 of 3,000, 50%\r\033[Ksimulated: 1,500"


#: mypy's comparison of stubs with a module. Freeing its trees takes longer than the comparison: it ends without that.
STUBTEST = """
import os, sys
from mypy.stubtest import main
status = main()
sys.stdout.flush()
os._exit(status)
"""


def test_stubs_are_those_of_the_package(tmp_path):
    words = [sys.executable, "-c", STUBTEST, "headtime", "--ignore-missing-stub"]
    checked = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
