"""The network as a map: places and links, with the users and routers at their places."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from netsim.plots.layout import layout
from netsim.result import Result
from netsim.tables import Tables, build_tables
from netsim.topology import Underlay
from netsim.world import World

__all__ = ["topology"]

Quantity = Literal["latency", "updates"] | ArrayLike | Mapping[str, ArrayLike | Mapping[Hashable, float]]

_ROLES = ("users", "routers")
_MARKERS = {"users": "o", "routers": "s"}
_PLAIN = {"users": "tab:blue", "routers": "tab:orange"}
_UNKNOWN = "0.8"  # a node without a value
_LABELS = {
    "latency": "Mean path latency to contacts (s)",
    "updates": "Profile updates at the node",
}
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def topology(
    network: World | Result,
    *,
    seed: Any = None,
    color: Quantity | None = None,
    label: str | None = None,
    limits: tuple[float, float] | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw the underlay, and the users and routers at their places.

    Places are small grey points, links thin lines, users circles and routers squares; nodes that share a place stand
    around it. Places are drawn at their positions (node attribute `pos`, or latitude and longitude), or where
    `netsim.plots.layout` puts them, which is always the same for the same underlay.

    Parameters
    ----------
    network : World or Result
        Of a result, the contacts of its start count.
    seed : int or anything `numpy.random.default_rng` takes, optional
        Seed of the run, from which places are drawn. Needed with a World; a Result knows its own.
    color : {"latency", "updates"}, array_like or mapping, optional
        The quantity that colours the nodes. `latency`: the mean over a node's contacts of path latency and access
        delays to it, in seconds. `updates` (of a Result): the updates of the profiles that a node keeps. An array has a
        value for each user, or for each user and then each router, in index order. A mapping of "users" or "routers",
        or both, gives an array or a mapping of ids to values for each. A node without a finite value is grey. Default:
        one colour for users and one for routers.
    label : str, optional
        What the colour bar is called, with the unit. Default: for `latency` and `updates`, their names.
    limits : (float, float), optional
        Ends of the colour scale, to compare several figures. Default: the least and the largest value.
    legend : bool
        Whether to draw the legend.
    ax : matplotlib.axes.Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If the seed is missing, or `color` does not fit the nodes; the message says what does.
    """
    world, seed = _world_and_seed(network, seed)
    tables = build_tables(world, seed)
    values = _values(color, network, tables)
    scale = _scale(values, limits)
    underlay = world.topology
    assert isinstance(underlay, Underlay)
    places = world.placement.places(
        underlay, tables.nodes["key"], world.ratings.user_ids, world.router_ids, tables.settings["seed"][0]
    )
    at = layout(underlay)
    step = _step(at, places)
    nodes = at[places] + _around(places, step)
    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 6.0), layout="constrained")
    _draw_underlay(ax, underlay, at)
    size = _marker_size(ax, np.concatenate([at, nodes]), step)
    drawn = {}
    for role, part in (("users", slice(0, tables.n_users)), ("routers", slice(tables.n_users, None))):
        drawn[role] = _draw_nodes(ax, role, nodes[part], values.get(role), scale, size)
    ax.set_aspect("equal")
    ax.set_axis_off()
    if scale is not None:
        told = label or (_LABELS[color] if isinstance(color, str) else "Value")
        ax.figure.colorbar(drawn[next(iter(values))], ax=ax, label=told, shrink=0.8)
    if legend:
        _legend(ax, world, underlay, colored=values)
    return ax


def _world_and_seed(network: World | Result, seed: Any) -> tuple[World, Any]:
    if isinstance(network, Result):
        if seed is not None:
            raise ValueError(f"seed is that of the result ({network.seed}), got {seed!r}; leave it out")
        if network.world is None:
            raise ValueError(
                "network must be a World or a Result that holds one, got a Result read from disk, which holds no "
                "ratings; pass the world that was run, with the seed"
            )
        return network.world, network.seed
    if not isinstance(network, World):
        raise ValueError(f"network must be a World or a Result, got {type(network).__name__}")
    if seed is None:
        raise ValueError("seed must be given with a World, as places are drawn from it; pass that of your run")
    return network, seed


# -- values of nodes -------------------------------------------------------------------------------------------------


def _values(color: Quantity | None, network: World | Result, tables: Tables) -> dict[str, np.ndarray]:
    """Value of each node by role; a role without values is not there."""
    n_users, n_routers = tables.n_users, len(tables.nodes) - tables.n_users
    if color is None:
        return {}
    if isinstance(color, str):
        every = _latencies(tables) if color == "latency" else _updates(color, network, tables)
        return {"users": every[:n_users], "routers": every[n_users:]}
    if isinstance(color, Mapping):
        return _by_role(color, network)
    every = _numbers("color", color)
    if every.shape == (n_users + n_routers,):
        return {"users": every[:n_users], "routers": every[n_users:]}
    if every.shape == (n_users,):
        return {"users": every}
    raise ValueError(
        f"color must have a value for each of {n_users} users, or of {n_users + n_routers} users and routers, got "
        f'shape {every.shape}; pass {{"routers": values}} for the {n_routers} routers alone'
    )


def _latencies(tables: Tables) -> np.ndarray:
    """Mean delay from each node to its contacts before anything is drawn for a message; NaN without contacts."""
    edges, n_nodes = tables.edges, len(tables.nodes)
    count = np.bincount(edges["sender"], minlength=n_nodes)
    total = np.bincount(edges["sender"], weights=edges["base"], minlength=n_nodes)
    with np.errstate(invalid="ignore"):
        latencies: np.ndarray = total / count
    return latencies


def _updates(color: str, network: World | Result, tables: Tables) -> np.ndarray:
    """Updates of all profiles that each node keeps."""
    if color != "updates":
        raise ValueError(f"color must be 'latency', 'updates', an array or a mapping, got {color!r}")
    if not isinstance(network, Result):
        raise ValueError("color='updates' needs a Result, got a World; run it with simulate first")
    updates = np.concatenate([network.user_updates, network.item_updates])
    return np.bincount(tables.profiles["node"], weights=updates, minlength=len(tables.nodes))


def _by_role(color: Mapping[str, Any], network: World | Result) -> dict[str, np.ndarray]:
    world = network.world if isinstance(network, Result) else network
    assert world is not None
    ids = {"users": world.ratings.user_ids, "routers": world.router_ids}
    unknown = [role for role in color if role not in _ROLES]
    if unknown or not color:
        found = repr(unknown[0]) if unknown else "nothing"
        raise ValueError(
            f'color as a mapping must name "users" or "routers", got {found}; pass for instance {{"users": values}}'
        )
    return {role: _of_ids(role, color[role], ids[role]) for role in _ROLES if role in color}


def _of_ids(role: str, given: Any, ids: Sequence[Hashable]) -> np.ndarray:
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in set(ids)]
        if unknown:
            raise ValueError(f"color names {unknown[0]!r}, which is not one of the {role} of this world")
        return np.array([given.get(name, np.nan) for name in ids], dtype=np.float64)
    values = _numbers(f"color[{role!r}]", given)
    if values.shape != (len(ids),):
        raise ValueError(f"color[{role!r}] must have a value for each of {len(ids)} {role}, got shape {values.shape}")
    return values


def _numbers(name: str, given: ArrayLike) -> np.ndarray:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, got {given!r}") from None


def _scale(values: Mapping[str, np.ndarray], limits: tuple[float, float] | None) -> Normalize | None:
    """Scale of the colours; None where nothing is coloured."""
    if not values:
        return None
    if limits is not None:
        return Normalize(*limits)
    every = np.concatenate(list(values.values()))
    finite = every[np.isfinite(every)]
    if finite.size == 0:
        raise ValueError("color has no finite value, so there is nothing to colour by")
    return Normalize(float(finite.min()), float(finite.max()))


# -- where nodes stand -----------------------------------------------------------------------------------------------


def _around(places: np.ndarray, step: float) -> np.ndarray:
    """Offset of each node from its place: the first on it, further ones in a spiral with even gaps."""
    order = np.argsort(places, kind="stable")
    first = np.searchsorted(places[order], places[order])
    number = np.empty(len(places))
    number[order] = np.arange(len(places)) - first
    angle = number * _GOLDEN_ANGLE
    spiral: np.ndarray = step * np.sqrt(number)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return spiral


def _step(at: np.ndarray, places: np.ndarray) -> float:
    """Gap of the spiral, so that a well filled place keeps apart from its neighbours."""
    filled = math.sqrt(np.quantile(np.bincount(places)[np.unique(places)], 0.9))
    if len(at) == 1:
        return 0.5 / filled
    apart = np.asarray(cKDTree(at).query(at, k=2)[0])[:, 1]
    apart = apart[apart > 0]
    near = float(np.median(apart)) if apart.size else 1.0
    return min(0.45 * near / filled, 0.025)


# -- drawing ---------------------------------------------------------------------------------------------------------


def _draw_underlay(ax: Axes, underlay: Underlay, at: np.ndarray) -> None:
    once = np.unique(np.sort(np.column_stack([underlay.tail, underlay.head]), axis=1), axis=0)
    alpha = min(1.0, max(0.08, 600 / max(len(once), 1)))
    ax.add_collection(LineCollection(list(at[once]), colors="0.75", linewidths=0.7, alpha=alpha, zorder=1))
    ax.scatter(at[:, 0], at[:, 1], s=5, color="0.55", linewidths=0, zorder=2)


def _marker_size(ax: Axes, points: np.ndarray, step: float) -> float:
    """Area of a marker in square points, from the gap between nodes and the size of the axes."""
    box = ax.get_window_extent()
    per_unit = min(box.width, box.height) * 72 / ax.figure.dpi / max(float(np.ptp(points, axis=0).max()), 1e-9)
    return min(max(1.3 * step * per_unit, 3.6), 8.0) ** 2


def _draw_nodes(
    ax: Axes, role: str, at: np.ndarray, values: np.ndarray | None, scale: Normalize | None, size: float
) -> PathCollection:
    look: dict[str, Any] = {"marker": _MARKERS[role], "s": size, "linewidths": 0.3, "edgecolors": "white"}
    x, y = at.T
    if scale is None:
        return ax.scatter(x, y, color=_PLAIN[role], zorder=3, **look)
    known = np.zeros(len(at), dtype=bool) if values is None else np.isfinite(values)
    ax.scatter(x[~known], y[~known], color=_UNKNOWN, zorder=3, **look)
    shown = np.empty(0) if values is None else values[known]
    return ax.scatter(x[known], y[known], c=shown, norm=scale, cmap="viridis", zorder=4, **look)


def _legend(ax: Axes, world: World, underlay: Underlay, *, colored: Mapping[str, np.ndarray]) -> None:
    counts = {"users": world.ratings.n_users, "routers": len(world.router_ids)}
    handles = []
    for role in _ROLES:
        face = _PLAIN[role] if not colored else "0.3" if role in colored else _UNKNOWN
        told = f"{counts[role]:,} {role}" if counts[role] != 1 else f"1 {role[:-1]}"
        handles.append(Line2D([], [], marker=_MARKERS[role], linestyle="", color=face, markersize=6, label=told))
    n_places, n_links = underlay.n_places, underlay.n_links
    told = f"{n_places:,} place{'s' * (n_places != 1)}, {n_links:,} link{'s' * (n_links != 1)}"
    handles.append(Line2D([], [], marker=".", color="0.55", linewidth=0.7, markersize=5, label=told))
    ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=3,
        frameon=False,
        columnspacing=1.2,
        handletextpad=0.4,
    )
