from os import PathLike
from typing import Any, Callable, Iterable, Literal, Protocol, Sequence, final

_Path = str | PathLike[str]
_Progress = Callable[[str, int, int | None], Any]

@final
class Table:
    """A table of results, for polars, pandas and pyarrow without a copy."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def descriptions(self) -> dict[str, str]:
        """The description of each column, with its unit."""

    def column(self, name: str) -> list[str | int | float | None]:
        """The cells of a column: a list of length ``num_rows``."""

    def to_dict(self) -> dict[str, list[str | int | float | None]]: ...
    def write(self, path: _Path) -> None:
        """Writes a file that ends in .parquet or .arrow."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class Results:
    """Results of ``simulate``, ``cache_curve`` or ``validate``."""

    @property
    def table(self) -> Table: ...
    @property
    def requests(self) -> Table | None: ...
    def json(self) -> str:
        """The JSON that the command line prints with ``--json``."""

    def svg(self) -> str | None:
        """The plot that the command line draws with ``--svg``."""

    def write(self, path: _Path) -> None:
        """Writes the table (.parquet, .arrow) or the plot (.svg)."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Drive:
    """A drive: the name of a shipped one, or the path of a profile."""

    def __new__(cls, name: str) -> Drive: ...
    @staticmethod
    def names() -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def blocks(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def capacity_bytes(self) -> int: ...
    @property
    def rpm(self) -> float: ...
    def locate(self, block: int) -> tuple[int, int, int]:
        """Cylinder, head and sector of a block."""

@final
class Trace:
    """A trace of block requests."""

    def __new__(cls, path: _Path, *, format: str | None = None, skip_bad: bool = False) -> Trace: ...
    @property
    def path(self) -> PathLike[str]: ...
    @property
    def format(self) -> str: ...
    def table(self) -> Table:
        """``at_ns`` since the begin, ``device``, ``direction``, ``offset`` and ``length`` in bytes."""

@final
class System:
    """A drive, the policy of its scheduler, and caches above it."""

    def __new__(
        cls,
        drive: Drive | str | None = None,
        *,
        policy: str | Sequence[str] | None = None,
        caches: Sequence[str] = ...,
        link: Literal["none", "lan"] = ...,
        depth: int | None = None,
    ) -> System: ...
    @property
    def drive(self) -> str: ...
    @property
    def policy(self) -> list[str]: ...
    @property
    def caches(self) -> list[str]: ...

@final
class Pending:
    """A pending request, as a policy in Python sees it."""

    @property
    def number(self) -> int: ...
    @property
    def is_read(self) -> bool: ...
    @property
    def lbn(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def arrived_ns(self) -> int: ...
    @property
    def cylinder(self) -> int: ...
    @property
    def seek_ns(self) -> int: ...
    @property
    def rotation_ns(self) -> int: ...

@final
class PolicyView:
    """The situation in which a policy in Python chooses. ``requests`` has the oldest first, at least one."""

    @property
    def now_ns(self) -> int: ...
    @property
    def cylinder(self) -> int: ...
    @property
    def requests(self) -> list[Pending]: ...

class _Policy(Protocol):
    def select(self, view: PolicyView) -> int: ...

class _Replacement(Protocol):
    def __init__(self, blocks: int) -> None: ...
    def hit(self, block: int) -> Any: ...
    def insert(self, block: int) -> Any: ...
    def evict(self) -> int: ...

@final
class SeenRequest:
    """A request as a prefetcher in Python sees it. Blocks have 4 KiB."""

    @property
    def first(self) -> int: ...
    @property
    def blocks(self) -> int: ...
    @property
    def file(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def is_hit(self) -> bool: ...

class _Prefetcher(Protocol):
    def __init__(self, blocks: int) -> None: ...
    def request(self, seen: SeenRequest) -> Iterable[tuple[int, int]] | None: ...

def simulate(
    system: System | Drive | str,
    *,
    policy: str | Sequence[str] | _Policy | None = None,
    requests: int | None = None,
    seconds: float | None = None,
    keep_requests: bool = False,
    progress: _Progress | None = None,
    workload: str | None = None,
    trace: Trace | _Path | None = None,
    format: str | None = None,
    seed: int | None = None,
    tasks: int | None = None,
    think_ms: float | None = None,
    size_kib: float | None = None,
    rate: float | None = None,
    read_fraction: float | None = None,
    device: str | None = None,
    closed: int | None = None,
    scale_time: float | None = None,
    fit: Literal["wrap", "scale"] | None = None,
    write_cache: bool | None = None,
    seek_noise_us: float | None = None,
) -> Results:
    """Runs a load or a trace on a system in virtual time; Ctrl-C ends it."""

def cache_curve(
    trace: Trace | _Path,
    *,
    replacement: str | type[_Replacement] | Sequence[str | type[_Replacement]] | None = None,
    size: Sequence[int | str] = ...,
    sample: float | None = None,
    prefetch: str | type[_Prefetcher] | Sequence[str | type[_Prefetcher]] | None = None,
    format: str | None = None,
    columns: str | None = None,
    skip_bad: bool = False,
    progress: _Progress | None = None,
) -> Results:
    """Miss ratios of a trace by size of the cache and replacement; Ctrl-C ends it."""

def run_shard(file: str, text: str, number: int, of: int, *, threads: int | None = None, progress: _Progress | None = None) -> str:
    """Runs shard ``number`` of ``of`` (from 1) of an experiment's text."""

def merge_shards(texts: Sequence[str]) -> Results:
    """Merges the texts of all shards, in any order."""

def validate(
    drive: Drive | str | None = None,
    *,
    trace: _Path | None = None,
    skip_bad: bool = False,
    published: bool = False,
) -> Results:
    """Compares drive models with service times of real drives."""

@final
class Profiled:
    """The findings of ``profile``."""

    @property
    def json(self) -> str:
        """A line for the drive, or for each of its actuators, as ``headtime profile --json`` prints it."""

    @property
    def toml(self) -> str | None:
        """The profile, the text of ``headtime profile -o``; None if too little was found."""

    @property
    def problem(self) -> str | None:
        """The reason that there is no profile."""

    @property
    def drawings(self) -> list[tuple[str, str]]:
        """Names and SVG of the drawings of ``--svg-dir``."""

    def write(self, path: _Path) -> None:
        """Writes the profile."""

def profile(
    drive: Drive | str,
    *,
    budget_s: float = 600.0,
    seek_noise_us: float = 60.0,
    electronics_noise_us: float = 20.0,
    host_jitter_us: float = 0.0,
    reads_only: bool = False,
    seed: int = 1,
    check: bool = False,
    progress: _Progress | None = None,
) -> Profiled:
    """Finds the profile of a simulated drive from timings alone; Ctrl-C ends it."""

class Refused(Exception):
    """The service refuses a stream or a task."""

    largest_rate: int | None
    least_memory: int | None

@final
class Client:
    """A client of a running service."""

    def __new__(cls, socket: _Path | None = None) -> Client: ...
    def attach(
        self,
        file: Any,
        rate: int,
        buffer: int,
        *,
        mode: str = "play",
        name: str = "python",
        memory: int | None = None,
        start: int = 0,
        export: str | None = None,
        priority: int | None = None,
    ) -> Stream:
        """A stream on a file: an object with ``fileno``, or a path."""

    def attach_pieces(
        self,
        export: str,
        pieces: Sequence[tuple[int, int, int]],
        rate: int,
        buffer: int,
        *,
        mode: str = "play",
        name: str = "python",
        memory: int | None = None,
        start: int = 0,
        priority: int | None = None,
    ) -> Stream:
        """A stream on bytes of an export: offset in the file, offset in the volume, length."""

    def streams(self) -> list[dict[str, Any]]: ...
    def begin_task(
        self,
        volume: str,
        pieces: Sequence[tuple[int, int]],
        *,
        any: int | None = None,
        priority: int = 0,
        deadline_s: int | None = None,
        pace_bytes_s: int | None = None,
        command: Sequence[str] | None = None,
        into: _Path | None = None,
    ) -> int:
        """Begins to read pieces of a volume (first byte and length) in gaps and idle time, at most at a pace."""

    def tasks(self) -> list[dict[str, Any]]: ...
    def steer_task(self, task: int, action: str, *, priority: int = 0) -> None:
        """Changes a task: "suspend", "resume", "abort", "hasten" or "promote"."""

    def close(self) -> None: ...
    def __enter__(self) -> Client: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class Stream:
    """A granted stream."""

    @property
    def number(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def batch(self) -> int: ...
    def position(self, offset: int) -> None: ...
    def wait_event(self, timeout_s: float = 0.0) -> str | dict[str, Any] | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *_exception: object) -> None: ...
