# %% [markdown]
# # A policy in Python
# Shortest positioning time first, but a request that has waited for 50 ms goes first. A policy in Python is for trying: it
# is called for every command, with all pending requests.

# %%
import headtime


class PatientSptf:
    patience_ns = 50_000_000

    def select(self, view):
        oldest = view.requests[0]
        if view.now_ns - oldest.arrived_ns > self.patience_ns:
            return oldest.number
        return min(view.requests, key=lambda request: request.seek_ns + request.rotation_ns).number


load = dict(workload="random", tasks=16, requests=1500)
mine = headtime.simulate("quantum-atlas-10k", policy=PatientSptf(), **load)
known = headtime.simulate("quantum-atlas-10k", policy=["fcfs", "sptf"], **load)

# %%
import polars

both = polars.concat([polars.DataFrame(known), polars.DataFrame(mine)])
both.select("policy", "mean_ms", "p99_ms", "max_ms")
