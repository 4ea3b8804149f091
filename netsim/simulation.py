"""Running a world: `simulate`, and the running `Simulation` that scripts act on."""

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pandas as pd
import simpy

from algorithms.distributions import Constant, Distribution, as_distribution
from netsim import serving, sessions
from netsim.accounts import accounts_frame, balance, totals
from netsim.clock import COMING, END, PROBE, SCRIPTED, Clock
from netsim.coming import Coming
from netsim.contacts import RandomRouters, RandomUsers
from netsim.departures import depart, departures
from netsim.engines import Choice, start_engine
from netsim.faults import Faults
from netsim.growth import give_rating, join_item, join_user
from netsim.loss import GilbertElliott, Reordering
from netsim.messages import FATES, MESSAGE_KINDS
from netsim.milestones import StopRule
from netsim.nodes import items_table, recommendations_table, routers_table, users_table
from netsim.prequential import Prequential
from netsim.probes import Probe, View
from netsim.result import Result, package_versions
from netsim.rules import raise_failure
from netsim.state import HELD_BACK, JITTER, WISHES
from netsim.tables import build_tables
from netsim.trace import MessageTrace
from netsim.world import World

__all__ = ["Progress", "Script", "Simulation", "simulate"]

FIRST_SCRIPTED = 1 << 24  # numbers of wishes that scripts make lie above those that users have by themselves

Script = Callable[["Simulation"], Generator[simpy.Event, Any, Any]]


class Progress(Protocol):
    """Shows how far a run is."""

    def __call__(self, time: float, row: dict[str, Any]) -> None:
        """Take the simulated time in seconds and the last row of the probe table, empty before the first."""
        ...


def simulate(
    world: World,
    *,
    until: float,
    seed: Any,
    probes: Sequence[Probe] = (),
    every: float | None = None,
    at: Sequence[float] = (),
    scripts: Iterable[Script] = (),
    engine: Choice = "auto",
    threads: int | None = None,
    trace: MessageTrace | None = None,
    progress: Progress | None = None,
    stop: StopRule | Sequence[StopRule] = (),
) -> Result:
    """Run a world and measure it.

    Parameters
    ----------
    world : World
    until : float
        Simulated seconds, > 0.
    seed : int or anything `numpy.random.default_rng` takes
        The same seed gives the same bits.
    probes : sequence of Probe
        What to measure beside the accounts, for example `rmse(test)`.
    every : float, optional
        Simulated seconds between two probes, from 0; the end is always measured. Default: `until / 50`, or only the
        times of `at` where they are given.
    at : sequence of float
        Further times to measure at, in simulated seconds after 0 and before `until`.
    scripts : iterable of functions
        Each takes the running `Simulation` and is a SimPy process: a generator that yields events of `simulation.env`
        and acts through the simulation's methods.
    engine : {"auto", "events", "compiled"}
        Which engine runs the world. Both give the same bits; `auto` takes the compiled one unless something that was
        asked for can only be done in Python. The result says which ran, and why.
    threads : int, optional
        Threads of the compiled engine; the bits do not depend on it. Default: as many as pay.
    trace : MessageTrace, optional
        Records every message; for small runs, on the events engine.
    progress : Progress, optional
        Called about 200 times during the run and at each probe.
    stop : StopRule or sequence of them
        End the run at the first probe at which one of these is met, such as `Target("test_rmse", at_most=0.95)` or
        `Plateau("test_rmse", window=60, tolerance=0.001)`. The result is that of a run until then.

    Returns
    -------
    Result
        Also where the run was interrupted with Ctrl-C: then it holds what was measured so far, and says so.

    Raises
    ------
    ValueError
        If an argument is out of range; the message names it.
    """
    simulation = Simulation(world, seed=seed, probes=probes, engine=engine, threads=threads, trace=trace)
    for script in scripts:
        simulation.env.process(script(simulation))
    return simulation.run(until, every=every, at=at, progress=progress, stop=stop)


class Simulation:
    """A running world. Scripts act on it through its methods; the `World` it started from stays as it was.

    Parameters
    ----------
    world : World
    seed : int or anything `numpy.random.default_rng` takes
    probes : sequence of Probe
    engine, threads, trace
        As in `simulate`.

    Attributes
    ----------
    world : World
    env : Clock
        The SimPy environment; `env.now` is the simulated time in seconds.
    """

    def __init__(
        self,
        world: World,
        *,
        seed: Any,
        probes: Sequence[Probe] = (),
        engine: Choice = "auto",
        threads: int | None = None,
        trace: MessageTrace | None = None,
    ) -> None:
        if not isinstance(world, World):
            raise ValueError(f"world must be a World, got {type(world).__name__}")
        self.world = world
        self.env = Clock()
        self._probes = tuple(probes)
        self._check_columns()
        self._tables = build_tables(world, seed)
        self._tables.now = lambda: float(self.env.now)
        if any(getattr(probe, "needs_ages", False) for probe in self._probes):
            self._tables.measure_ages()
        self._faults = Faults(world.topology)  # type: ignore[arg-type]
        if trace is not None:
            trace.begin(world, self._tables.settings["seed"][0])
        self._engine = start_engine(engine, world, self._tables, self.env, threads=threads, trace=trace)
        self._rows: list[dict[str, Any]] = []
        self._wall = 0.0
        self._run_number = 0
        self._requests = 0
        self._rules: tuple[StopRule, ...] = ()
        self._stopped: str | None = None
        self._users = {name: number for number, name in enumerate(world.ratings.user_ids)}
        self._routers = {name: len(self._users) + number for number, name in enumerate(world.router_ids)}
        self._items = {name: number for number, name in enumerate(world.ratings.item_ids)}
        self._prequential = Prequential(world.ratings, self._tables.base.own)
        if world.arrivals is not None:
            self._coming = Coming(world.arrivals, world.ratings)
            if not self._engine.follow(self._coming, self._prequential, self._come_now):
                self._follow(0)
        for contacts, first in ((world.user_contacts, 0), (world.router_contacts, len(self._users))):
            if isinstance(contacts, RandomRouters | RandomUsers) and contacts.every is not None:
                self._redraw(contacts, first, 1)
        for time, node in departures(world, self._tables):
            self.env.at(time, (SCRIPTED, 0, node), self._departure(node))

    def run(
        self,
        until: float,
        *,
        every: float | None = None,
        at: Sequence[float] = (),
        progress: Progress | None = None,
        stop: StopRule | Sequence[StopRule] = (),
    ) -> Result:
        """Go on until a simulated time, measuring from now on; parameters as in `simulate`.

        Model events at `until` itself are left to a further run; the probe at `until` is taken.
        """
        _check_seconds("until", until, above=self.env.now)
        start = self.env.now
        _check_seconds("every", (until - start) if every is None else every, above=0.0)
        clock = self.env
        rules = tuple(stop) if isinstance(stop, list | tuple) else (stop,)
        for rule in rules:
            if isinstance(rule, type | str) or not callable(getattr(rule, "find", None)):
                raise ValueError(f"stop must hold rules such as Target or Plateau, got {rule!r}")
        self._rules, self._stopped = rules, None
        self._run_number += 1  # what an interrupted run has left on the heap does nothing any more
        for time in at:
            _check_seconds("at", time, above=start, below=until)
        if every is None:
            every, gaps = (until - start) / 50, 0 if len(at) else 50
        else:
            gaps = math.ceil((until - start) / every - 1e-9)
        if not self._rows or self._rows[-1]["time"] < start:
            self._repeat(start, 0.0, 1, lambda: self._probe(progress), first=0)
        self._repeat(start, every, gaps, lambda: self._probe_once(progress))
        for time in sorted(set(at)):
            self._repeat(float(time), 0.0, 1, lambda: self._probe_once(progress), first=0)
        if progress is not None:
            self._repeat(start, (until - start) / 200, 200, lambda: progress(clock.now, self.last))
        self._end = clock.at(until, (END,))
        began = perf_counter()
        interrupted = False
        try:
            clock.run(until=self._end)
            if self._stopped is None:
                self._rules = ()  # at the end there is nothing left to stop
                self._probe(progress)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._end.callbacks = []  # where the run broke off, its end must not end a further run
            self._wall += perf_counter() - began
        return self._result(until, interrupted)

    # -- what scripts can do ---------------------------------------------------------------------------------------

    def set_online(self, online: bool, *, user: Hashable = None, router: Hashable = None) -> None:
        """Take a node up or down; where it has churn, until its next session begins.

        A node that is held, or has quit, stays as it is until it is released.
        """
        node = self._node(user, router)
        self._tables.life["up"][node] = bool(online)
        sessions.settle(self._tables.state, node)

    def hold_offline(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Keep a node offline, whatever its sessions say, until it is released as often as it was held."""
        self._hold("held_offline", 1, self._node(user, router), "offline")

    def release_offline(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Undo `hold_offline` once; the node does again what its sessions say."""
        self._hold("held_offline", -1, self._node(user, router), "offline")

    def hold_online(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Keep a node online, whatever its sessions say, until it is released; `hold_offline` is stronger."""
        self._hold("held_online", 1, self._node(user, router), "online")

    def release_online(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Undo `hold_online` once; the node does again what its sessions say."""
        self._hold("held_online", -1, self._node(user, router), "online")

    def reset(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Let a node lose all that it has learned, as `user_return="reset"` does when one comes back."""
        sessions.reset(self._tables.state, self._node(user, router))

    def add_rating(self, user: Hashable, item: Hashable, value: float) -> None:
        """Let a user rate an item, or change his rating; user and item join if they have not yet.

        Just before, it is predicted from the profiles of the moment (`Result.prequential`).
        """
        node, number = self._node(user, None), self._item(item)
        scale = self.world.ratings.scale
        number_given = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number_given or not scale.low <= value <= scale.high:
            raise ValueError(f"value must be within the scale {scale.low:g} to {scale.high:g}, got {value!r}")
        if self._tables.life["departed"][node]:
            raise ValueError(f"user={user!r} has quit; he gives no ratings")
        self._give(node, number, self._tables.base.own.position(node, number), float(value))

    def request(self, user: Hashable, item: Hashable, *, rating: float = math.nan) -> None:
        """Let an online user ask for the profile of an item, as `Recommendations` lets him do by himself.

        Parameters
        ----------
        user, item
            Ids.
        rating : float
            The true rating, where the experimenter knows it; it stands in the table beside what is predicted.

        Raises
        ------
        ValueError
            If the world has no `recommendations`, whose time-out and retries are used; if the user is offline, or too
            many of his requests are open.
        """
        node, number = self._node(user, None), self._item(item)
        if self.world.recommendations is None:
            raise ValueError(
                "request needs World(recommendations=Recommendations(...)), whose time-out and retries it uses; give "
                "mean_gap=math.inf where only scripts ask"
            )
        tables = self._tables
        if not tables.nodes["online"][node]:
            raise ValueError(f"user={user!r} is offline; he asks for nothing")
        target = tables.add_target(node, number, float(rating))
        self._requests += 1
        wish = FIRST_SCRIPTED + self._requests
        if not serving.open_wish(tables.state, node, wish, target, self.env.now):
            raise ValueError(f"user={user!r} has {WISHES} requests open; wait until one has ended")
        self._engine.contacts_changed()
        self._engine.ask(node, wish)

    def join(self, *, user: Hashable = None, item: Hashable = None) -> None:
        """Let a user or an item (with its router) join that is to come later; one that is there stays as it is."""
        if (user is None) == (item is None):
            raise ValueError(f"name one, as user=... or item=..., got user={user!r} and item={item!r}")
        if item is None:
            join_user(self._tables, self._node(user, None))
        else:
            join_item(self._tables, self._item(item))

    def depart(self, *, user: Hashable = None, router: Hashable = None) -> None:
        """Let a node quit for good; the world's `rehosting` says what becomes of a router's items."""
        depart(self.world, self._tables, self._engine, self._node(user, router), self.env.now)

    def set_loss(self, loss: float | GilbertElliott) -> None:
        """Change how messages sent from now on are lost, beside what links lose."""
        if not isinstance(loss, GilbertElliott):
            _check_share("loss", loss)
        self._tables.set_loss(loss)
        self._engine.contacts_changed()

    def set_duplication(self, probability: float) -> None:
        """Change the probability that the network makes a second copy of a message sent from now on."""
        _check_share("probability", probability)
        self._tables.settings["duplication"] = probability

    def set_reordering(self, reordering: Reordering | None) -> None:
        """Change which messages sent from now on are held back."""
        if not isinstance(reordering, Reordering | None):
            raise ValueError(f"reordering must be a Reordering or None, got {reordering!r}")
        self._tables.settings["reordering"] = 0.0 if reordering is None else reordering.probability
        self._tables.set_law(HELD_BACK, Constant(0.0) if reordering is None else reordering.extra)  # type: ignore[arg-type]

    def set_delay(self, delay: Distribution | float) -> None:
        """Change the drawn part of the delay, in seconds, of all messages sent from now on."""
        delay = as_distribution(delay, name="delay", least=0.0)
        self._tables.set_law(JITTER, delay)
        self._tables.settings["delay_rule"] = 0
        self._engine.delays_changed(delay.lowest())

    def shift_latency(self, *, seconds: float = 0.0, factor: float = 1.0) -> None:
        """Lengthen (or shorten) what messages sent from now on take: base delays times a factor, and seconds more.

        Shifts add up, until `unshift_latency` takes one back.
        """
        self._faults.add_shift(seconds, factor)
        self._latency_shifted()

    def unshift_latency(self, *, seconds: float = 0.0, factor: float = 1.0) -> None:
        """Take back a shift of latency; the arguments are those of `shift_latency`."""
        self._faults.remove_shift(seconds, factor)
        self._latency_shifted()

    def fail_links(self, links: Iterable[tuple[Hashable, Hashable]]) -> None:
        """Take links of the topology down, in both directions; messages sent from now on take other paths."""
        self._faults.fail_links(links)
        self._paths_changed()

    def repair_links(self, links: Iterable[tuple[Hashable, Hashable]]) -> None:
        """Take failed links up again."""
        self._faults.repair_links(links)
        self._paths_changed()

    def fail_places(self, places: Iterable[Hashable]) -> None:
        """Take all links of places down; nodes there stay online, and reach only each other."""
        self._faults.fail_places(places)
        self._paths_changed()

    def repair_places(self, places: Iterable[Hashable]) -> None:
        """Take failed places up again."""
        self._faults.repair_places(places)
        self._paths_changed()

    def partition(self, places: Iterable[Hashable]) -> None:
        """Cut all links between these places and the others."""
        self._faults.partition(places)
        self._paths_changed()

    def heal(self, places: Iterable[Hashable] | None = None) -> None:
        """Undo the partition that cut these places off, or all partitions."""
        self._faults.heal(places)
        self._paths_changed()

    def nodes_at(self, places: Iterable[Hashable]) -> tuple[list[Hashable], list[Hashable]]:
        """Ids of the users and of the routers that sit at some places."""
        underlay = self._tables.base.underlay
        index = {place: number for number, place in enumerate(underlay.places)}
        chosen = list(places)
        for place in chosen:
            if place not in index:
                raise ValueError(f"places names {place!r}, which is not a place of {underlay!r}")
        there = np.isin(self._tables.base.places, [index[place] for place in chosen])
        users = [name for name, node in self._users.items() if there[node]]
        return users, [name for name, node in self._routers.items() if there[node]]

    def set_contacts(self, contacts: Iterable[Hashable], *, user: Hashable = None, router: Hashable = None) -> None:
        """Give a user another list of routers, or a router another list of users, for its later broadcasts."""
        node = self._node(user, router)
        others, role = (self._users, "user") if node >= len(self._users) else (self._routers, "router")
        chosen = list(contacts)
        for name in chosen:
            if name not in others:
                raise ValueError(f"contacts names {name!r}, which is not a {role}")
        self._tables.set_contacts(node, np.array([others[name] for name in chosen], dtype=np.int64))
        self._engine.contacts_changed()

    @property
    def last(self) -> dict[str, Any]:
        """The last row of the probe table so far, by column name; empty before the first."""
        return dict(self._rows[-1]) if self._rows else {}

    def view(self) -> View:
        """What a probe would see now."""
        return View(self.world, self.env.now, self._tables, self._engine.in_flight)

    # --------------------------------------------------------------------------------------------------------------

    def _item(self, item: Hashable) -> int:
        if not isinstance(item, Hashable) or item not in self._items:
            raise ValueError(f"item={item!r} is not an item of this world; name it in item_ids of its ratings")
        return self._items[item]

    def _give(self, user: int, item: int, place: int | None, value: float) -> None:
        tables, own = self._tables, self._tables.base.own
        before = float(own.value[place]) if place is not None and own.known[place] else math.nan
        self._prequential.note(tables.state.values, self.env.now, user, item, value, before)
        if give_rating(tables, user, item, place, value):
            self._engine.contacts_changed()

    def _follow(self, number: int) -> None:
        """Put the arrivals onto the clock, one after another, from one of them on."""
        if number == len(self._coming):
            return

        def happen(_: simpy.Event) -> None:
            self._come(number)
            self._follow(number + 1)

        self.env.at(float(self._coming.time[number]), COMING, happen)

    def _come_now(self, number: int) -> None:
        """Let a rating come at its time, to which the clock is set."""
        self.env.go_to(float(self._coming.time[number]))
        self._come(number)

    def _come(self, number: int) -> None:
        """Let a rating come; who has quit gives nothing, and what a script has given before has come."""
        user, item = self._coming.pair(number)
        own = self._tables.base.own
        place = own.position(user, item)
        come = not self._coming.change[number] and place is not None and bool(own.known[place])
        if not come and not self._tables.state.life["departed"][user]:
            self._give(user, item, place, float(self._coming.value[number]))

    def _redraw(self, contacts: RandomRouters | RandomUsers, first: int, number: int) -> None:
        """Plan that the lists of users (first node 0) or routers are drawn anew for the `number`-th time."""

        def happen(_: simpy.Event) -> None:
            assert self._tables.hosting is not None
            other = len(self._users) - first if first == 0 else 0
            staying = ~self._tables.life["departed"]
            staying = staying[len(self._users) :] if first == 0 else staying[: len(self._users)]
            lists = contacts.lists(self._tables.hosting, number, staying)
            self._tables.set_many([(first + n, chosen + other) for n, chosen in enumerate(lists)])
            self._engine.contacts_changed()
            self._redraw(contacts, first, number + 1)

        assert contacts.every is not None
        self.env.at(number * contacts.every, (SCRIPTED, 0, -3 if first == 0 else -2), happen)

    def _departure(self, node: int) -> Callable[[simpy.Event], None]:
        return lambda _: depart(self.world, self._tables, self._engine, node, self.env.now)

    def _hold(self, column: str, change: int, node: int, how: str) -> None:
        if self._tables.life[column][node] + change < 0:
            name = [*self._users, *self._routers][node]
            raise ValueError(f"node {name!r} is not held {how} now; call hold_{how} before release_{how}")
        self._tables.life[column][node] += change
        sessions.settle(self._tables.state, node)

    def _paths_changed(self) -> None:
        self._tables.change_paths(self._faults.underlay)
        self._engine.contacts_changed()

    def _latency_shifted(self) -> None:
        self._tables.settings["shift"], self._tables.settings["stretch"] = self._faults.shift
        self._engine.contacts_changed()

    def _node(self, user: Hashable, router: Hashable) -> int:
        if (user is None) == (router is None):
            raise ValueError(f"name one node, as user=... or router=..., got user={user!r} and router={router!r}")
        role, name, nodes = ("user", user, self._users) if router is None else ("router", router, self._routers)
        if not isinstance(name, Hashable) or name not in nodes:
            raise ValueError(f"{role}={name!r} is not a {role} of this world")
        return nodes[name]

    def _repeat(self, start: float, gap: float, gaps: int, call: Callable[[], None], *, first: int = 1) -> None:
        """Call at start + gap, start + 2 gap, ..., before everything else then, and not at the end of the last gap.

        Times are computed, not accumulated. Each call puts the next onto the heap.
        """
        run_number = self._run_number

        def plan(number: int) -> None:
            if number < gaps:
                self.env.at(start + number * gap, (PROBE,), lambda _: happen(number))

        def happen(number: int) -> None:
            if run_number == self._run_number:
                call()
                plan(number + 1)

        plan(first)

    def _probe_once(self, progress: Progress | None) -> None:
        """Measure, unless a probe has been taken at this time already."""
        if self._rows[-1]["time"] < self.env.now:
            self._probe(progress)

    def _probe(self, progress: Progress | None) -> None:
        tables, in_flight = self._tables, self._engine.in_flight
        raise_failure()
        balance(tables.accounts, in_flight)
        view = View(self.world, self.env.now, tables, in_flight)
        row: dict[str, Any] = {"time": self.env.now}
        for probe in self._probes:
            measured = probe(view)
            row |= {column: measured[column] for column in probe.columns}
        row["user_updates"], row["item_updates"] = tables.updates.tolist()
        row["users_online"] = int(view.users_online.sum())
        row["routers_online"] = int(view.routers_online.sum())
        row |= totals(tables.accounts, in_flight)
        self._rows.append(row)
        self._stop_where_met()
        if progress is not None:
            progress(self.env.now, row)

    def _stop_where_met(self) -> None:
        """End the run at this probe if one of its rules is met."""
        if not self._rules or self._stopped is not None:
            return
        table = pd.DataFrame(self._rows)
        met = next((found for rule in self._rules if (found := rule.find(table)).reached), None)
        if met is not None:
            self._stopped = met.rule
            # The run ends here, before the model events of this time, as it would at `until`.
            callbacks, self._end.callbacks = self._end.callbacks, []
            self._end = self.env.at(self.env.now, (END,))
            self._end.callbacks = callbacks

    def _result(self, until: float, interrupted: bool) -> Result:
        tables, n_users = self._tables, self._tables.n_users
        return Result(
            world=self.world,
            configuration=self.world.describe(),
            seed=int(tables.settings["seed"][0]),
            until=float(until),
            time=max(float(self.env.now), self._engine.time),
            probes=pd.DataFrame(self._rows),
            accounts=accounts_frame(tables.accounts, self._engine.in_flight),
            user_profiles=tables.values[:n_users].copy(),
            item_profiles=tables.values[n_users:].copy(),
            users=users_table(self.world, tables),
            routers=routers_table(self.world, tables),
            items=items_table(self.world, tables),
            disclosed=tables.disclosures["routers"][tables.base.own.foreseen].astype(np.int64),
            prequential=self._prequential.frame(),
            recommendations=recommendations_table(self.world.ratings, self._engine.wishes),
            wall_seconds=self._wall,
            interrupted=interrupted,
            stopped=self._stopped,
            engine=self._engine.name,
            engine_reason=self._engine.reason,
            versions=package_versions(),
        )

    def _check_columns(self) -> None:
        kept = {"time", "user_updates", "item_updates", "users_online", "routers_online"}
        kept |= totals(np.zeros((len(MESSAGE_KINDS), len(FATES), 2), dtype=np.int64), np.zeros((1, 2))).keys()
        seen: set[str] = set()
        for probe in self._probes:
            columns = getattr(probe, "columns", None)
            if not callable(probe) or not isinstance(columns, tuple):
                raise ValueError(f"probes must hold probes such as rmse(test), got {probe!r}")
            for column in columns:
                if column in kept:
                    raise ValueError(f"a probe measures a column {column!r}, which every run has; give it another name")
                if column in seen:
                    raise ValueError(f"two probes measure a column {column!r}; give one another name=...")
                seen.add(column)


def _check_share(name: str, value: Any) -> None:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value!r}; pass a fraction, not a percentage")


def _check_seconds(name: str, value: Any, *, above: float, below: float = math.inf) -> None:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not above < value < below:
        limits = f"> {above:g}" if math.isinf(below) else f"between {above:g} and {below:g}"
        raise ValueError(f"{name} must be a finite number of seconds {limits}, got {value!r}")
