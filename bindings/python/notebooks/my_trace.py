# %% [markdown]
# # My trace
# `mine.csv` is a trace in any format of `headtime trace`. How much memory is worth what?

# %%
import headtime

trace = headtime.Trace("mine.csv")
curves = headtime.cache_curve(trace, replacement=["lru", "arc", "s3-fifo", "sieve"])
curves

# %% [markdown]
# The smallest cache with which each policy misses at most half of the demands.

# %%
import polars

(
    polars.DataFrame(curves)
    .filter(polars.col("miss_ratio") <= 0.5)
    .group_by("replacement")
    .agg(polars.col("bytes").min())
    .sort("bytes")
)

# %% [markdown]
# The trace on a drive of today, one request after the other.

# %%
headtime.simulate("modern-20tb", trace=trace, closed=1, fit="wrap").table.column("mean_ms")
