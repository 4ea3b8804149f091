"""Tidy tables of users, routers and items at one moment of a run."""

import numpy as np
import pandas as pd

from algorithms.ratings import Ratings
from netsim.state import REFUSED, SERVED, TIMED_OUT
from netsim.tables import Tables
from netsim.world import World

__all__ = ["id_column", "items_table", "recommendations_table", "routers_table", "users_table"]


def users_table(world: World, tables: Tables) -> pd.DataFrame:
    """One row for each user; columns as in `netsim.result.Result.users`."""
    n_users = tables.n_users
    disclosed = tables.disclosures["routers"] > 0
    owner = np.repeat(np.arange(n_users), np.diff(tables.own_start))
    nodes = tables.nodes[:n_users]
    return pd.DataFrame(
        {
            "user": id_column(world.ratings.user_ids),
            "online": nodes["online"].copy(),
            "ratings": tables.profiles["known"][:n_users].copy(),
            "updates": tables.profiles["updates"][:n_users].copy(),
            "profiles_sent": nodes["profiles_sent"].copy(),
            "profile_bytes": tables.profile_bytes()[:n_users],
            "bytes_sent": nodes["bytes_sent"].copy(),
            "ratings_disclosed": np.bincount(owner[disclosed], minlength=n_users),
        }
    )


def routers_table(world: World, tables: Tables) -> pd.DataFrame:
    """One row for each router; columns as in `netsim.result.Result.routers`."""
    n_users = tables.n_users
    nodes = tables.nodes[n_users:]
    return pd.DataFrame(
        {
            "router": id_column(world.router_ids),
            "online": nodes["online"].copy(),
            "items": nodes["owned_count"].copy(),
            "profiles_sent": nodes["profiles_sent"].copy(),
            "profile_bytes": tables.profile_bytes()[n_users:],
            "bytes_sent": nodes["bytes_sent"].copy(),
        }
    )


def items_table(world: World, tables: Tables) -> pd.DataFrame:
    """One row for each item; columns as in `netsim.result.Result.items`."""
    profiles = tables.profiles[tables.n_users :]
    routers = world.router_ids
    return pd.DataFrame(
        {
            "item": id_column(world.ratings.item_ids),
            "router": id_column([routers[node - tables.n_users] for node in profiles["node"].tolist()]),
            "ratings": profiles["known"].copy(),
            "updates": profiles["updates"].copy(),
        }
    )


def recommendations_table(ratings: Ratings, log: np.ndarray) -> pd.DataFrame:
    """Tidy table of requests that have ended, one a row, by the time at which they were asked, then by user.

    Columns: `user` and `item` (ids); `asked` and `finished` in seconds; `attempts`; `outcome` (`served`, `timed_out`
    or `refused`, where too many of the user were open); `predicted` rating, clipped to the scale (NaN unless served);
    `rating`, the true one.
    """
    rows = log[np.lexsort((log["number"], log["user"], log["asked"]))]
    names = {SERVED: "served", TIMED_OUT: "timed_out", REFUSED: "refused"}
    return pd.DataFrame(
        {
            "user": id_column([ratings.user_ids[number] for number in rows["user"].tolist()]),
            "item": id_column([ratings.item_ids[number] for number in rows["item"].tolist()]),
            "asked": rows["asked"],
            "finished": rows["finished"],
            "attempts": rows["attempts"].astype(np.int64),
            "outcome": pd.Series(
                [names[code] for code in rows["outcome"].tolist()], dtype="str" if len(rows) else object
            ),
            "predicted": np.clip(rows["predicted"], ratings.scale.low, ratings.scale.high),
            "rating": rows["rating"],
        }
    )


def id_column(ids: object) -> pd.Series:
    """Column of original ids: integers where all are, else as they are."""
    given = list(ids)  # type: ignore[call-overload]
    if all(isinstance(each, int | np.integer) and not isinstance(each, bool) for each in given):
        whole = [int(each) for each in given]
        return pd.Series(whole, dtype="int64" if all(-(2**63) <= each < 2**63 for each in whole) else object)
    return pd.Series(given) if all(type(each) is str for each in given) else pd.Series(given, dtype=object)
