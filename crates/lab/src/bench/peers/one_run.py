# One run of libCacheSim (PyPI's libcachesim): a trace in oracleGeneral, a policy, a number of objects, and the binary
# logarithm of the size of its hash table, or "default". Prints the miss ratio and the CPU seconds from the opening of the trace.
import sys
import time

import libcachesim

trace, policy, objects, power = sys.argv[1:]
begin = time.process_time()
settings = libcachesim.ReaderInitParam(ignore_obj_size=True)
reader = libcachesim.TraceReader(trace, libcachesim.TraceType.ORACLE_GENERAL_TRACE, settings)
size = {} if power == "default" else {"hashpower": int(power)}
cache = getattr(libcachesim, policy)(int(objects), **size)
ratio, _ = cache.process_trace(reader)
print(repr(ratio), time.process_time() - begin)
