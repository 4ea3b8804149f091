# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # The same nodes on four topologies
#
# The same 100 users and 100 routers, with the same ratings, learn on four underlays of 64 places: a ring, a grid, a
# scale-free graph and a star. Every link takes 10 to 50 ms one way, so they differ only in how many links lie between
# two places. **How much does the topology matter to what the network learns, and when?**

# %%
import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd

from algorithms.learning import Learning, Schedule
from algorithms.synthetic import low_rank
from netsim import Underlay, World, barabasi_albert, grid, plots, ring, rmse, simulate, star

SEED = 1
data = low_rank(100, 100, rank=4, missing=0.5, seed=SEED)
learning = Learning(rank=4, lam=0.02, rate=0.03, schedule=Schedule("inverse", 10))

# %% [markdown]
# A draw of chance depends on the seed and on the names of those it is for, and on nothing else. So the worlds share
# all chance that they can: initial profiles, phases of the timers and, as the places have the same names everywhere,
# who sits where. (`grid` calls its places (row, column); here they are numbered, to have the names of the others.)

# %%
links = {"latency": (0.010, 0.050), "seed": SEED}
topologies = {
    "ring": ring(64, **links),
    "grid": nx.convert_node_labels_to_integers(grid(8, 8, **links)),
    "scale-free": barabasi_albert(64, 2, **links),
    "star": star(64, **links),
}
worlds = {name: World(data.train, graph, learning=learning) for name, graph in topologies.items()}

# %% [markdown]
# ## Who is far from whom
#
# Users are circles, routers squares. The colour is the mean latency of the paths to a node's contacts: for a user the
# routers of the items he rated, for a router those who rated its item. **Each figure has a scale of its own:** the best
# placed node of the ring is farther from its contacts than the worst placed one of any other graph. On the grid the
# middle is best and the corners are worst; in the scale-free graph it is good to be at a hub; on the star, beside those
# in the centre, only a node's own link counts.

# %%
figure, axes = plt.subplots(2, 2, figsize=(11, 10), layout="constrained")
for ax, (name, world) in zip(axes.flat, worlds.items(), strict=True):
    plots.topology(world, seed=SEED, color="latency", ax=ax)
    ax.set_title(name)

# %% [markdown]
# The latencies between all pairs of places, as cumulative distributions. A path on the ring takes half a second at the
# median, on the star 60 ms.

# %%
figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for name, graph in topologies.items():
    latency = Underlay.from_graph(graph).path_latency()
    ax.ecdf(latency[latency > 0] * 1e3, label=name)
ax.set_xlabel("Path latency between two places (ms)")
ax.set_ylabel("Share of pairs of places")
ax.legend(frameon=False)
ax.grid(alpha=0.3)

# %% [markdown]
# ## Does it matter?
#
# Each node broadcasts its profile once in a period. Each world runs for 60 periods of 10 s, of 1 s and of 0.1 s. The
# number of messages sent is the same in all; only the ratio of latency to period differs.

# %%
PERIODS = (10.0, 1.0, 0.1)
results = {
    (period, name): simulate(
        world.replace(user_broadcast=period, router_broadcast=period),
        until=60 * period,
        every=period / 5,
        seed=SEED,
        probes=[rmse(data.test)],
    )
    for period in PERIODS
    for name, world in worlds.items()
}

# %%
figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained", sharey=True)
for ax, period in zip(axes, PERIODS, strict=True):
    plots.convergence({name: results[period, name] for name in worlds}, log=True, ax=ax)
    ax.set_title(f"a broadcast every {period:g} s")
    ax.set_ylim(0.3, 1.0)  # what comes before is the error of random profiles
    ax.label_outer()

# %% [markdown]
# **With a broadcast every 10 s the topology hardly matters.** Even on the ring a message arrives long before its sender
# speaks again; the ring starts about half a second late, and that is all. With a broadcast every second the ring is
# behind at the start and a little at the end. With ten a second, all messages of several periods are under way at once,
# and the order of the topologies is that of their latencies. What matters is not the latency but its ratio to the
# period.
#
# In figures: the time until the test RMSE is 0.45, the same counted in periods, and the error after 60 periods.

# %%
table = pd.DataFrame(
    {
        "period (s)": period,
        "topology": name,
        "time to RMSE 0.45 (s)": result.probes.loc[result.probes["test_rmse"] <= 0.45, "time"].min(),
        "RMSE after 60 periods": result.final["test_rmse"],
    }
    for (period, name), result in results.items()
)
table.insert(3, "periods to RMSE 0.45", table["time to RMSE 0.45 (s)"] / table["period (s)"])
table.pivot(index="topology", columns="period (s)").loc[list(worlds)].map("{:.3g}".format)

# %% [markdown]
# ## More than a late start
#
# If latency were only a late start, all topologies would learn the same from the same number of updates. Against
# updates instead of time they do with a broadcast every 10 s. With ten a second they do not. A likely reason: on the
# ring, a profile that arrives is several periods old, and a step that fits where the others were is worth less than one
# that fits where they are.

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharey=True)
for ax, period in zip(axes, (10.0, 0.1), strict=True):
    plots.convergence({name: results[period, name] for name in worlds}, against="updates", ax=ax)
    ax.set_title(f"a broadcast every {period:g} s")
    ax.set_ylim(0.32, 0.5)
    ax.label_outer()

# %% [markdown]
# This is one seed and one synthetic matrix without loss, jitter or churn: it shows what path latency alone does. Other
# seeds are one change away (`SEED`), and so are real underlays (`read_graphml`).
