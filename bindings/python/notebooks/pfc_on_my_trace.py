# %% [markdown]
# # PFC on my trace
# Two caches with prefetchers above a drive, with and without the coordinator of Zhang et al. (ICDCS 2008).

# %%
import headtime
import polars


def run(coordinator):
    caches = ["256 KiB,lru,ra(p=4)", f"512 KiB,lru,linux-6,{coordinator}"]
    system = headtime.System("modern-20tb", caches=caches, link="lan")
    return polars.DataFrame(headtime.simulate(system, trace="mine.csv", closed=1))


polars.concat([run("none"), run("pfc")]).select("cache", "hit_ratio", "prefetched", "unused", "mean_ms")
