"""What comes of a rating that is given or changed while the network runs: small cases, written out."""

import numpy as np
import pytest

from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    Checkpoint,
    GivenContacts,
    Learning,
    LogNormal,
    MessageTrace,
    Periodic,
    Raters,
    Simulation,
    World,
    simulate,
    staleness,
)
from netsim.tables import build_tables

EACH_SECOND = Periodic(1.0, phase=0.0)
HALF_PAST = Periodic(1.0, phase=0.5)
NEVER = Periodic(1.0, phase=1e6)
RANK, RATE, LAM = 2, 0.05, 0.1
REQUEST, ANSWER = 48, 8


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def one_user(**changes):
    """User "a" has rated item 0 of three that one router hosts; item 1 he rates at 1.6; he sends at 0, 1, ..."""
    ratings = Ratings.from_arrays(["a", "a"], [0, 1], [2.0, 4.0], item_ids=[0, 1, 2], scale=(1, 5))
    plain = World(
        ratings,
        routers=1,
        user_broadcast=EACH_SECOND,
        router_broadcast=NEVER,
        delay=0.25,
        minimum_delay=0.0,
        learning=Learning(rank=RANK, lam=LAM, rate=RATE),
        arrivals=Arrivals([0.0, 1.6]),
    )
    return plain.replace(**changes)


def one_pair(**changes):
    """User "a" has rated item "p" of router "x" with 2, and changes it to 5 at 1.6."""
    ratings = Ratings.from_arrays(["a"], ["p"], [2.0], scale=(1, 5))
    return one_user(ratings=ratings, routers=("x",), arrivals=Arrivals([0.0], ((1.6, 0, 5.0),))).replace(**changes)


RATED = {"a": "pq", "b": "qs", "c": "sp", "d": "tp"}
HOSTING = {"p": "w", "q": "w", "s": "x", "t": "y"}
ROUTERS = ("w", "x", "y", "z")


def network(**changes):
    """Four users; router w hosts p and q, x hosts s, y hosts t, z nothing; all are online and nothing is lost."""
    pairs = [(user, item) for user, items in RATED.items() for item in items]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + n % 5 for n in range(len(pairs))], scale=(1, 5))
    plain = one_user(ratings=ratings, routers=ROUTERS, hosting=HOSTING, router_broadcast=HALF_PAST, arrivals=None)
    return plain.replace(**changes)


def at(time, act):
    """A script that acts once."""

    def script(simulation):
        yield simulation.env.timeout(time)
        act(simulation)

    return script


def traced(world, until, *scripts):
    trace = MessageTrace()
    result = simulate(world, until=until, seed=1, scripts=scripts, trace=trace)
    rows = trace.frame()[["kind", "sent", "arrives", "fate"]]
    return list(rows.itertuples(index=False, name=None)), trace.frame(), result


def contacts(simulation, **node):
    """Ids in the contact list of a node."""
    tables, world = simulation._tables, simulation.world
    names = [*world.ratings.user_ids, *world.router_ids]
    return [names[each] for each in tables.contacts_of(simulation._node(node.get("user"), node.get("router")))]


def learned(v, u, *values):
    """The profile v after updates by u with the given ratings, equation (4)."""
    for x in values:
        v = v - RATE * u * (u @ v - x) - RATE * LAM * v
    return v


def same_profiles(first, second):
    for name in ("user_profiles", "item_profiles", "user_updates", "item_updates"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes(), name


# -- a rating that comes -----------------------------------------------------------------------------------------------


def test_a_rating_that_comes_is_asked_for_at_the_next_profile():
    messages, frame, result = traced(one_user(), 3.5)
    assert messages == [
        ("profile", 0.0, 0.25, "unknown"),
        ("request", 0.25, 0.5, "control"),
        ("reply", 0.5, 0.75, "updated"),
        ("profile", 1.0, 1.25, "updated"),
        ("profile", 2.0, 2.25, "updated"),  # of item 0; its count is higher
        ("request", 2.25, 2.5, "control"),
        ("reply", 2.5, 2.75, "updated"),
        ("profile", 3.0, 3.25, "updated"),
    ]
    asked = frame[frame["kind"] == "request"]["bytes"].tolist()
    assert asked == [REQUEST + 3 * ANSWER, REQUEST + 2 * ANSWER]  # not item 0 again
    assert result.item_updates.tolist() == [5, 2, 0]


@pytest.mark.parametrize(("until", "updates", "disclosed"), [(2.4, [3, 0, 0], [1, 0]), (3.5, [5, 2, 0], [1, 1])])
def test_it_is_unknown_before_and_used_after(engine, until, updates, disclosed):
    result = simulate(one_user(), until=until, seed=1, engine=engine)
    assert result.item_updates.tolist() == updates
    assert result.disclosed.tolist() == disclosed
    assert result.users["ratings"].tolist() == [2]
    assert result.users["ratings_disclosed"].tolist() == [sum(disclosed)]
    assert result.items["ratings"].tolist() == [1, disclosed[1], 0]


def test_it_moves_the_profile_by_its_value(engine):
    simulation = Simulation(one_user(), seed=1, engine=engine)
    u, v = simulation.view().user_profiles[0], simulation.view().item_profiles
    result = simulation.run(3.5)
    np.testing.assert_allclose(result.item_profiles[0], learned(v[0], u, *[2.0] * 5), rtol=1e-13)
    np.testing.assert_allclose(result.item_profiles[1], learned(v[1], u, 4.0, 4.0), rtol=1e-13)
    assert result.item_profiles[2].tobytes() == v[2].tobytes()


def test_the_user_uses_it_at_once(engine):
    """The profile of item 1 that is under way as he rates it moves him, the one before did not."""
    world = one_user(
        user_broadcast=NEVER,
        router_broadcast=HALF_PAST,
        router_contacts=GivenContacts({0: ["a"]}),
        arrivals=Arrivals([np.inf, 1.6], join="start"),
    )
    simulation = Simulation(world, seed=1, engine=engine)
    view = simulation.view()
    u, v = view.user_profiles[0], view.item_profiles[1]
    assert simulation.run(1.7).user_updates.tolist() == [0]
    result = simulation.run(2.9)  # taken at 1.75 and 2.75
    np.testing.assert_allclose(result.user_profiles[0], learned(u, v, 4.0, 4.0), rtol=1e-13)
    fates = result.accounts.set_index(["kind", "fate"])["messages"]
    assert (fates["profile", "updated"], fates["profile", "unrated"]) == (2, 3 * 3 - 2)


def test_at_equal_times_a_rating_comes_before_the_ticks_and_the_messages(engine):
    result = simulate(one_user(arrivals=Arrivals([0.0, 1.0])), until=1.5, seed=1, engine=engine)
    assert result.accounts.set_index(["kind", "fate"])["messages"]["request", "sent"] == 2
    until = simulate(one_user(arrivals=Arrivals([0.0, 1.0])), until=1.0, seed=1, engine=engine)
    assert (len(until.prequential), until.users["ratings"].tolist()) == (0, [1])


def test_the_count_divides_lambda_where_that_is_uniform(engine):
    """His second update comes after he has rated another item."""
    learning = Learning(rank=RANK, lam=0.3, rate=RATE, regularization="uniform")
    world = one_user(
        learning=learning,
        user_broadcast=NEVER,
        router_broadcast=Periodic(1.0, phase=0.5),
        delay=0.25,
        arrivals=Arrivals([0.0, 0.9]),
    )
    simulation = Simulation(world, seed=1, engine=engine)
    view = simulation.view()
    u, v = view.user_profiles[0], view.item_profiles
    result = simulation.run(1.9)
    # Item 1 has sent less often, so that of two messages at 1.75 its one, with the smaller stamp, comes first.
    for item, x, n in ((0, 2.0, 1), (1, 4.0, 2), (0, 2.0, 2)):
        u = u - RATE * v[item] * (u @ v[item] - x) - RATE * 0.3 / n * u
    np.testing.assert_allclose(result.user_profiles[0], u, rtol=1e-13)
    assert result.user_updates.tolist() == [3]


def test_who_is_offline_rates_too_and_sends_later(engine):
    def script(simulation):
        yield simulation.env.timeout(1.5)
        simulation.set_online(False, user="a")
        yield simulation.env.timeout(2.0)
        simulation.set_online(True, user="a")

    result = simulate(one_user(), until=5.0, seed=1, engine=engine, scripts=[script])
    assert result.prequential["time"].tolist() == [1.6]
    assert result.item_updates.tolist() == [4, 1, 0]  # at 0.75 and 1.25; 4.25; with the reply at 4.75


# -- attached ----------------------------------------------------------------------------------------------------------


def test_attached_ratings_come_with_the_next_profile():
    messages, frame, result = traced(one_user(rating_exchange="attach"), 2.5)
    assert messages == [("profile", time, time + 0.25, "updated") for time in (0.0, 1.0, 2.0)]
    assert np.diff([64, *frame["bytes"]]).tolist() == [16, 0, 16]
    assert result.item_updates.tolist() == [3, 1, 0]


@pytest.mark.parametrize(("until", "disclosed"), [(1.9, [1, 0]), (2.5, [1, 1])])
def test_attached_ratings_are_disclosed_as_they_are_sent(engine, until, disclosed):
    result = simulate(one_user(rating_exchange="attach"), until=until, seed=1, engine=engine)
    assert result.disclosed.tolist() == disclosed


def test_a_profile_carries_the_ratings_of_the_moment_it_was_sent(engine):
    """The profile sent at 1 arrives at 2; the rating at 1.6 is not in it, but in the one sent at 2."""
    result = simulate(one_user(rating_exchange="attach", delay=1.0), until=2.5, seed=1, engine=engine)
    assert result.disclosed.tolist() == [1, 1]
    assert result.item_updates.tolist() == [2, 0, 0]


def test_a_profile_carries_the_values_of_the_moment_it_was_sent(engine):
    simulation = Simulation(one_pair(rating_exchange="attach", delay=1.0), seed=1, engine=engine)
    view = simulation.view()
    result = simulation.run(2.5)  # those of 0 and 1 have arrived
    wanted = learned(view.item_profiles[0], view.user_profiles[0], 2.0, 2.0)
    np.testing.assert_allclose(result.item_profiles[0], wanted, rtol=1e-13)


def test_an_attached_change_is_used_from_the_next_profile_on(engine):
    simulation = Simulation(one_pair(rating_exchange="attach"), seed=1, engine=engine)
    view = simulation.view()
    result = simulation.run(3.5)
    wanted = learned(view.item_profiles[0], view.user_profiles[0], 2.0, 2.0, 5.0, 5.0)
    np.testing.assert_allclose(result.item_profiles[0], wanted, rtol=1e-13)
    assert result.items["ratings"].tolist() == [1]


# -- a rating that is changed ------------------------------------------------------------------------------------------


def test_a_changed_rating_is_asked_for_again_and_used_until_then():
    messages, frame, result = traced(one_pair(), 3.5)
    assert messages[3:] == [
        ("profile", 1.0, 1.25, "updated"),
        ("profile", 2.0, 2.25, "updated"),  # by the old value
        ("request", 2.25, 2.5, "control"),
        ("reply", 2.5, 2.75, "updated"),
        ("profile", 3.0, 3.25, "updated"),
    ]
    assert frame[frame["kind"] == "request"]["bytes"].tolist() == [REQUEST + ANSWER] * 2
    assert result.disclosed.tolist() == [1]


def test_a_change_moves_the_item_by_the_new_value_once_that_is_known(engine):
    simulation = Simulation(one_pair(), seed=1, engine=engine)
    view = simulation.view()
    result = simulation.run(3.5)
    wanted = learned(view.item_profiles[0], view.user_profiles[0], 2.0, 2.0, 2.0, 5.0, 5.0)
    np.testing.assert_allclose(result.item_profiles[0], wanted, rtol=1e-13)
    assert result.items["ratings"].tolist() == [1]
    assert result.users["ratings"].tolist() == [1]


def test_a_change_moves_the_user_at_once(engine):
    simulation = Simulation(one_pair(user_broadcast=NEVER, router_broadcast=HALF_PAST), seed=1, engine=engine)
    view = simulation.view()
    result = simulation.run(2.9)  # taken at 0.75, 1.75, 2.75
    wanted = learned(view.user_profiles[0], view.item_profiles[0], 2.0, 5.0, 5.0)
    np.testing.assert_allclose(result.user_profiles[0], wanted, rtol=1e-13)


def test_a_change_does_not_make_routers_ask_for_what_was_not_rated():
    """Two items of one router, of which he rated one."""
    ratings = Ratings.from_arrays(["a"], ["p"], [2.0], item_ids=["p", "q"], scale=(1, 5))
    _, frame, _ = traced(one_pair(ratings=ratings), 3.5)
    assert frame[frame["kind"] == "request"]["bytes"].tolist() == [REQUEST + 2 * ANSWER, REQUEST + ANSWER]


def test_several_changes_are_each_learned(engine):
    world = one_pair(arrivals=Arrivals([0.0], ((1.6, 0, 5.0), (1.7, 0, 1.0), (3.6, 0, 4.0))))
    simulation = Simulation(world, seed=1, engine=engine)
    view = simulation.view()
    result = simulation.run(5.5)
    values = [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 4.0, 4.0]  # 0.75, 1.25, 2.25; 2.75, 3.25, 4.25; 4.75, 5.25
    wanted = learned(view.item_profiles[0], view.user_profiles[0], *values)
    np.testing.assert_allclose(result.item_profiles[0], wanted, rtol=1e-13)
    assert len(result.prequential) == 3


def late_reply(simulation):
    """The first reply, sent at 0.5, takes 2 s."""
    yield simulation.env.timeout(0.4)
    simulation.set_delay(2.0)
    yield simulation.env.timeout(0.2)
    simulation.set_delay(0.25)


def test_a_late_reply_does_not_hide_a_rating_that_came_meanwhile(engine):
    """At 2.5 the reply says that item 1 is not rated, but the profile that came at 2.25 had a higher count."""
    world = one_user(arrivals=Arrivals([0.0, 0.6]))
    result = simulate(world, until=9.0, seed=1, engine=engine, scripts=[late_reply])
    assert result.items["ratings"].tolist() == [1, 1, 0]
    assert result.item_updates[1] > 0


def test_a_late_reply_does_not_hide_a_change(engine):
    world = one_pair(arrivals=Arrivals([0.0], ((0.6, 0, 5.0),)))
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.env.process(late_reply(simulation))
    simulation.run(8.0)
    view = simulation.view()
    result = simulation.run(9.0)
    wanted = learned(view.item_profiles[0], view.user_profiles[0], 5.0)
    np.testing.assert_allclose(result.item_profiles[0], wanted, rtol=1e-13)


def test_a_late_reply_does_not_undo_a_newer_one(engine):
    """The router has asked again at 2.25 and knows the rating of item 1 from 2.75 on; at 3 the first reply comes."""

    def script(simulation):
        yield simulation.env.timeout(0.4)
        simulation.set_delay(2.5)
        yield simulation.env.timeout(0.2)
        simulation.set_delay(0.25)

    world = one_user(arrivals=Arrivals([0.0, 0.6]), request_timeout=1.75)
    result = simulate(world, until=4.5, seed=1, engine=engine, scripts=[script])
    assert result.accounts.set_index(["kind", "fate"])["messages"]["request", "sent"] == 2
    assert result.item_updates[1] == 3  # at 2.75, 3.25, 4.25


def test_ages_count_a_rating_that_is_asked_for_again(engine):
    """At 2.4 the change is asked for; the router still uses the old value and has taken the profile of 2."""
    simulation = Simulation(one_pair(), seed=1, engine=engine, probes=[staleness()])
    simulation.run(2.4)
    np.testing.assert_allclose(simulation.view().router_ages, [0.4])


# -- who is listed -----------------------------------------------------------------------------------------------------


def test_lists_follow_the_ratings(engine):
    """b rates s at 1.6 and a changes q at 2.6, which adds nobody."""
    ratings = network().ratings
    times = np.zeros(len(ratings))
    times[3] = 1.6
    world = network(arrivals=Arrivals(times, ((2.6, 1, 4.0),)))
    simulation = Simulation(world, seed=1, engine=engine)
    assert contacts(simulation, user="b") == ["w"]
    assert contacts(simulation, router="x") == ["c"]
    for until in (2.0, 3.0):
        simulation.run(until)
        assert contacts(simulation, user="b") == ["w", "x"]
        assert contacts(simulation, router="x") == ["b", "c"]
        assert contacts(simulation, user="a") == ["w"]


def test_a_second_rating_at_a_router_lists_nobody_twice(engine):
    times = np.zeros(8)
    times[1] = 1.6
    simulation = Simulation(network(arrivals=Arrivals(times)), seed=1, engine=engine)
    simulation.run(2.0)
    assert (contacts(simulation, user="a"), contacts(simulation, router="w")) == (["w"], ["a", "b", "c", "d"])


def test_given_lists_do_not_follow(engine):
    """b's list is given, so nobody asks for his rating; the router's, that follows, has him."""
    times = np.zeros(8)
    times[3] = 1.6
    world = network(arrivals=Arrivals(times), user_contacts=GivenContacts({"b": ["w"]}))
    simulation = Simulation(world, seed=1, engine=engine)
    result = simulation.run(4.4)
    assert contacts(simulation, user="b") == ["w"]
    assert contacts(simulation, router="x") == ["b", "c"]
    assert result.disclosed[3] == 0
    other = Simulation(
        world.replace(user_contacts=world.replace().user_contacts, router_contacts=GivenContacts({})),
        seed=1,
        engine=engine,
    )
    other.run(4.4)
    assert contacts(other, router="x") == []


def test_a_pair_that_nobody_foresaw_is_listed_on_both_sides(engine):
    simulation = Simulation(network(), seed=1, engine=engine)
    simulation.run(1.0)
    simulation.add_rating("a", "s", 3.0)
    assert (contacts(simulation, user="a"), contacts(simulation, router="x")) == (["w", "x"], ["a", "b", "c"])


def raters(n, **changes):
    """n users who rated the one item of router "x"."""
    ratings = Ratings.from_arrays([f"u{k}" for k in range(n)], ["p"] * n, [3.0] * n, scale=(1, 5))
    return one_user(ratings=ratings, routers=("x",), arrivals=None).replace(**changes)


def test_a_capped_list_is_filled_and_no_longer(engine):
    """Ratings come one after another."""
    world = raters(4, router_contacts=Raters(2), arrivals=Arrivals([0.4, 1.4, 2.4, 3.4]))
    simulation = Simulation(world, seed=1, engine=engine)
    lengths = [len(contacts(simulation, router="x"))]
    for until in (1.0, 2.0, 3.0, 4.0):
        simulation.run(until)
        lengths.append(len(contacts(simulation, router="x")))
    assert lengths == [0, 1, 2, 2, 2]
    assert contacts(simulation, router="x") == ["u0", "u1"]


@pytest.mark.parametrize("seed", range(4))
def test_a_capped_list_starts_as_if_nothing_were_to_come(seed):
    world = raters(10, router_contacts=Raters(2), arrivals=Arrivals([0.0, 0.0, 0.0] + [9.0] * 7))
    first = raters(3, router_contacts=Raters(2))
    assert contacts(Simulation(world, seed=seed), router="x") == contacts(Simulation(first, seed=seed), router="x")


def test_a_capped_list_of_few_raters_has_them_all_at_the_start():
    """Only a control of the test above: without later ratings it is so."""
    assert contacts(Simulation(raters(2, router_contacts=Raters(2)), seed=1), router="x") == ["u0", "u1"]


# -- who joins ---------------------------------------------------------------------------------------------------------


def test_users_items_and_routers_join_with_their_first_rating(engine):
    """d, who alone rated t of router y, comes at 2.2."""
    world = network(arrivals=Arrivals.of_users(network().ratings, ["d"], at=2.2))
    simulation = Simulation(world, seed=1, engine=engine)
    start = simulation.view()
    assert start.users_online.tolist() == [True, True, True, False]
    assert start.routers_online.tolist() == [True, True, False, True]  # z hosts nothing, and waits for nothing
    before = simulation.run(2.1)
    assert before.users["profiles_sent"].tolist()[3] == before.routers["profiles_sent"].tolist()[2] == 0
    assert before.user_profiles[3].tobytes() == start.user_profiles[3].tobytes()
    assert before.item_profiles[3].tobytes() == start.item_profiles[3].tobytes()
    after = simulation.run(4.2)
    assert simulation.view().users_online.all()
    assert simulation.view().routers_online.all()
    assert after.users["profiles_sent"].tolist()[3] == 4 + 2  # ticks 3 and 4 to w and y; two replies
    assert after.routers["profiles_sent"].tolist()[2] == 2  # ticks 2.5 and 3.5
    assert after.user_updates[3] == 4  # of p and t, each twice
    assert after.item_updates[3] == 1  # by the reply at 3.75


def test_an_item_that_has_not_come_is_not_sent(engine):
    """q, of the same router as p, is rated at 1.6 for the first time."""
    pairs = (["a", "b", "a"], ["p", "p", "q"], [2.0, 3.0, 4.0])
    ratings = Ratings.from_arrays(*pairs, scale=(1, 5))
    assert ratings.to_frame()["item"].tolist() == ["p", "q", "p"]
    world = network(ratings=ratings, routers=("x",), hosting=None, user_broadcast=NEVER)
    late = world.replace(arrivals=Arrivals([0.0, 1.6, 0.0]))
    result = simulate(late, until=3.0, seed=1, engine=engine)
    assert result.routers["profiles_sent"].tolist() == [2 + 2 + 4]  # at 0.5 and 1.5 p alone, at 2.5 both
    early = simulate(late.replace(arrivals=Arrivals([0.0, 1.6, 0.0], join="start")), until=3.0, seed=1, engine=engine)
    assert early.routers["profiles_sent"].tolist() == [4 * 3]


def test_join_start_has_everyone_there(engine):
    world = network(arrivals=Arrivals(np.full(8, 2.2), join="start"))
    simulation = Simulation(world, seed=1, engine=engine)
    assert simulation.view().users_online.all()
    assert simulation.view().routers_online.all()
    assert contacts(simulation, user="a") == contacts(simulation, router="w") == []
    result = simulation.run(2.1)
    assert result.accounts["messages"].sum() == 0
    assert (simulation.run(6.0).user_updates > 0).all()


def held_until(time, users, routers):
    """A script that keeps nodes away until a time."""

    def script(simulation):
        for user in users:
            simulation.hold_offline(user=user)
        for router in routers:
            simulation.hold_offline(router=router)
        yield simulation.env.timeout(time)
        for user in users:
            simulation.release_offline(user=user)
        for router in routers:
            simulation.release_offline(router=router)

    return script


@pytest.mark.parametrize("join", ["first_rating", "start"])
def test_who_comes_later_has_the_draws_of_one_who_was_there_and_away(engine, join):
    """Profiles are those of a world in which d and router y are there from the start, and offline until 3.3."""
    learning = Learning(rank=RANK, lam=LAM, rate=RATE, regularization="uniform")
    world = network(delay=LogNormal(0.2, 0.8), loss=0.1, learning=learning, user_broadcast=0.7, router_broadcast=0.7)
    came = Arrivals.of_users(world.ratings, ["d"], at=3.3)
    came = Arrivals(came.times, join=join)
    coming = simulate(world.replace(arrivals=came), until=12.0, seed=5, engine=engine)
    away = simulate(world, until=12.0, seed=5, engine=engine, scripts=[held_until(3.3, ["d"], ["y"])])
    same_profiles(coming, away)
    assert coming.item_updates[3] > 0
    pairs = [[each.users[name].tolist() for name in ("ratings", "ratings_disclosed")] for each in (coming, away)]
    assert pairs[0] == pairs[1]


def test_join_brings_a_user_and_an_item_without_a_rating(engine):
    world = network(arrivals=Arrivals.of_users(network().ratings, ["d"], at=9.0))
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.run(1.0)
    simulation.join(user="d")
    assert simulation.view().users_online.tolist() == [True] * 4
    assert simulation.view().routers_online.tolist() == [True, True, False, True]
    simulation.join(item="t")
    assert simulation.view().routers_online.all()
    simulation.join(item="t")
    assert simulation.run(2.0).routers["profiles_sent"][2] == 0  # nobody has rated it


def test_who_is_held_offline_joins_offline(engine):
    def script(simulation):
        simulation.hold_offline(user="d")
        yield simulation.env.timeout(3.0)
        assert not simulation.view().users_online[3]
        simulation.release_offline(user="d")
        assert simulation.view().users_online[3]

    world = network(arrivals=Arrivals.of_users(network().ratings, ["d"], at=2.2), user_return="reset")
    simulation = Simulation(world, seed=1, engine=engine)
    start = simulation.view()
    simulation.env.process(script(simulation))
    result = simulation.run(3.1)
    assert result.user_profiles[3].tobytes() == start.user_profiles[3].tobytes()  # he had lost nothing


# -- scripts -----------------------------------------------------------------------------------------------------------


def test_a_script_that_adds_a_foreseen_rating_is_an_arrival(engine):
    drawn = {"delay": LogNormal(0.2, 0.8), "user_broadcast": 0.7}
    coming = simulate(one_user(**drawn), until=9.0, seed=1, engine=engine)
    world = one_user(arrivals=Arrivals([0.0, np.inf]), **drawn)
    added = simulate(world, until=9.0, seed=1, engine=engine, scripts=[at(1.6, lambda run: run.add_rating("a", 1, 4))])
    same_profiles(coming, added)
    assert coming.prequential.equals(added.prequential)
    assert coming.disclosed.tolist() == added.disclosed.tolist() == [1, 1]
    never = simulate(world, until=9.0, seed=1, engine=engine)
    assert (never.item_updates[1], never.prequential.empty) == (0, True)


def test_what_a_script_gave_before_does_not_come_again(engine):
    world = one_user()  # item 1 with 4 at 1.6
    given = simulate(world, until=9.0, seed=1, engine=engine, scripts=[at(1.0, lambda run: run.add_rating("a", 1, 5))])
    assert given.prequential[["time", "rating"]].to_numpy().tolist() == [[1.0, 5.0]]
    assert given.users["ratings"].tolist() == [2]


def test_what_would_come_from_a_user_who_has_quit_comes_to_nothing(engine):
    world = one_user(arrivals=Arrivals([0.0, 1.6], ((1.8, 0, 5.0),)))
    there = simulate(world, until=3.0, seed=1, engine=engine)
    assert there.prequential["time"].tolist() == [1.6, 1.8]
    simulation = Simulation(world.replace(user_lifetime=1.0), seed=1, engine=engine)
    gone = simulation.run(3.0)
    assert gone.prequential.empty
    assert gone.users["ratings"].tolist() == [1]
    assert simulation.view().known.tolist() == [True, False]
    assert gone.item_updates[1] == 0


def test_a_script_that_adds_what_nobody_foresaw_is_an_arrival(engine):
    drawn = {"delay": LogNormal(0.2, 0.8), "user_broadcast": 0.7}
    coming = simulate(one_user(arrivals=Arrivals([0.0, 1.6], join="start"), **drawn), until=9.0, seed=1, engine=engine)
    ratings = Ratings.from_arrays(["a"], [0], [2.0], item_ids=[0, 1, 2], scale=(1, 5))
    world = one_user(ratings=ratings, arrivals=None, **drawn)
    added = simulate(world, until=9.0, seed=1, engine=engine, scripts=[at(1.6, lambda run: run.add_rating("a", 1, 4))])
    same_profiles(coming, added)
    assert coming.prequential.equals(added.prequential)
    assert added.disclosed.tolist() == [1]  # those of the world
    assert added.users["ratings_disclosed"].tolist() == coming.users["ratings_disclosed"].tolist() == [2]
    assert added.users["ratings"].tolist() == [2]


def test_what_nobody_foresaw_moves_no_other_rating(engine):
    """A rating of the first user goes in before those of the others, who keep theirs and their disclosures."""
    simulation = Simulation(network(router_broadcast=NEVER), seed=1, engine=engine)
    simulation.run(1.0)
    before = simulation.view()
    simulation.add_rating("a", "s", 5.0)
    view = simulation.view()
    assert view.ratings == before.ratings == simulation.world.ratings
    assert view.disclosed.tolist() == before.disclosed.tolist() == [1] * 8
    result = simulation.run(4.4)
    assert result.items["ratings"].tolist() == [3, 2, 3, 1]
    assert result.users["ratings_disclosed"].tolist() == [3, 2, 2, 2]


def test_a_script_that_changes_a_rating_is_a_change(engine):
    coming = simulate(one_pair(), until=5.0, seed=1, engine=engine)
    world = one_pair(arrivals=None)
    changed = simulate(
        world, until=5.0, seed=1, engine=engine, scripts=[at(1.6, lambda run: run.add_rating("a", "p", 5))]
    )
    same_profiles(coming, changed)
    assert coming.prequential.equals(changed.prequential)


# -- with moves, resets, checkpoints -----------------------------------------------------------------------------------


def test_a_rating_of_an_item_that_has_moved_goes_to_the_heir(engine):
    times = np.zeros(8)
    times[3] = 3.6  # b's of s
    world = network(arrivals=Arrivals(times), rehosting="fresh")
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.env.process(at(2.1, lambda run: run.depart(router="x"))(simulation))
    result = simulation.run(6.9)
    heir = result.items["router"][2]
    assert heir != "x"
    assert heir in contacts(simulation, user="b")
    assert "b" in contacts(simulation, router=heir)
    assert "x" not in contacts(simulation, user="b")
    assert result.items["ratings"][2] == 2
    assert result.disclosed[3] == 1


def test_an_item_moves_before_it_comes(engine):
    """Router y quits before t is rated for the first time."""
    came = Arrivals.of_users(network().ratings, ["d"], at=2.2)
    for rehosting in ("fresh", "handover"):
        simulation = Simulation(network(arrivals=came, rehosting=rehosting), seed=1, engine=engine)
        simulation.env.process(at(1.1, lambda run: run.depart(router="y"))(simulation))
        early = simulation.run(2.1)
        heir = early.items["router"][3]
        assert heir != "y"
        assert early.accounts.set_index(["kind", "fate"])["messages"]["handover", "sent"] == 0
        result = simulation.run(6.1)
        assert heir in contacts(simulation, user="d")
        assert "d" in contacts(simulation, router=heir)
        assert result.items["ratings"][3] == 1
        assert result.item_updates[3] > 0
        start = Simulation(network(), seed=1).view()
        assert early.item_profiles[3].tobytes() == start.item_profiles[3].tobytes()


def test_a_router_that_starts_anew_asks_for_all_that_has_come(engine):
    def script(simulation):
        yield simulation.env.timeout(3.4)
        simulation.reset(router=0)
        simulation.reset(user="a")

    result = simulate(one_user(), until=5.5, seed=1, engine=engine, scripts=[script])
    assert result.items["ratings"].tolist() == [1, 1, 0]
    assert result.item_updates.tolist() == [2, 2, 0]  # by the reply at 4.75, and at 5.25
    assert result.users["ratings"].tolist() == [2]
    assert result.accounts.set_index(["kind", "fate"])["messages"]["request", "sent"] == 3


def test_a_router_that_goes_back_to_its_checkpoint_asks_again(engine):
    """Its checkpoint, between 1.3 and 1.5, knows item 0 only; it learned of item 1 at 2.75 and is away at 2.8."""
    world = one_user(router_return=Checkpoint(10.0))
    phase = {seed: build_tables(world, seed).life["checkpoint_phase"][1] for seed in range(400)}
    seed = next(seed for seed, found in phase.items() if 1.3 < found < 1.5)

    def away(simulation):
        yield simulation.env.timeout(2.8)
        simulation.set_online(False, router=0)
        yield simulation.env.timeout(0.1)
        simulation.set_online(True, router=0)

    simulation = Simulation(world, seed=seed, engine=engine)
    simulation.env.process(away(simulation))
    between = simulation.run(2.95)
    assert (between.items["ratings"].tolist(), between.item_updates.tolist()) == ([1, 0, 0], [2, 0, 0])
    result = simulation.run(4.4)
    assert result.accounts.set_index(["kind", "fate"])["messages"]["request", "sent"] == 3
    assert (result.items["ratings"].tolist(), result.item_updates.tolist()) == ([1, 1, 0], [5, 2, 0])


def test_a_user_keeps_his_ratings_through_a_checkpoint(engine):
    """He writes one before he rates item 1, and goes back to it: what he rated stays."""
    world = one_user(user_return=Checkpoint(10.0), router_broadcast=HALF_PAST)
    phase = {seed: build_tables(world, seed).life["checkpoint_phase"][0] for seed in range(400)}
    seed = next(seed for seed, found in phase.items() if 0.2 < found < 0.7)

    def away(simulation):
        yield simulation.env.timeout(1.8)
        simulation.set_online(False, user="a")
        yield simulation.env.timeout(0.1)
        simulation.set_online(True, user="a")

    simulation = Simulation(world, seed=seed, engine=engine)
    start = simulation.view()
    simulation.env.process(away(simulation))
    back = simulation.run(1.95)
    assert back.user_profiles[0].tobytes() == start.user_profiles[0].tobytes()
    assert back.users["ratings"].tolist() == [2]
    result = simulation.run(2.9)
    assert result.user_updates.tolist() == [2]  # of items 0 and 1, at 2.75
    assert result.items["ratings"].tolist() == [1, 1, 0]


def test_a_change_of_an_item_that_has_moved_moves_the_user(engine):
    """The heir sends at 4.5; the rating was changed at 3.6."""
    world = one_pair(
        routers=("x", "z"),
        hosting={"p": "x"},
        rehosting="fresh",
        user_broadcast=NEVER,
        router_broadcast=HALF_PAST,
        arrivals=Arrivals([0.0], ((3.6, 0, 5.0),)),
    )
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.env.process(at(2.1, lambda run: run.depart(router="x"))(simulation))
    v = simulation.run(4.5).item_profiles[0]
    u = simulation.run(4.75).user_profiles[0]
    np.testing.assert_allclose(simulation.run(4.8).user_profiles[0], learned(u, v, 5.0), rtol=1e-13)
    assert simulation.run(4.9).items["router"].tolist() == ["z"]


def test_an_item_that_is_there_does_not_move_to_a_router_that_is_not(engine):
    """Router y, whose only item t has not come, is the only one left as the others quit."""
    came = Arrivals.of_users(network().ratings, ["d"], at=9.2)
    world = network(arrivals=came, rehosting="handover", routers=("w", "y"), hosting={**HOSTING, "s": "w"})
    simulation = Simulation(world, seed=1, engine=engine)
    simulation.env.process(at(2.1, lambda run: run.depart(router="w"))(simulation))
    result = simulation.run(4.0)
    there = dict(zip(result.routers["router"], result.routers["online"], strict=True))
    assert all(router == "w" or there[router] for router in result.items["router"][:3])


def test_only_what_has_come_is_handed_over(engine):
    """Router w hosts p and q, and q has not come; its heir hosts both."""
    ratings = Ratings.from_arrays(["a", "a", "b"], ["p", "q", "p"], [2.0, 4.0, 3.0], scale=(1, 5))
    world = network(
        ratings=ratings,
        routers=("w", "z"),
        hosting={"p": "w", "q": "w"},
        rehosting="handover",
        arrivals=Arrivals([0.0, 3.6, 0.0]),
    )
    simulation = Simulation(world, seed=1, engine=engine)
    q = simulation.view().item_profiles[1]
    simulation.env.process(at(2.1, lambda run: run.depart(router="w"))(simulation))
    early = simulation.run(3.5)
    assert early.accounts.set_index(["kind", "fate"])["messages"]["handover", "sent"] == 1
    assert early.item_profiles[1].tobytes() == q.tobytes()
    result = simulation.run(5.5)
    assert result.items["router"].tolist() == ["z", "z"]
    assert result.items["ratings"].tolist() == [2, 1]


def test_an_item_that_has_come_starts_anew_as_one_that_was_there(engine):
    """After a reset the profile of item 1 is that of a world where it was there from the start."""
    reset = at(3.1, lambda run: run.reset(router=0))
    came = simulate(one_user(user_broadcast=NEVER), until=4.0, seed=1, engine=engine, scripts=[reset])
    there = simulate(one_user(user_broadcast=NEVER, arrivals=None), until=4.0, seed=1, engine=engine, scripts=[reset])
    assert came.item_profiles.tobytes() == there.item_profiles.tobytes()


def test_an_item_that_nobody_ever_rates_is_there_from_the_start(engine):
    """Item 2 is sent at 0.5 with item 0; item 1 comes at 1.6."""
    world = one_user(user_broadcast=NEVER, router_broadcast=HALF_PAST)
    assert simulate(world, until=1.0, seed=1, engine=engine).routers["profiles_sent"].tolist() == [2]
    assert simulate(world, until=3.0, seed=1, engine=engine).routers["profiles_sent"].tolist() == [2 + 2 + 3]
