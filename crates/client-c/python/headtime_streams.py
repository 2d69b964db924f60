"""Guaranteed streams and background tasks of a running Headtime service.

    from headtime_streams import Client

    with Client() as client, open("/mnt/film.ts", "rb", buffering=0) as film:
        with client.attach(film, rate=1_000_000, buffer=128 * 1024) as stream:
            while chunk := film.read(64 * 1024):
                stream.position(film.tell())

While the playout point moves at the rate or slower, reads up to the buffer beyond it come from the
service's memory. The connection is the lease: when the process ends, however, so do its streams. Open
files with os.O_DIRECT: what the kernel has cached does not concern the service.

This file needs libheadtime.so beside it, in the loader's path, or where $HEADTIME_LIBRARY says.
"""

import ctypes
import os
from typing import NamedTuple, Optional, Sequence, Tuple

PLAY, RECORD, RECORD_SYNC = range(3)

KINDS = {
    1: "serving",
    2: "lapsed",
    3: "behind",
    4: "late",
    5: "write-failed",
    6: "unguaranteed",
    7: "aside",
    8: "ended",
}


STATES = {1: "active", 2: "suspended", 3: "finished", 4: "aborted"}

STEERS = {"suspend": 1, "resume": 2, "abort": 3, "promote": 4, "hasten": 5}


class Refused(Exception):
    """The service, or the library, says why not."""


class Event(NamedTuple):
    """What happened to a stream; `kind` is one of KINDS' words."""

    kind: str
    start: int
    end: int
    reason: str


class Task(NamedTuple):
    """The progress of a task, in bytes. `free`, `idle` and `paid` are what of `done` was read in gaps of
    the foreground, in idle time and in granted time."""

    state: str
    asked: int
    done: int
    free: int
    idle: int
    paid: int
    failed: int
    pieces_needed: int
    pieces_done: int
    seconds_left: Optional[float]
    outcome: str


class _Terms(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("mode", ctypes.c_int),
        ("rate", ctypes.c_uint64),
        ("buffer", ctypes.c_uint64),
        ("memory", ctypes.c_uint64),
        ("start", ctypes.c_uint64),
        ("export_name", ctypes.c_char_p),
    ]


class _Piece(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("offset", "start", "length")]


class _Event(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("start", ctypes.c_uint64), ("end", ctypes.c_uint64)]


class _Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Order(ctypes.Structure):
    _fields_ = [
        ("volume", ctypes.c_char_p),
        ("pieces", ctypes.POINTER(_Range)),
        ("count", ctypes.c_size_t),
        ("any", ctypes.c_uint64),
        ("deadline_seconds", ctypes.c_uint64),
        ("pace", ctypes.c_uint64),
        ("priority", ctypes.c_int),
        ("command", ctypes.POINTER(ctypes.c_char_p)),
        ("into", ctypes.c_char_p),
    ]


class _Task(ctypes.Structure):
    _fields_ = [
        ("state", ctypes.c_int),
        *((name, ctypes.c_uint64) for name in Task._fields[1:9]),
        ("seconds_left", ctypes.c_double),
    ]


class _Text(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Message:
    """Room for a message of the library's."""

    def __init__(self) -> None:
        self._bytes = ctypes.create_string_buffer(1024)
        self.text = _Text(ctypes.cast(self._bytes, ctypes.c_void_p), len(self._bytes))

    def __str__(self) -> str:
        return self._bytes.value.decode("utf-8", "replace")


def _load() -> ctypes.CDLL:
    named = os.environ.get("HEADTIME_LIBRARY")
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libheadtime.so")
    path = named or (beside if os.path.exists(beside) else "libheadtime.so")
    library = ctypes.CDLL(path)
    pointer, number = ctypes.c_void_p, ctypes.c_int
    for name, answer, arguments in [
        ("connect", pointer, [ctypes.c_char_p, _Text]),
        ("disconnect", None, [pointer]),
        ("attach_file", pointer, [pointer, number, pointer, _Text]),
        (
            "attach_pieces",
            pointer,
            [pointer, pointer, ctypes.c_size_t, ctypes.c_uint64, pointer, _Text],
        ),
        ("attach_file_with_priority", pointer, [pointer, number, pointer, number, _Text]),
        (
            "attach_pieces_with_priority",
            pointer,
            [pointer, pointer, ctypes.c_size_t, ctypes.c_uint64, pointer, number, _Text],
        ),
        ("position", number, [pointer, ctypes.c_uint64]),
        ("refresh", number, [pointer, number, _Text]),
        ("next_event", number, [pointer, ctypes.c_uint32, pointer, _Text]),
        ("close", None, [pointer]),
        ("begin_task", ctypes.c_uint64, [pointer, pointer, _Text]),
        ("task", number, [pointer, ctypes.c_uint64, pointer, _Text]),
        ("steer_task", number, [pointer, ctypes.c_uint64, number, number, _Text]),
    ]:
        function = getattr(library, "headtime_" + name)
        function.restype = answer
        function.argtypes = arguments
    return library


class Client:
    """A connection to the service's control socket."""

    def __init__(self, socket: Optional[str] = None) -> None:
        self._library = _load()
        problem = _Message()
        path = None if socket is None else os.fsencode(socket)
        self._client = self._library.headtime_connect(path, problem.text)
        if not self._client:
            raise Refused(str(problem))

    def attach(
        self,
        file,
        rate: int,
        buffer: int,
        *,
        mode: int = PLAY,
        name: str = "",
        memory: int = 0,
        start: int = 0,
        export: Optional[str] = None,
        priority: Optional[int] = None,
    ) -> "Stream":
        """A stream on an open file: an object with fileno(), or a descriptor.

        With a priority, from 0, the highest, to 6, its buffer fills at it, and what anybody reads and
        writes of the file is served at it.
        """
        terms = self._terms(name, mode, rate, buffer, memory, start, export)
        return self._ask(
            "attach_file", (_descriptor(file), ctypes.byref(terms)), priority
        )

    def prefer(
        self, file, priority: int, *, name: str = "", export: Optional[str] = None
    ) -> "Stream":
        """A priority, from 0, the highest, to 6, for all that anybody reads and writes of an open file,
        until the stream is closed, and no guarantee."""
        return self.attach(file, 0, 0, name=name, export=export, priority=priority)

    def attach_pieces(
        self,
        export: str,
        pieces: Sequence[Tuple[int, int, int]],
        length: int,
        rate: int,
        buffer: int,
        *,
        mode: int = PLAY,
        name: str = "",
        memory: int = 0,
        start: int = 0,
        priority: Optional[int] = None,
    ) -> "Stream":
        """A stream on (offset in the file, start on the volume, length) of an export, in bytes; the
        priority is as in attach, and with a rate and a buffer of 0 it is all."""
        terms = self._terms(name, mode, rate, buffer, memory, start, export)
        given = (_Piece * len(pieces))(*(_Piece(*piece) for piece in pieces))
        return self._ask(
            "attach_pieces", (given, len(pieces), length, ctypes.byref(terms)), priority
        )

    def begin_task(
        self,
        volume: str,
        pieces: Sequence[Tuple[int, int]],
        *,
        any: int = 0,
        deadline: int = 0,
        pace: int = 0,
        priority: int = 0,
        command: Sequence[str] = (),
        into: Optional[str] = None,
    ) -> int:
        """The number of a task that reads (start, length) of a volume in gaps and idle time, in any order.

        `deadline` is in seconds from now, `pace` the most bytes a second that the task takes; 0 is none.

        The service gives the bytes to the command, or writes them `into` a file (whose layout is in headtime.h),
        or takes their checksum. The task does not end with the connection.
        """
        given = (_Range * len(pieces))(*(_Range(*piece) for piece in pieces))
        words = [word.encode() for word in command]
        named = (ctypes.c_char_p * (len(words) + 1))(*words, None) if words else None
        order = _Order(
            volume.encode(),
            given,
            len(pieces),
            any,
            deadline,
            pace,
            priority,
            named,
            into.encode() if into else None,
        )
        problem = _Message()
        task = self._library.headtime_begin_task(
            self._client, ctypes.byref(order), problem.text
        )
        if not task:
            raise Refused(str(problem))
        return task

    def task(self, number: int) -> Optional[Task]:
        """The progress of a task."""
        task, outcome = _Task(), _Message()
        found = self._library.headtime_task(
            self._client, number, ctypes.byref(task), outcome.text
        )
        if found < 0:
            raise Refused("the service has gone")
        if not found:
            return None
        counts = (getattr(task, name) for name in Task._fields[1:9])
        left = task.seconds_left if task.seconds_left >= 0 else None
        return Task(STATES.get(task.state, str(task.state)), *counts, left, str(outcome))

    def steer_task(self, number: int, steer: str, priority: int = 0) -> None:
        """Suspends, resumes, aborts, promotes or hastens a task: a word of STEERS."""
        problem = _Message()
        if self._library.headtime_steer_task(
            self._client, number, STEERS[steer], priority, problem.text
        ):
            raise Refused(str(problem))

    def close(self) -> None:
        """Ends the connection, and with it streams that are left."""
        if self._client:
            self._library.headtime_disconnect(self._client)
            self._client = None

    def _terms(self, name, mode, rate, buffer, memory, start, export) -> _Terms:
        encoded = None if export is None else export.encode()
        return _Terms(name.encode(), mode, rate, buffer, memory, start, encoded)

    def _ask(self, function: str, what: tuple, priority: Optional[int]) -> "Stream":
        if priority is not None:
            function, what = function + "_with_priority", (*what, priority)
        problem = _Message()
        asked = getattr(self._library, "headtime_" + function)
        stream = asked(self._client, *what, problem.text)
        if not stream:
            raise Refused(str(problem))
        return Stream(self._library, stream)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Stream:
    """A stream that was granted. It ends when it is closed."""

    def __init__(self, library: ctypes.CDLL, stream: int) -> None:
        self._library = library
        self._stream = stream

    def position(self, offset: int) -> None:
        """The playout point is there now. This waits for nobody."""
        if self._library.headtime_position(self._stream, offset) != 0:
            raise Refused("the service has gone")

    def refresh(self, file) -> bool:
        """The file may have grown or moved; whether it has."""
        problem = _Message()
        changed = self._library.headtime_refresh(self._stream, _descriptor(file), problem.text)
        if changed < 0:
            raise Refused(str(problem))
        return changed == 1

    def next_event(self, timeout: float = 0.0) -> Optional[Event]:
        """What happened next, waited for up to so many seconds."""
        event, reason = _Event(), _Message()
        milliseconds = min(int(timeout * 1000), 2**32 - 1)
        found = self._library.headtime_next_event(
            self._stream, milliseconds, ctypes.byref(event), reason.text
        )
        if not found:
            return None
        kind = KINDS.get(event.kind, str(event.kind))
        return Event(kind, event.start, event.end, str(reason))

    def close(self) -> None:
        """Ends it; what it recorded is still written."""
        if self._stream:
            self._library.headtime_close(self._stream)
            self._stream = None

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _descriptor(file) -> int:
    return file if isinstance(file, int) else file.fileno()
