# %% [markdown]
# # First plot
# Three policies on one drive: the distribution of response times, and where the head's time goes.

# %%
import headtime

runs = headtime.simulate("quantum-atlas-10k", workload="oltp", policy=["fcfs", "c-look", "sptf"], requests=2000)
runs

# %% [markdown]
# The same as a table. Times are milliseconds.

# %%
import polars

polars.DataFrame(runs).select("policy", "mean_ms", "p99_ms", "requests_per_second")
