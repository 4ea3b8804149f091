"""The ratings that are still to come, as an engine takes them that needs no clock to be told of each."""

import numpy as np

from algorithms.ratings import Ratings
from netsim.arrivals import Arrivals
from netsim.tables import Tables

__all__ = ["ARRIVAL", "Coming"]

# A rating that comes, or a change of one, and where it stands: among the own ratings, and the edges between the user
# and the router that hosts the item; -1 where there is none.
ARRIVAL = np.dtype(
    [
        ("time", "f8"),  # seconds
        ("value", "f8"),
        ("place", "i8"),
        ("up", "i8"),
        ("down", "i8"),
        ("user", "i4"),
        ("profile", "i4"),
        ("change", "?"),
    ],
    align=True,
)


class Coming:
    """Arrivals and changes in the order of time, then of the ratings.

    Parameters
    ----------
    arrivals : Arrivals
    ratings : Ratings
        Those of the world, in whose order the arrivals are.

    Attributes
    ----------
    time : float64, shape (n,)
        Seconds.
    which : int64, shape (n,)
        Number of the rating.
    value : float64, shape (n,)
        What is given.
    change : bool, shape (n,)
    """

    def __init__(self, arrivals: Arrivals, ratings: Ratings) -> None:
        late = np.flatnonzero((arrivals.times > 0) & np.isfinite(arrivals.times))
        changed = [which for _, which, _ in arrivals.changes]
        time = np.concatenate([arrivals.times[late], [time for time, _, _ in arrivals.changes]])
        which = np.concatenate([late, np.array(changed, dtype=np.int64)])
        value = np.concatenate([ratings.value[late], [value for _, _, value in arrivals.changes]])
        order = np.lexsort((which, time))
        self.time, self.which, self.value = time[order], which[order], value[order]
        self.change = order >= len(late)
        self._user, self._item = ratings.user[self.which], ratings.item[self.which]

    def __len__(self) -> int:
        return len(self.time)

    def pair(self, number: int) -> tuple[int, int]:
        """User and item of an arrival."""
        return int(self._user[number]), int(self._item[number])

    def due(self, first: int, stop: float, *, inclusive: bool) -> int:
        """Number, from 0, of the arrival after all that come before a time, or at it too; at least `first`."""
        return max(first, int(np.searchsorted(self.time, stop, side="right" if inclusive else "left")))

    def located(self, tables: Tables, first: int, last: int) -> np.ndarray:
        """Arrivals `first` to `last` - 1, with where they stand now; ARRIVAL, shape (last - first,)."""
        rows = np.zeros(last - first, dtype=ARRIVAL)
        part = slice(first, last)
        user, item = self._user[part], self._item[part]
        rows["time"], rows["value"], rows["change"] = self.time[part], self.value[part], self.change[part]
        rows["user"], rows["profile"] = user, tables.n_users + item
        rows["place"] = tables.base.own.positions(user, item)
        router = tables.state.profiles["node"][rows["profile"]]
        for column, ends in (("up", (user, router)), ("down", (router, user))):
            found = [tables.edge_between(*pair) for pair in zip(*(end.tolist() for end in ends), strict=True)]
            rows[column] = [-1 if edge is None else edge for edge in found]
        return rows
