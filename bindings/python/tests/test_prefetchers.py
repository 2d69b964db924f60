"""Prefetchers in Python: the same answers as those in Rust, and clear errors."""

import pytest

import headtime


@pytest.fixture
def runs_trace(tmp_path):
    """Sequential runs of reads between random ones."""
    path, state, at = tmp_path / "runs.csv", 1, 0
    with path.open("w") as file:
        for _ in range(300):
            state = state * 48271 % 0x7FFFFFFF
            for block in range(state % 4096, state % 4096 + state % 7):
                file.write(f"{at / 100},disk,R,{block * 4096},4096\n")
                at += 1
    return path


class ReadAhead:
    """RA(4) of Zhang et al., ICDCS 2008: the next four blocks after every request."""

    def __init__(self, blocks):
        self.arrivals = 0

    def request(self, seen):
        return [(seen.first + seen.blocks, 4)]

    def arrived(self, first, blocks):
        self.arrivals += 1


class OneBlockOnMiss:
    def __init__(self, blocks):
        pass

    def request(self, seen):
        return None if seen.is_hit else [(seen.first + seen.blocks, 1)]


@pytest.mark.parametrize("own, known", [(ReadAhead, "ra(p=4)"), (OneBlockOnMiss, "obl(when=on-miss)")])
def test_a_prefetcher_in_python_is_the_one_in_rust(runs_trace, own, known):
    curves = headtime.cache_curve(runs_trace, replacement="lru", size=["100KiB", "1MiB"], prefetch=[known, own])
    rows = curves.table.to_dict()
    measures = [name for name in rows if name not in ("prefetcher",)]
    of = {name: [n for n, prefetcher in enumerate(rows["prefetcher"]) if prefetcher == name] for name in (known, own.__name__)}
    assert len(of[known]) == len(of[own.__name__]) == 2
    for measure in measures:
        assert [rows[measure][n] for n in of[known]] == [rows[measure][n] for n in of[own.__name__]], measure


class Raises:
    def __init__(self, blocks):
        pass

    def request(self, seen):
        raise KeyError("my bug")


class Word(Raises):
    def request(self, seen):
        return "next"


def test_errors_name_the_prefetcher(runs_trace):
    def run(own):
        headtime.cache_curve(runs_trace, replacement="lru", size=["100KiB"], prefetch=own)

    with pytest.raises(KeyError, match="my bug") as raised:
        run(Raises)
    assert raised.traceback[-1].name == "request"
    with pytest.raises(ValueError, match="Word.request returned next: expected a list of pairs"):
        run(Word)
    with pytest.raises(TypeError, match="no method request"):
        run(dict)
