"""The age of what nodes use: followed by hand in small worlds, and from the messages in random ones."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from algorithms.ratings import Ratings
from algorithms.synthetic import low_rank
from netsim import (
    Checkpoint,
    GilbertElliott,
    GivenContacts,
    Learning,
    MessageTrace,
    OnOff,
    Periodic,
    Simulation,
    World,
    complete,
    simulate,
)
from netsim.messages import FATES, LOST_OFFLINE, PROFILE, REPLY, STALE
from netsim.probes import availability, rmse_online, rmse_per_user, staleness, traffic, updates_per_node
from netsim.state import RATED
from tests.netsim.probes.small import at, one_user
from tests.worlds import runs

ENDS = (0.0, 1.0)
many = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def ages(world, engine, *scripts, until, times=()):
    """Least and largest age at users and at routers at each time, and at the end."""
    result = simulate(world, until=until, at=times, seed=1, engine=engine, scripts=scripts, probes=[staleness(ENDS)])
    assert result.measured == [f"{role}_staleness_q{q}" for role in ("user", "router") for q in (0, 100)]
    rows = result.probes[result.measured].to_numpy()[1:]
    np.testing.assert_array_equal(result.probes[result.measured].to_numpy()[0], np.full(4, np.nan))
    return rows[:, :2].tolist(), rows[:, 2:].tolist()


def none(row):
    return bool(np.isnan(row).all())


def test_age_since_the_profile_taken_last_was_sent(engine):
    at_users, at_routers = ages(one_user(), engine, until=1.5, times=[0.25, 0.5, 0.75, 1.0, 1.25, 1.375])
    # The items' profiles are sent at 0.125 and 1.125 and taken at 0.375 and 1.375; a probe at t sees nothing of t.
    assert none(at_users[0])
    assert at_users[1:] == [[0.375] * 2, [0.625] * 2, [0.875] * 2, [1.125] * 2, [1.25] * 2, [0.375] * 2]
    # The user's is taken at 0.25, but the router knows no rating before his reply, sent at 0.5, arrives at 0.75.
    assert none(at_routers[:3])
    assert at_routers[3:] == [[0.5] * 2, [0.75] * 2, [0.375] * 2, [0.5] * 2]


def test_attached_ratings_are_known_at_once(engine):
    _, at_routers = ages(one_user(rating_exchange="attach"), engine, until=0.5, times=[0.25])
    assert none(at_routers[0])
    assert at_routers[1] == [0.5, 0.5]


def test_each_pair_has_an_age_of_its_own(engine):
    """Item 1 at a router that broadcasts once, item 0 at one that goes on."""
    world = one_user(routers=("y", "z"), hosting={0: "y", 1: "z", 2: "y"})
    at_users, _ = ages(world, engine, at(1.0, "set_online", False, router="z"), until=3.5, times=[2.0])
    assert at_users == [[2.0 - 1.125, 2.0 - 0.125], [3.5 - 3.125, 3.5 - 0.125]]


def test_who_rated_nothing_there_has_no_age(engine):
    ratings = Ratings.from_arrays(["a"], [0], [2.0], item_ids=[0, 1], scale=(1, 5))
    contacts = {"user_contacts": GivenContacts({"a": [1]}), "router_contacts": GivenContacts({1: ["a"]})}
    at_users, at_routers = ages(one_user(ratings=ratings, routers=None, **contacts), engine, until=5.0)
    assert none(at_users)
    assert none(at_routers)


def test_offline_ages_grow_and_the_departed_are_left_out(engine):
    leave = [at(1.0, "set_online", False, user="a"), at(4.0, "depart", user="a")]
    at_users, at_routers = ages(one_user(), engine, *leave, until=5.0, times=[2.0, 3.0])
    assert at_users[:2] == [[2.0 - 0.125] * 2, [3.0 - 0.125] * 2]
    assert none(at_users[2])
    # What the router has of him is still used.
    assert at_routers == [[1.5] * 2, [2.5] * 2, [4.5] * 2]
    at_users, at_routers = ages(one_user(), engine, at(1.0, "depart", router=0), until=5.0, times=[1.0])
    assert at_users == [[0.875] * 2, [4.875] * 2]
    assert at_routers[0] == [0.5] * 2
    assert none(at_routers[1])


def test_who_has_lost_what_he_learned_starts_again(engine):
    forget = [at(1.0, "reset", user="a"), at(2.0, "reset", router=0)]
    at_users, at_routers = ages(one_user(), engine, *forget, until=3.0, times=[1.0, 1.25, 2.0, 2.25, 2.5])
    assert at_users[0] == [0.875] * 2
    assert none(at_users[1])
    assert at_users[2:] == [[0.875] * 2, [1.125] * 2, [0.375] * 2, [0.875] * 2]
    # The router asks again at 2.25; the reply, sent at 2.5, arrives at 2.75.
    assert at_routers[2] == [1.0] * 2
    assert none(at_routers[3:5])
    assert at_routers[5] == [0.5] * 2


def test_what_is_discarded_for_its_stamp_makes_nothing_older(engine):
    """The broadcast of 1.125 takes 2 s, that of 2.125 a quarter: it comes first."""
    slow = [at(1.0, "set_delay", 2.0), at(1.5, "set_delay", 0.25)]
    for discard, age in ((True, 3.2 - 2.125), (False, 3.2 - 1.125)):
        # Broadcast at 3.125 arrives after the end; the one of 1.125 at 3.125 itself.
        at_users, _ = ages(one_user(discard_stale=discard), engine, *slow, until=3.2, times=[3.0])
        assert at_users == [[3.0 - 2.125] * 2, [age] * 2]


@pytest.mark.parametrize("rehosting", ["fresh", "handover"])
def test_an_item_that_moves_counts_once(engine, rehosting):
    """Router "y" quits; "z" takes its items over and broadcasts them at 2.125 for the first time."""
    world = one_user(routers=("y", "z"), hosting={0: "y", 1: "y", 2: "z"}, rehosting=rehosting)
    quits = at(1.5, "depart", router="y")
    at_users, at_routers = ages(world, engine, quits, until=2.5, times=[1.5, 2.0, 2.25])
    assert at_users == [[1.5 - 1.125] * 2, [2.0 - 1.125] * 2, [2.25 - 1.125] * 2, [2.5 - 2.125] * 2]
    assert at_routers[0] == [0.5] * 2
    assert none(at_routers[1:3])  # z knows no rating of his yet
    simulation = Simulation(world, seed=1, engine=engine, probes=[staleness(ENDS)])
    simulation.env.process(quits(simulation))
    simulation.run(5.0)
    assert simulation.view().user_ages.tolist() == [5.0 - 4.125] * 2
    assert simulation.view().router_ages.tolist() == [1.0 - 0.0]


def test_both_ways_of_one_pair(engine):
    """The late profile of the old host comes after the new one's first: it is the older one."""
    world = one_user(routers=("y", "z"), hosting={0: "y", 1: "y", 2: "z"}, rehosting="fresh")
    late = [at(1.0, "set_delay", 1.5), at(1.2, "set_delay", 0.25), at(1.5, "depart", router="y")]
    at_users, _ = ages(world, engine, *late, until=2.75, times=[2.0, 2.5])
    assert at_users == [[2.0 - 0.125] * 2, [2.5 - 2.125] * 2, [2.75 - 2.125] * 2]


def test_contacts_made_on_the_way(engine):
    befriend = [at(2.0, "set_contacts", [0], user="a"), at(4.0, "set_contacts", [], user="a")]
    world = one_user(user_contacts=GivenContacts({"a": []}))
    at_users, at_routers = ages(world, engine, *befriend, until=6.0, times=[2.5, 3.0])
    assert none(at_routers[0])
    assert at_routers[1:] == [[0.5] * 2, [3.0] * 2]  # the last one was sent at 3
    assert at_users[-1] == [0.875] * 2


def test_a_world_where_nothing_is_sent(engine):
    nobody = {"user_contacts": GivenContacts({"a": []}), "router_contacts": GivenContacts({0: []})}
    at_users, at_routers = ages(one_user(**nobody), engine, until=3.0)
    assert none(at_users)
    assert none(at_routers)


# -- views -------------------------------------------------------------------------------------------------------------


def test_a_view_that_is_kept_stays_as_it_was(engine):
    simulation = Simulation(one_user(), seed=1, engine=engine, probes=[staleness()])
    simulation.run(1.0)
    view = simulation.view()
    simulation.run(2.5)
    assert view.user_ages.tolist() == [0.875, 0.875]
    assert view.router_ages.tolist() == [0.5]
    assert view.user_updates.tolist() == [2]
    assert view.item_updates.tolist() == [1, 1, 0]
    assert view.accounts.sum(axis=2)[:, 0].tolist() != simulation.view().accounts.sum(axis=2)[:, 0].tolist()
    assert view.in_flight.dtype == view.accounts.dtype == view.user_updates.dtype == np.int64
    assert view.accounts.shape[1] == len(FATES)


def test_departed_are_told_apart_from_offline(engine):
    simulation = Simulation(one_user(), seed=1, engine=engine)
    assert not simulation.view().users_departed.any()
    simulation.set_online(False, user="a")
    simulation.depart(router=0)
    view = simulation.view()
    assert (view.users_online.tolist(), view.users_departed.tolist()) == ([False], [False])
    assert (view.routers_online.tolist(), view.routers_departed.tolist()) == ([False], [True])


def test_ages_that_nothing_measures_are_an_error_with_the_mend(engine):
    simulation = Simulation(one_user(), seed=1, engine=engine)
    for name in ("user_ages", "router_ages"):
        with pytest.raises(RuntimeError, match=r"not measured in this run; add staleness\(\) to its probes"):
            getattr(simulation.view(), name)


def test_default_columns_and_clashes():
    assert staleness().columns == tuple(f"{role}_staleness_q{q}" for role in ("user", "router") for q in (10, 50, 90))
    with pytest.raises(ValueError, match="two probes measure a column 'user_staleness_q50'"):
        simulate(one_user(), until=1.0, seed=1, probes=[staleness(), staleness((0.5,))])


# -- any world ---------------------------------------------------------------------------------------------------------


class Taken(MessageTrace):
    """Follows what every node took, and which ratings routers know, from the messages alone."""

    def __init__(self, run):
        super().__init__()
        ratings, self.attach = run.world.ratings, run.world.rating_exchange == "attach"
        self.rated = set(zip(ratings.user.tolist(), ratings.item.tolist(), strict=True))
        self.n_users, self.messages = ratings.n_users, []
        self.taken, self.known, self.hosted = {}, set(), {}

    def sent(self, message, sender, receiver, now, fate, arrival):
        self.messages.append((message, sender, receiver, now))
        return super().sent(message, sender, receiver, now, fate, arrival)

    def landed(self, row, fate):
        message, sender, receiver, sent = self.messages[row]
        if message.kind == REPLY and fate != LOST_OFFLINE and (message.answers["state"] == RATED).any():
            self.known.add((receiver, sender))
        if message.kind in (PROFILE, REPLY) and fate not in (LOST_OFFLINE, STALE):
            self.taken[receiver, message.profile] = sent
            hosted = self.hosted.get(receiver, ())
            if self.attach and any((sender, item) in self.rated for item in hosted):
                self.known.add((receiver, sender))
        super().landed(row, fate)

    def ages(self, now):
        n_users = self.n_users
        at_users = [now - t for (to, of), t in self.taken.items() if to < n_users and (to, of - n_users) in self.rated]
        at_routers = [now - t for pair, t in self.taken.items() if pair in self.known]
        return sorted(at_users), sorted(at_routers)


seen = []


@settings(many, max_examples=120)
@given(runs(forgets=False, moves=False, lives=False))
def follow(run):
    trace = Taken(run)
    followed = Simulation(run.world, seed=run.seed, trace=trace, probes=[staleness()])
    tables = followed._tables
    for number in range(len(run.world.router_ids)):
        row = tables.nodes[tables.n_users + number]
        first, count = int(row["owned_start"]), int(row["owned_count"])
        trace.hosted[tables.n_users + number] = (tables.owned[first : first + count] - tables.n_users).tolist()
    compiled = Simulation(run.world, seed=run.seed, engine="compiled", probes=[staleness()])
    measured = []
    for simulation in (followed, compiled):
        for script in run.scripts:
            simulation.env.process(script(simulation))
        result = simulation.run(run.until, every=run.every)
        view = simulation.view()
        measured.append((result.probes, view.user_ages, view.router_ages))
    expected = trace.ages(run.until)
    for table, at_users, at_routers in measured:
        assert (sorted(at_users.tolist()), sorted(at_routers.tolist())) == expected
        np.testing.assert_array_equal(table.to_numpy(), measured[0][0].to_numpy())
    seen.append((len(expected[0]), len(expected[1])))


def test_ages_are_what_the_messages_say():
    follow()
    at_users, at_routers = zip(*seen, strict=True)
    assert sum(n > 2 for n in at_users) > 15  # else the comparison would prove little
    assert sum(n > 2 for n in at_routers) > 10


DATA = low_rank(14, 20, rank=2, missing=0.5, seed=1)
UNSTEADY = World(
    DATA.train,
    complete(4),
    routers=5,
    user_broadcast=Periodic(3.0),
    router_broadcast=Periodic(2.0),
    delay=0.5,
    loss=GilbertElliott(0.2, burst_length=2.0),
    duplication=0.2,
    user_churn=OnOff(20.0, 6.0),
    router_churn=OnOff(15.0, 4.0),
    user_return="reset",
    router_return=Checkpoint(4.0),
    user_lifetime=100.0,
    router_lifetime=30.0,
    learning=Learning(rank=2),
)


@pytest.mark.parametrize("changes", [{"rehosting": "fresh"}, {"rehosting": "handover", "router_lifetime": None}, {}])
def test_all_probes_are_the_same_on_both_engines_in_an_unsteady_world(changes):
    world = UNSTEADY.replace(**changes)
    quits = [
        at(20.3, "depart", router=1),
        at(40.1, "depart", router=3),
        at(41.0, "depart", user=DATA.train.user_ids[2]),
    ]
    tables = [
        simulate(
            world,
            until=110.0,
            every=1.3,
            seed=4,
            scripts=quits,
            probes=[
                staleness(),
                availability(),
                traffic(bytes=True),
                updates_per_node(),
                rmse_per_user(DATA.test),
                rmse_online(DATA.test),
            ],
            **how,
        ).probes
        for how in ({"engine": "events"}, {"engine": "compiled", "threads": 1}, {"engine": "compiled", "threads": 2})
    ]
    for table in tables[1:]:
        assert list(table) == list(tables[0])
        np.testing.assert_array_equal(table.to_numpy(), tables[0].to_numpy())
    assert tables[0]["user_staleness_q90"].notna().sum() > 50
    assert tables[0]["router_staleness_q90"].notna().sum() > 20
    assert np.isnan(tables[0]["user_staleness_q50"].iloc[-1])  # all users have departed
    assert np.isnan(tables[0]["test_rmse_online"].iloc[-1])
