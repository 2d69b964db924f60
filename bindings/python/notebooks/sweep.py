# %% [markdown]
# # A sweep
# Simulations release the GIL, so that threads run on all cores. The results do not depend on their number.

# %%
from concurrent.futures import ThreadPoolExecutor

import headtime
import polars

points = [(policy, tasks) for policy in ["sstf", "sptf"] for tasks in [1, 4, 16]]


def run(point):
    policy, tasks = point
    return headtime.simulate("quantum-atlas-10k", workload="uniform-4k", policy=policy, tasks=tasks, requests=2000)


with ThreadPoolExecutor() as threads:
    table = polars.concat([polars.DataFrame(runs) for runs in threads.map(run, points)])

# %%
table.select("policy", "load.tasks", "requests_per_second", "mean_ms")
