"""Profiles of simulated drives are those of the command line."""

import pytest

import headtime


def test_profile_is_the_command_line(headtime_prints, tmp_path):
    found = headtime.profile("hp-c2247a", budget_s=600, check=True)
    flags = ["profile", "--drive", "hp-c2247a", "--budget", "600s", "--check", "--json", "-o", "theirs.toml"]
    assert found.json == headtime_prints(*flags)
    assert found.toml == (tmp_path / "theirs.toml").read_text()
    found.write(tmp_path / "ours.toml")
    assert headtime.Drive(str(tmp_path / "ours.toml")).name == "hp-c2247a"
    assert found.drawings and all(drawing.startswith("<svg") for _, drawing in found.drawings)


def test_too_small_a_budget_has_a_reason():
    found = headtime.profile("hp-c2247a", budget_s=0.05)
    assert found.toml is None
    with pytest.raises(ValueError, match="too small"):
        found.write("none.toml")
    for words in [dict(budget_s=0), dict(seek_noise_us=-1)]:
        with pytest.raises(ValueError, match="expected"):
            headtime.profile("hp-c2247a", **words)
