"""What has left the users' machines: ratings and profiles, counted in small worlds and followed in random ones."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from algorithms.ratings import Ratings
from netsim import (
    GivenContacts,
    GivenPlacement,
    Learning,
    MessageTrace,
    OnOff,
    Periodic,
    Simulation,
    World,
    disclosure,
    simulate,
)
from netsim.messages import PROFILE, REPLY, REQUEST
from netsim.state import RATED
from tests.worlds import runs

EACH_SECOND = Periodic(1.0, phase=0.0)
NEVER = Periodic(1.0, phase=1e6)
RANK = 2
PLAIN = 48 + 8 * RANK  # bytes of a profile message
ATTACH = {"rating_exchange": "attach"}
many = settings(max_examples=60, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def one_user(**changes):
    """User "a" rated items 0 and 1 of three that one router hosts; he broadcasts at 0, 1, ...; 0.25 s a message.

    So the request arrives at 0.5, and the reply at 0.75.
    """
    ratings = Ratings.from_arrays(["a", "a"], [0, 1], [2.0, 4.0], item_ids=[0, 1, 2], scale=(1, 5))
    plain = World(
        ratings,
        routers=1,
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        delay=0.25,
        minimum_delay=0.0,
        learning=Learning(rank=RANK),
    )
    return plain.replace(**changes)


def two_routers(**changes):
    """The same, with items 0 and 2 at router "y" and item 1 at router "z"."""
    return one_user(routers=("y", "z"), hosting={0: "y", 1: "z", 2: "y"}).replace(**changes)


def lossy(start, end):
    """A script: all that is sent between two times is lost."""

    def script(simulation):
        yield simulation.env.timeout(start)
        simulation.set_loss(1.0)
        yield simulation.env.timeout(end - start)
        simulation.set_loss(0.0)

    return script


def disclosed(world, until, engine, *scripts):
    return simulate(world, until=until, seed=1, engine=engine, scripts=scripts).disclosed.tolist()


# -- ratings that routers ask for --------------------------------------------------------------------------------------


def test_a_rating_is_disclosed_when_the_user_answers(engine):
    assert disclosed(one_user(), 0.5, engine) == [0, 0]  # the request arrives after the probe
    assert disclosed(one_user(), 0.6, engine) == [1, 1]
    assert disclosed(one_user(), 9.0, engine) == [1, 1]


def test_a_rating_is_disclosed_though_the_reply_is_lost(engine):
    world, loss = one_user(), lossy(0.4, 0.6)
    result = simulate(world, until=0.9, seed=1, engine=engine, scripts=[loss])
    assert result.accounts.set_index(["kind", "fate"])["messages"]["reply", "lost_link"] == 1
    assert result.items["ratings"].tolist() == [0, 0, 0]
    assert result.disclosed.tolist() == [1, 1]


def test_no_rating_is_disclosed_where_the_request_is_lost(engine):
    assert disclosed(one_user(), 9.0, engine, lossy(0.2, 0.4)) == [0, 0]
    # Asked again after the time-out, he answers.
    assert disclosed(one_user(request_timeout=2.0), 9.0, engine, lossy(0.2, 0.4)) == [1, 1]


def test_no_rating_is_disclosed_where_the_request_finds_him_offline(engine):
    def leave(simulation):
        yield simulation.env.timeout(0.4)
        simulation.set_online(False, user="a")

    assert disclosed(one_user(), 9.0, engine, leave) == [0, 0]


def test_two_answers_to_one_router_count_once(engine):
    """The first reply takes longer than the time-out, so the router asks twice."""
    world = one_user(delay=1.5, request_timeout=1.0)
    result = simulate(world, until=9.0, seed=1, engine=engine)
    assert result.accounts.set_index(["kind", "fate"])["messages"]["reply", "sent"] >= 2
    assert result.disclosed.tolist() == [1, 1]


def test_only_the_router_that_hosts_an_item_is_told(engine):
    world = two_routers(user_contacts=GivenContacts({"a": ["z"]}))
    assert disclosed(world, 9.0, engine) == [0, 1]


def test_a_user_who_rated_nothing_hosted_discloses_nothing_in_his_answer(engine):
    world = two_routers(hosting={0: "y", 1: "y", 2: "z"}, user_contacts=GivenContacts({"a": ["z"]}))
    result = simulate(world, until=9.0, seed=1, engine=engine)
    assert result.accounts.set_index(["kind", "fate"])["messages"]["reply", "sent"] == 1
    assert result.disclosed.tolist() == [0, 0]


# -- ratings attached to broadcasts ------------------------------------------------------------------------------------


def test_attached_ratings_are_disclosed_at_the_broadcast(engine):
    later = Periodic(1.0, phase=0.5)
    assert disclosed(one_user(user_broadcast=later, **ATTACH), 0.5, engine) == [0, 0]
    assert disclosed(one_user(user_broadcast=later, **ATTACH), 0.6, engine) == [1, 1]  # it has not arrived yet


def test_attached_ratings_are_disclosed_though_the_broadcast_is_lost(engine):
    assert disclosed(one_user(loss=1.0, **ATTACH), 0.1, engine) == [1, 1]


def test_two_broadcasts_to_one_router_count_once(engine):
    assert disclosed(two_routers(**ATTACH), 9.0, engine) == [1, 1]


def test_ratings_go_to_contacts_alone_until_there_are_others(engine):
    def befriend(simulation):
        for time, routers in ((2.5, ["y"]), (4.5, ["z"]), (6.5, ["y", "z"])):
            yield simulation.env.timeout(time - simulation.env.now)
            simulation.set_contacts(routers, user="a")

    world = two_routers(user_contacts=GivenContacts({"a": ["z"]}), **ATTACH)
    found = [disclosed(world, until, engine, befriend) for until in (2.1, 3.1, 9.0)]
    assert found == [[0, 1], [1, 1], [1, 1]]


def test_who_is_offline_attaches_nothing(engine):
    world = one_user(user_churn=OnOff(1e-9, 1e9), user_broadcast=Periodic(1.0, phase=0.5), **ATTACH)
    assert disclosed(world, 9.0, engine) == [0, 0]


def test_a_routers_broadcast_has_no_ratings_attached(engine):
    """Once the ratings of its receivers were counted as attached to it."""
    world = one_user(router_broadcast=EACH_SECOND, **ATTACH)
    result = simulate(world, until=4.5, seed=1, engine=engine)
    assert result.users["bytes_sent"].tolist() == [5 * (PLAIN + 2 * 16)]
    assert result.routers["profiles_sent"].tolist() == [5 * 3]
    assert result.routers["bytes_sent"].tolist() == [15 * PLAIN]
    booked = result.accounts.set_index(["kind", "fate"])
    assert booked.loc[("profile", "sent")].tolist() == [20, 5 * (PLAIN + 2 * 16) + 15 * PLAIN]
    assert booked.loc[("profile", "updated")].tolist() == [15, 5 * (PLAIN + 2 * 16) + 10 * PLAIN]
    assert booked.loc[("profile", "unrated")].tolist() == [5, 5 * PLAIN]  # item 2


# -- any world ---------------------------------------------------------------------------------------------------------


class Sent(MessageTrace):
    """Follows who sent which rating to whom, from what the messages carry."""

    def __init__(self, run):
        super().__init__()
        self.ratings, self.attach = run.world.ratings, run.world.rating_exchange == "attach"
        self.hosted = {router: set() for router in run.world.router_ids}
        self.pairs, self.bytes, self.profiles, self.tables = set(), {}, {}, None

    def begin(self, world, seed):
        super().begin(world, seed)
        self.n_users = world.ratings.n_users

    def sent(self, message, sender, receiver, now, fate, arrival):
        self.bytes[sender] = self.bytes.get(sender, 0) + message.size
        self.profiles[sender] = self.profiles.get(sender, 0) + (message.kind != REQUEST)
        owned = self.tables.nodes[receiver]["owned_start"]
        if message.kind == REPLY:
            named = message.answers["offset"][message.answers["state"] == RATED]
            items = self.tables.owned[owned + named] - self.n_users
            self.pairs |= {(sender, int(item), receiver) for item in items}
        elif message.kind == PROFILE and sender < self.n_users and self.attach:
            hosted = self.tables.owned[owned : owned + self.tables.nodes[receiver]["owned_count"]] - self.n_users
            rated = set(self.ratings.item[self.ratings.user == sender].tolist())
            self.pairs |= {(sender, int(item), receiver) for item in hosted if int(item) in rated}
        return super().sent(message, sender, receiver, now, fate, arrival)


@many
@given(runs(doubles=False, lives=False))
def test_disclosures_are_what_the_messages_carried(run):
    trace = Sent(run)
    simulation = Simulation(run.world, seed=run.seed, trace=trace)
    trace.tables = simulation._tables
    for script in run.scripts:
        simulation.env.process(script(simulation))
    followed = simulation.run(run.until, every=run.every)
    known = run.world.ratings
    routers = [
        sum(pair[:2] == (user, item) for pair in trace.pairs)
        for user, item in zip(known.user.tolist(), known.item.tolist(), strict=True)
    ]
    assert followed.disclosed.tolist() == routers
    assert max(routers) <= 1 or run.world.rehosting is not None
    nodes = range(known.n_users + len(run.world.router_ids))
    for column, told in (("bytes_sent", trace.bytes), ("profiles_sent", trace.profiles)):
        counted = followed.users[column].tolist() + followed.routers[column].tolist()
        assert counted == [told.get(node, 0) for node in nodes]
    compiled = simulate(**run.arguments, engine="compiled")
    assert compiled.disclosed.tobytes() == followed.disclosed.tobytes()


def test_the_table_of_disclosures_names_user_and_item(engine):
    world = two_routers(user_contacts=GivenContacts({"a": ["z"]}))
    table = simulate(world, until=9.0, seed=1, engine=engine).disclosures()
    assert table.to_dict("list") == {"user": ["a", "a"], "item": [0, 1], "routers": [0, 1]}


def test_an_unreachable_router_is_sent_to_all_the_same(engine):
    islands = nx.empty_graph(2)
    placement = GivenPlacement({"a": 0}, {0: 1})
    world = one_user(topology=islands, placement=placement, **ATTACH)
    result = simulate(world, until=0.5, seed=1, engine=engine)
    assert result.final["unreachable"] == 1
    assert result.disclosed.tolist() == [1, 1]


# -- the probe ---------------------------------------------------------------------------------------------------------


def four_users(**changes):
    """Users with 1, 2, 4 and no ratings of four items at as many routers, all contacts of all."""
    rated = {"a": [0], "b": [0, 1], "c": [0, 1, 2, 3]}
    pairs = [(user, item) for user, items in rated.items() for item in items]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), np.full(7, 3.0), scale=(1, 5), user_ids="abcd")
    contacts = GivenContacts({"a": [0], "b": [0], "c": [0, 1, 2], "d": [3]})
    plain = World(
        ratings,
        user_contacts=contacts,
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        delay=0.25,
        rating_exchange="attach",
        learning=Learning(rank=RANK),
    )
    return plain.replace(**changes)


def test_columns_of_the_probe(engine):
    # a sent 1 of 1 to one router, b 1 of 2 to one, c 3 of 4 to three, d only his profile to one
    result = simulate(four_users(), until=1.5, seed=1, engine=engine, at=[0.5], probes=[disclosure((0.0, 0.5, 1.0))])
    assert result.measured == [
        "ratings_disclosed",
        "rating_disclosures",
        "user_profile_bytes",
        "disclosed_share_p0",
        "disclosed_share_p50",
        "disclosed_share_p100",
        "profile_bytes_p0",
        "profile_bytes_p50",
        "profile_bytes_p100",
    ]
    number = 8 * RANK
    found = result.probes[["time", *result.measured]].to_numpy().tolist()
    assert found == [
        [0.0] + [0.0] * 9,
        [0.5, 5, 5, 6 * number, 0.5, 0.75, 1.0, number, number, 3 * number],
        [1.5, 5, 5, 12 * number, 0.5, 0.75, 1.0, 2 * number, 2 * number, 6 * number],
    ]
    assert result.users["ratings_disclosed"].tolist() == [1, 1, 3, 0]
    for column in ("ratings_disclosed", "rating_disclosures", "user_profile_bytes"):
        assert result.probes[column].dtype == np.int64


def test_profile_bytes_count_replies(engine):
    result = simulate(one_user(), until=0.9, seed=1, engine=engine, at=[0.4], probes=[disclosure(())])
    assert result.probes["user_profile_bytes"].tolist() == [0, 8 * RANK, 2 * 8 * RANK]


def test_quantiles_name_their_columns():
    probe = disclosure((0.05, 0.125, 0.29, np.float64(0.5), 1))
    shares = [column for column in probe.columns if column.startswith("disclosed_share")]
    assert shares == [f"disclosed_share_{q}" for q in ("p5", "p12_5", "p29", "p50", "p100")]
    assert disclosure().columns[-3:] == ("profile_bytes_p10", "profile_bytes_p50", "profile_bytes_p90")


def test_the_end_of_the_probe_is_that_of_the_result(engine):
    result = simulate(four_users(), until=3.0, seed=1, engine=engine, probes=[disclosure()])
    assert result.final["ratings_disclosed"] == (result.disclosed > 0).sum() == result.users["ratings_disclosed"].sum()
    assert result.final["rating_disclosures"] == result.disclosed.sum()
    assert result.final["user_profile_bytes"] == result.users["profile_bytes"].sum()


@pytest.mark.parametrize("quantile", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_a_quantile_out_of_range_is_refused(quantile):
    with pytest.raises(ValueError, match=r"quantiles must be numbers in \[0, 1\], got"):
        disclosure((0.5, quantile))


def test_a_single_quantile_is_refused_with_the_mend():
    with pytest.raises(ValueError, match="quantiles must be"):
        disclosure(0.5)
