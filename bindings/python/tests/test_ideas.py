"""Policies and replacements in Python: the same answers, clear errors, and an end."""

import os
import signal
import threading
from collections import OrderedDict

import pytest

import headtime


class Lru:
    def __init__(self, blocks):
        self.order = OrderedDict()

    def hit(self, block):
        self.order.move_to_end(block)

    def insert(self, block):
        self.order[block] = None

    def evict(self):
        return self.order.popitem(last=False)[0]


class Sstf:
    """The nearest cylinder; among equal ones the oldest."""

    def select(self, view):
        return min(view.requests, key=lambda request: (abs(request.cylinder - view.cylinder), request.number)).number


class Sptf:
    def select(self, view):
        return min(view.requests, key=lambda request: (request.seek_ns + request.rotation_ns, request.number)).number


def test_lru_in_python_misses_what_lru_misses(trace):
    curves = headtime.cache_curve(trace, replacement=["lru", Lru], size=["40KiB", "200KiB", "1MiB"])
    ratios = curves.table.column("miss_ratio")
    assert ratios[:3] == ratios[3:] and curves.table.column("replacement")[3] == "Lru"


@pytest.mark.parametrize("policy", [Sstf(), Sptf()])
def test_a_policy_in_python_is_the_one_in_rust(policy):
    load = dict(workload="oltp", requests=400)
    own = headtime.simulate("quantum-atlas-10k", policy=policy, **load)
    name = type(policy).__name__
    known = headtime.simulate("quantum-atlas-10k", policy=name.lower(), **load)
    measures = [column for column in own.table.column_names if column.endswith("_ms")]
    assert own.table.column("policy") == [name]
    for measure in measures:
        assert own.table.column(measure) == known.table.column(measure), measure


class Raises:
    def __init__(self, blocks=0):
        pass

    def select(self, view):
        raise KeyError("my bug")

    insert = hit = lambda self, block: None

    def evict(self):
        raise KeyError("my bug")


def test_an_exception_ends_the_run_with_its_traceback(trace):
    with pytest.raises(KeyError, match="my bug") as policy:
        headtime.simulate("quantum-atlas-10k", workload="oltp", policy=Raises())
    with pytest.raises(KeyError, match="my bug") as replacement:
        headtime.cache_curve(trace, replacement=Raises, size=["40KiB"])
    assert policy.traceback[-1].name == "select"
    assert replacement.traceback[-1].name == "evict"


class Absent(Lru):
    def evict(self):
        return 10**9

    def select(self, view):
        return 10**9


def test_what_is_not_there_is_an_error(trace):
    with pytest.raises(ValueError, match="Absent.select returned 1000000000, which is not pending"):
        headtime.simulate("quantum-atlas-10k", workload="oltp", policy=Absent(1))
    with pytest.raises(ValueError, match="Absent evicts block 1000000000, which is not in the cache"):
        headtime.cache_curve(trace, replacement=Absent, size=["40KiB"])
    with pytest.raises(ValueError, match="select"):
        headtime.simulate("quantum-atlas-10k", workload="oltp", policy=3)
    with pytest.raises(TypeError, match="evict"):
        headtime.cache_curve(trace, replacement=dict)


class Interrupted(Lru):
    """Sends the signal of Ctrl-C when it is first called, and never ends by itself."""

    def evict(self):
        os.kill(os.getpid(), signal.SIGINT)
        self.evict = super().evict
        return super().evict()


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT. A shell's background process ignores the signal, and then Python installs none."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_run(tmp_path, ctrl_c):
    long = tmp_path / "long.csv"
    with long.open("w") as file:
        file.writelines(f"{at},disk,R,{at * 4096},4096\n" for at in range(300_000))
    with pytest.raises(KeyboardInterrupt):
        headtime.cache_curve(long, replacement=Interrupted, size=["40KiB"])

    class Ends:
        def select(self, view):
            os.kill(os.getpid(), signal.SIGINT)
            return view.requests[0].number

    with pytest.raises(KeyboardInterrupt):
        headtime.simulate("quantum-atlas-10k", workload="oltp", policy=Ends(), requests=10_000_000)


def test_others_run_while_a_simulation_does():
    begun, ran = threading.Event(), threading.Event()

    class Waits:
        """Its first call ends when another thread has run, which it cannot if the simulation holds the GIL."""

        def select(self, view):
            begun.set()
            assert ran.wait(timeout=60)
            return view.requests[0].number

    def other():
        begun.wait(timeout=60)
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    headtime.simulate("quantum-atlas-10k", workload="oltp", policy=Waits(), requests=50)
    thread.join()


def test_bad_input_is_a_clear_error(trace, tmp_path):
    short = tmp_path / "short.csv"
    short.write_text("0.1,disk,R,4096\n")
    for act, problem in [
        (lambda: headtime.simulate("no-such-drive", workload="oltp"), "no drive is called"),
        (lambda: headtime.simulate("modern-20tb", workload="oltp", policy="sptff"), "did you mean"),
        (lambda: headtime.simulate("modern-20tb"), "expected --workload or --trace"),
        (lambda: headtime.Trace(short).table(), "short.csv:1"),
        (lambda: headtime.cache_curve(trace, size=[10]), "at least 4096"),
        (lambda: headtime.cache_curve(trace, replacement="lruu"), "lruu"),
    ]:
        with pytest.raises(ValueError, match=problem):
            act()
    headtime.Trace(trace).table().write(tmp_path / "trace.parquet")
    with pytest.raises(ValueError, match="a Parquet file"):
        headtime.Trace(tmp_path / "trace.parquet")
    with pytest.raises(TypeError, match="thinking"):
        headtime.simulate("modern-20tb", workload="oltp", thinking=3)
