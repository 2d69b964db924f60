"""Results are those of the command line, byte for byte, and Arrow tables."""

import json
import os
import subprocess
import sys

import polars
import pyarrow
import pyarrow.parquet
import pytest

import headtime

LOAD = dict(workload="oltp", requests=500, seed=7)
FLAGS = ["simulate", "--drive", "quantum-atlas-10k", "--workload", "oltp", "--requests", "500", "--seed", "7"]


def test_simulate_is_the_command_line(headtime_prints, tmp_path):
    runs = headtime.simulate("quantum-atlas-10k", policy=["fcfs", "sptf"], **LOAD)
    flags = [*FLAGS, "--policy", "fcfs,sptf"]
    assert runs.json() == headtime_prints(*flags, "--json", "--out", "theirs.parquet", "--svg", "theirs.svg")
    runs.write(tmp_path / "ours.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()
    assert runs.svg() == (tmp_path / "theirs.svg").read_text()


def test_requests_are_those_of_the_command_line(headtime_prints, tmp_path):
    runs = headtime.simulate(headtime.Drive("quantum-atlas-10k"), keep_requests=True, **LOAD)
    headtime_prints(*FLAGS, "--requests-out", "theirs.arrow")
    runs.requests.write(tmp_path / "ours.arrow")
    assert (tmp_path / "ours.arrow").read_bytes() == (tmp_path / "theirs.arrow").read_bytes()
    assert len(runs.requests) == 500


def test_cache_curve_is_the_command_line(headtime_prints, trace, tmp_path):
    curves = headtime.cache_curve(trace, replacement=["lru", "arc"], size=["40KiB", 409600])
    flags = ["cache", "--trace", trace, "--replacement", "lru,arc", "--size", "40KiB,400KiB"]
    assert curves.json() == headtime_prints(*flags, "--json", "--out", "theirs.parquet", "--svg", "theirs.svg")
    curves.write(tmp_path / "ours.parquet")
    assert (tmp_path / "ours.parquet").read_bytes() == (tmp_path / "theirs.parquet").read_bytes()
    assert curves.svg() == (tmp_path / "theirs.svg").read_text() == curves._repr_svg_()


def test_caches_above_a_drive_are_the_command_line(headtime_prints, trace):
    caches = ["40 KiB,arc,linux-6", "1 MiB,lru,ra(p=8),pfc"]
    run = headtime.simulate(headtime.System(caches=caches), trace=headtime.Trace(trace))
    flags = ["simulate", "--trace", trace, "--cache", caches[0], "--cache", caches[1], "--json"]
    assert run.json() == headtime_prints(*flags)
    assert run.table.name == "levels" and len(run.table) == 2


def test_tables_are_taken_without_a_copy(trace):
    curves = headtime.cache_curve(trace, replacement="lru", size=["40KiB", "400KiB"])
    arrow = pyarrow.table(curves)
    assert arrow.schema.metadata == {b"headtime.table": b"miss_ratios 1"}
    assert b"description" in arrow.schema.field("miss_ratio").metadata
    names = ("miss_ratio", "blocks")
    first = [arrow[name].chunks[0].buffers()[1].address for name in names]
    again = pyarrow.table(curves)
    assert first == [again[name].chunks[0].buffers()[1].address for name in names]
    frame = polars.DataFrame(curves)
    assert frame["miss_ratio"].to_list() == curves.table.column("miss_ratio") == arrow["miss_ratio"].to_pylist()
    assert json.loads(curves.json())[0]["miss_ratio"] == frame["miss_ratio"][0]


def test_a_table_outlives_its_results(trace):
    arrow = pyarrow.table(headtime.Trace(trace).table())
    assert arrow.num_rows == 3000 and arrow["length"].to_pylist()[-1] == 4096


@pytest.mark.skipif("HEADTIME_SHARED" not in os.environ, reason="no shared data")
def test_validate_is_the_command_line(headtime_prints):
    judged = headtime.validate("hp-c2247a")
    assert judged.json() == headtime_prints("validate", "--drive", "hp-c2247a", "--json")
    assert judged.table.column("part") == ["all", "second half"]


def test_the_first_plot_takes_few_lines(trace, tmp_path):
    lines = [
        "import headtime",
        f"curves = headtime.cache_curve({str(trace)!r}, replacement=['lru', 'arc'])",
        "curves.write('first.svg')",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=tmp_path, check=True)
    assert (tmp_path / "first.svg").read_text().rstrip().endswith("</svg>")


def test_a_drive_says_what_it_is():
    drive = headtime.Drive("quantum-atlas-10k")
    assert drive.name in headtime.Drive.names()
    assert drive.capacity_bytes == drive.blocks * drive.block_bytes
    assert 9_900 < drive.rpm < 10_100
    cylinder, head, sector = drive.locate(0)
    assert min(cylinder, head, sector) >= 0
    with pytest.raises(IndexError, match="expected 0 to"):
        drive.locate(drive.blocks)
