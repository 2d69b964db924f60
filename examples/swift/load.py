#!/usr/bin/env python3
"""A load of an object store in the manner of COSBench: reads, writes and deletes by shares, sizes by a histogram.

Operations arrive at random moments at a fixed rate (a Poisson process), whether or not earlier ones have ended. The
time of an operation counts from its arrival, so that waiting for a free worker is part of it. The same seed gives the
same operations. Reads take objects 1 to N, which are never deleted; writes and deletes take another W.
"""

import argparse
import hashlib
import http.client
import json
import random
import threading
import time

# The container of all objects.
CONTAINER = "load"

# The example of COSBench's user guide 2.8.6 for a histogram of sizes: smallest and largest KB, weight.
SIZES = "1|64|10,64|512|20,512|2048|30"

# Shares of the operations: COSBench's mix for a store that is mostly read.
MIX = (("read", 80), ("write", 15), ("delete", 5))

# Of the objects that are written, this share exists in the long run, with three writes to a delete.
WRITTEN_EXIST = 0.75

# Bytes of bodies are a slice of this, which is random, so that nothing compresses.
BODY = random.Random(0).randbytes(4 << 20)


class Client:
    """One connection to a store with tempauth."""

    def __init__(self, host, port, user, key):
        self.connection = http.client.HTTPConnection(host, port, timeout=60)
        answer, _ = self.ask("GET", "/auth/v1.0", headers={"X-Auth-User": user, "X-Auth-Key": key})
        self.token = answer.getheader("X-Auth-Token")
        if not self.token:
            raise SystemExit(f"{host}:{port}/auth/v1.0: {answer.status}: expected a token for {user}")
        self.path = "/" + answer.getheader("X-Storage-Url").split("/", 3)[3]

    def ask(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        answer = self.connection.getresponse()
        return answer, answer.read()

    def object(self, method, number, body=None):
        path = f"{self.path}/{CONTAINER}/{number}"
        try:
            answer, read = self.ask(method, path, body, {"X-Auth-Token": self.token})
        except (OSError, http.client.HTTPException):
            self.connection.close()
            return 0, 0
        return answer.status, len(read)

    def make_container(self):
        self.ask("PUT", f"{self.path}/{CONTAINER}", headers={"X-Auth-Token": self.token})


class Sizes:
    """A histogram of sizes."""

    def __init__(self, text):
        self.parts = [tuple(map(int, part.split("|"))) for part in text.split(",")]

    def draw(self, dice):
        low, high, _ = dice.choices(self.parts, [weight for _, _, weight in self.parts])[0]
        return dice.randint(low << 10, high << 10)

    def mean(self):
        return sum((low + high) / 2 * 1024 * weight for low, high, weight in self.parts) / sum(
            weight for _, _, weight in self.parts
        )


def body(size, seed):
    begin = int.from_bytes(hashlib.blake2b(str(seed).encode()).digest()[:4], "big") % (len(BODY) - size)
    return memoryview(BODY)[begin : begin + size]


def schedule(arguments):
    """The operations: moment, kind, object, size."""
    dice = random.Random(arguments.seed)
    sizes, at, operations = Sizes(arguments.sizes), 0.0, []
    kinds, shares = zip(*MIX)
    while True:
        at += dice.expovariate(arguments.rate)
        if at >= arguments.warm_up + arguments.seconds:
            return operations
        kind = dice.choices(kinds, shares)[0]
        first, count = (1, arguments.objects) if kind == "read" else (arguments.objects + 1, arguments.written)
        operations.append((at, kind, first + dice.randrange(count), sizes.draw(dice)))


def perform(client, kind, number, size, seed):
    """Returns whether the operation succeeded, and the bytes that it moved."""
    if kind == "read":
        status, read = client.object("GET", number)
        return status == 200, read
    if kind == "write":
        status, _ = client.object("PUT", number, body(size, seed))
        return status == 201, size
    # What is deleted may be deleted already.
    status, _ = client.object("DELETE", number)
    return status in (204, 404), 0


def in_parallel(workers, work):
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fill(arguments, told=lambda done: None):
    """Writes the objects that are read, and WRITTEN_EXIST of the others."""
    dice, sizes = random.Random(arguments.seed), Sizes(arguments.sizes)
    last = arguments.objects + int(arguments.written * WRITTEN_EXIST)
    waiting = iter([(number, sizes.draw(dice)) for number in range(1, last + 1)])
    lock, failed = threading.Lock(), []

    def work():
        client = arguments.client()
        client.make_container()
        while True:
            with lock:
                number, size = next(waiting, (None, None))
            if number is None:
                return
            # A store that has just begun may refuse once.
            tried = any(perform(client, "write", number, size, number)[0] for _ in range(3))
            if not tried:
                failed.append(number)
            told(number)

    in_parallel(arguments.workers, work)
    if failed:
        raise SystemExit(f"{len(failed)} of {last} objects could not be written")


def measure(arguments, begun=lambda: None):
    """Runs the operations; returns the figures of those that arrived after the warm-up."""
    waiting = iter(enumerate(schedule(arguments)))
    lock, done = threading.Lock(), []
    clients = [arguments.client() for _ in range(arguments.workers)]
    begin = time.monotonic()
    timer = threading.Timer(arguments.warm_up, begun)
    timer.start()

    def work():
        with lock:
            client = clients.pop()
        while True:
            with lock:
                seed, operation = next(waiting, (None, None))
            if operation is None:
                return
            at, kind, number, size = operation
            time.sleep(max(0.0, begin + at - time.monotonic()))
            right, moved = perform(client, kind, number, size, seed)
            done.append((at, kind, time.monotonic() - begin - at, moved, right))

    in_parallel(arguments.workers, work)
    timer.join()
    counted = [each for each in done if each[0] >= arguments.warm_up]
    return {
        **figures(counted),
        **{kind: figures([each for each in counted if each[1] == kind]) for kind, _ in MIX},
        "moved_mb_s": sum(each[3] for each in counted) / arguments.seconds / 1e6,
    }


def figures(done):
    """Operations, failures and latencies in milliseconds."""
    times = sorted(each[2] * 1000 for each in done)
    return {
        "operations": len(done),
        "failed": sum(not each[4] for each in done),
        "mean_ms": sum(times) / len(times) if times else None,
        **{f"p{str(part).replace('.', '')}_ms": quantile(times, part) for part in (50, 99, 99.9)},
    }


def quantile(times, percent):
    """The smallest time that at least this share does not exceed."""
    if not times:
        return None
    return times[max(0, -int(-len(times) * percent // 100) - 1)]


def add_flags(parser):
    """The flags of the load."""
    parser.add_argument("--objects", type=int, default=1200, help="objects that are read [%(default)s]")
    parser.add_argument("--written", type=int, default=400, help="objects that are written and deleted [%(default)s]")
    parser.add_argument("--sizes", default=SIZES, help="KB, KB and weight of each range [%(default)s]")
    parser.add_argument("--rate", type=float, default=12, help="operations a second [%(default)s]")
    parser.add_argument("--workers", type=int, default=32, help="operations at once [%(default)s]")
    parser.add_argument("--seconds", type=float, default=60, help="measured time [%(default)s]")
    parser.add_argument("--warm-up", type=float, default=10, help="seconds before it [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("fill", "measure"))
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--user", default="test:tester")
    parser.add_argument("--key", default="testing")
    add_flags(parser)
    arguments = parser.parse_args()
    arguments.client = lambda: Client(arguments.host, arguments.port, arguments.user, arguments.key)
    if arguments.what == "fill":
        fill(arguments)
    else:
        print(json.dumps(measure(arguments), indent=2))


if __name__ == "__main__":
    main()
