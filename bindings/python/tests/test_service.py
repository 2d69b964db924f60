"""Streams and tasks of a running service."""

import mmap
import subprocess
import tempfile

import pytest

import headtime
from conftest import COMMAND

CONFIG = """
[[drive]]
name = "d"
back_end = { kind = "emulated", drive = "dec-rz26", image = "disk.img", time_scale = 0.01 }
volume = [{ name = "v" }]
export = [{ name = "e", volume = "v" }]
streams = { latency_ms = 0.2 }
[[nbd]]
unix = "nbd.sock"
[control]
socket = "control.sock"
"""

MIB = 1 << 20


@pytest.fixture
def socket(tmp_path):
    (tmp_path / "c.toml").write_text(CONFIG)
    service = subprocess.Popen([COMMAND, "serve", "c.toml"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    for line in service.stdout:
        if "control socket" in line:
            break
    yield tmp_path / "control.sock"
    service.kill()
    service.communicate()


def test_a_stream_is_granted_serves_and_ends(socket):
    with headtime.Client(socket) as client:
        with client.attach_pieces("e", [(0, MIB, 8 * MIB)], 1_000_000, 65_536, name="film") as stream:
            assert stream.memory >= 65_536 and stream.batch > 0
            assert stream.wait_event(60) == "serving"
            stream.position(65_536)
            listed = client.streams()
            assert [(one["stream"], one["name"]) for one in listed] == [(stream.number, "film")]
        with pytest.raises(ValueError, match="closed"):
            stream.position(0)
    with pytest.raises(ValueError, match="closed"):
        client.streams()


def test_a_refusal_has_what_would_be_granted(socket):
    with headtime.Client(socket) as client:
        pieces = [(0, 0, 8 * MIB)]
        rate = 150_000_000
        # The belief is refined in service: it may move a time by millionths between the offer and the request.
        for _ in range(5):
            try:
                client.attach_pieces("e", pieces, rate, 65_536, memory=2 * MIB).close()
                break
            except headtime.Refused as refused:
                assert "would be granted now" in str(refused)
                assert refused.largest_rate < rate
                rate = refused.largest_rate
        else:
            pytest.fail(f"{rate} was offered, and refused")
        assert 100_000_000 < rate < 150_000_000, "the first rate is above what the disk does"
        with pytest.raises(headtime.Refused, match="no export f"):
            client.attach_pieces("f", pieces, 1, 1)
        with pytest.raises(ValueError, match="record-sync"):
            client.attach_pieces("e", pieces, 1, 1, mode="rekord")
        with pytest.raises(OSError):
            client.attach("/proc/self/status", 1000, 1000)


def test_a_task_reads_a_set(socket):
    with headtime.Client(socket) as client:
        task = client.begin_task("v", [(0, MIB), (4 * MIB, MIB)], priority=1)
        while (found := next(one for one in client.tasks() if one["id"] == task))["state"] == "active":
            pass
        assert (found["state"], found["failed_bytes"]) == ("finished", 0)
        assert found["done_bytes"] >= 2 * MIB
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as buffer:
            task = client.begin_task("v", [(4 * MIB, MIB), (0, MIB)], into=buffer.name)
            while (found := next(one for one in client.tasks() if one["id"] == task))["outcome"] is None:
                assert found["problem"] is None
            with mmap.mmap(buffer.fileno(), 0, access=mmap.ACCESS_READ) as pieces:
                assert len(pieces) == 2 * MIB + 2 * MIB // 512 // 8
                assert pieces[2 * MIB :] == b"\xff" * (2 * MIB // 512 // 8)
        with pytest.raises(ValueError, match="expected one of them"):
            client.begin_task("v", [(0, MIB)], command=["cat"], into="/dev/shm/b")
        with pytest.raises(headtime.Refused, match="at its own pace"):
            client.begin_task("v", [(0, 4 * MIB)], deadline_s=3, pace_bytes_s=MIB)
        with pytest.raises(headtime.Refused):
            client.steer_task(task, "resume")
        with pytest.raises(ValueError, match="hasten"):
            client.steer_task(task, "hurry")


def test_no_service_is_an_error(tmp_path):
    with pytest.raises(OSError, match="expected the control socket"):
        headtime.Client(tmp_path / "none.sock")
