"""Time lines of `headtime simulate --trace-events`: a minute is small, and has its longest request."""

import csv
import io
import json
import shutil
import subprocess

import pytest

FLAGS = ["--drive", "quantum-atlas-10k", "--workload", "oltp", "--seconds", "60"]

#: The query of docs/reference/file-formats.md.
QUERY = """
select extract_arg(arg_set_id, 'args.request') as request, dur
from slice where category = 'request' order by dur desc limit 1
"""


@pytest.fixture
def minute(headtime_prints, tmp_path):
    """A run of 60 s: its time line, and its longest request."""
    outputs = ["--trace-events", "line.json", "--requests-out", "requests.jsonl", "--json"]
    headtime_prints("simulate", *FLAGS, *outputs)
    requests = [json.loads(line) for line in (tmp_path / "requests.jsonl").open()]
    return tmp_path / "line.json", max(requests, key=lambda request: request["response_ns"])


def test_a_minute_is_small_and_has_its_longest_request(minute):
    line, longest = minute
    assert line.stat().st_size < 50e6
    begun, lasted = {}, {}
    for event in json.loads(line.read_text())["traceEvents"]:
        if event.get("cat") == "request" and event["ph"] == "b":
            begun[event["id"]] = event["ts"]
        elif event.get("cat") == "request":
            lasted[event["id"]] = event["ts"] - begun.pop(event["id"])
    assert not begun
    request = max(lasted, key=lasted.get)
    assert request == longest["request"]
    assert lasted[request] == pytest.approx(longest["response_ns"] / 1e3, abs=2e-3)


def test_perfetto_finds_the_longest_request(minute, tmp_path):
    """The trace processor comes from perfetto.dev, which no registry of packages has: it is not installed here."""
    line, longest = minute
    processor = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if processor is None:
        pytest.skip("no trace_processor_shell: see perfetto.dev/docs/analysis/trace-processor")
    (tmp_path / "query.sql").write_text(QUERY)
    words = [processor, "-q", tmp_path / "query.sql", line]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (row,) = csv.DictReader(io.StringIO(printed))
    assert int(row["request"]) == longest["request"]
    assert int(row["dur"]) == pytest.approx(longest["response_ns"], abs=2)
