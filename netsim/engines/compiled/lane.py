"""The memory of a lane: pools that grow on demand with what is in flight, and never drop anything."""

import numpy as np

from netsim.book import Book, empty_book
from netsim.coming import ARRIVAL
from netsim.engines.compiled.calendar import BATCH, CALENDAR, CHUNK, EVENT, NONE, PER_CHUNK, Queue, gather, rebuild
from netsim.engines.compiled.loop import LANE, Memory
from netsim.state import ANSWER_ROW, WISH_ROW, State
from netsim.tables import Tables

__all__ = ["Lane"]

N_BLOCK_CLASSES = 40


class Lane:
    """Pending events of a share of the nodes, and what their messages carry.

    Parameters
    ----------
    number, n_lanes : int
        Which lane it is, of how many; one may have no node.
    tables : Tables
    lane_of : int32, shape (nodes,)
        Lane of each node.
    """

    def __init__(self, number: int, n_lanes: int, tables: Tables, lane_of: np.ndarray) -> None:
        rank = tables.values.shape[1]
        self.number = number
        self.lane = np.zeros(1, dtype=LANE)
        self.lane["number"] = number
        self.calendar = np.zeros(1, dtype=CALENDAR)
        self.calendar["day"] = -1
        self.calendar["per_second"] = 1000.0
        self.calendar["free_chunk"] = self.calendar["free_batch"] = NONE
        self.heads = np.full(1 << 12, NONE, dtype=np.int32)
        self.chunks = np.empty(0, dtype=CHUNK)
        self.stored = np.empty(0, dtype=EVENT)
        self.current = np.empty(0, dtype=EVENT)
        self.order = np.empty(0, dtype=np.int32)
        self.spare = np.empty(0, dtype=np.int32)
        self.batches = np.empty(0, dtype=BATCH)
        self.payloads = np.empty((0, rank))
        self.answers = np.empty(0, dtype=ANSWER_ROW)
        self.log = np.zeros(1, dtype=WISH_ROW)
        self.coming = np.zeros(0, dtype=ARRIVAL)
        self.rooms = tables.rooms
        self.book = empty_book()
        self.blocks = np.full(N_BLOCK_CLASSES, NONE, dtype=np.int64)
        # Of several lanes each counts for itself, since they run side by side.
        self.accounts = tables.accounts if n_lanes == 1 else np.zeros_like(tables.accounts)
        self.updates = tables.updates if n_lanes == 1 else np.zeros_like(tables.updates)
        self.lane_of = lane_of
        self.batch_of = np.empty(n_lanes, dtype=np.int64)
        self._views: tuple[State, State, Queue, Memory] | None = None
        self.fit_scratch(tables)
        self.grow(1024, 1024, 1024)

    def queue(self) -> Queue:
        """The arrays of the calendar queue."""
        return Queue(**{name: getattr(self, name) for name in Queue._fields})

    def memory(self) -> Memory:
        """The other arrays."""
        return Memory(**{name: getattr(self, name) for name in Memory._fields})

    def state(self, tables: Tables) -> State:
        """The arrays of the tables, with this lane's own accounts."""
        return tables.state._replace(accounts=self.accounts, updates=self.updates)

    def views(self, tables: Tables) -> tuple[State, Queue, Memory]:
        """All three, made anew only where an array has been replaced: where ratings arrive, that is asked for often."""
        if self._views is None or self._views[0] is not tables.state:
            self._views = (tables.state, self.state(tables), self.queue(), self.memory())
        return self._views[1:]

    def expect(self, first: int, coming: np.ndarray, book: Book) -> None:
        """Let ratings come, from number `first` on; `coming` as `Coming.located` gives them."""
        self._views = None
        self.lane["located"] = first
        self.coming, self.book = coming, book

    def fit_scratch(self, tables: Tables) -> None:
        """Make the scratch arrays large enough for the longest contact list and the fullest router."""
        self._views = None
        longest = max(1, 2 * tables.longest_list)
        self.named = np.zeros(max(1, int(tables.nodes["owned_count"].max())), dtype=ANSWER_ROW)
        self.words = np.empty(longest, dtype=np.uint64)
        self.sent, self.fates, self.sizes = (np.empty(longest, dtype=np.int64) for _ in range(3))
        self.arrivals = np.empty(longest)

    def grow(self, need_events: int, need_batches: int, need_answers: int) -> None:
        """Make room for at least so many further events, batches and answers."""
        self._views = None
        calendar = self.calendar[0]
        pending = int(calendar["pending"]) + need_events + 1
        if len(self.current) < pending:
            size = _larger(len(self.current), pending - len(self.current))
            self.current = _longer(self.current, size)
            self.order, self.spare = _longer(self.order, size), _longer(self.spare, size)
        if calendar["unused_chunks"] < need_events + 1:
            size = _larger(len(self.chunks), need_events + 1)
            self.stored = _longer(self.stored, PER_CHUNK * size)
            first, self.chunks = len(self.chunks), _longer(self.chunks, size)
            self.chunks["next"][first:] = np.arange(first + 1, size + 1)
            self.chunks["next"][-1] = calendar["free_chunk"]
            calendar["free_chunk"] = first
            calendar["unused_chunks"] += size - first
        if calendar["unused_batches"] < need_batches:
            size = _larger(len(self.batches), need_batches)
            first, self.batches = len(self.batches), _longer(self.batches, size)
            self.payloads = _longer(self.payloads, size)
            self.batches["references"][first:] = np.arange(first + 1, size + 1)
            self.batches["references"][-1] = calendar["free_batch"]
            calendar["free_batch"] = first
            calendar["unused_batches"] += size - first
        if len(self.log) <= int(self.lane["log_top"][0]):
            self.log = _longer(self.log, _larger(len(self.log), 1))
        top = int(self.lane["answers_top"][0])
        if top + need_answers > len(self.answers):
            self.answers = _longer(self.answers, _larger(len(self.answers), need_answers))

    def fit_width(self, tables: Tables, now: float) -> None:
        """Choose the width of a day so that a day holds a handful of events."""
        calendar = self.calendar[0]
        opened, taken = int(calendar["opened"]), int(calendar["taken"])
        if opened + taken < 20_000:
            return
        per_day = (taken + 1) / (opened + 1)
        calendar["opened"] = calendar["taken"] = 0
        if 2.0 <= per_day <= 16.0:
            return
        per_second = float(calendar["per_second"]) * per_day / 6.0
        # Times are taken in whole days, which must stay exact in float64, and a day must not shrink for ties alone.
        per_second = min(max(per_second, 1e-6), 1e6, 2.0**50 / max(now, 1.0))
        if per_second != calendar["per_second"]:
            self.set_width(tables, per_second, now)

    def set_width(self, tables: Tables, per_second: float, now: float) -> None:
        """Give a day the length of `1 / per_second` seconds."""
        self._views = None
        gathered = np.empty(int(self.calendar["pending"][0]), dtype=EVENT)
        n = gather(self.queue(), gathered)
        if len(self.heads) < n:
            self.heads = np.full(1 << int(n).bit_length(), NONE, dtype=np.int32)
        self.grow(n, 0, 0)
        rebuild(self.queue(), tables.edges, gathered, n, float(per_second), float(now))


def _larger(size: int, need: int) -> int:
    """New size of a pool: at least half as large again, and room for what is needed."""
    return max(size + need, size + size // 2, 1024)


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer
