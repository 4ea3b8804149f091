"""Contact lists that change by themselves: drawn anew, heard of, dropped for silence."""

import math

import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ROUTER, USER, combine, draw, entity_keys
from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    GivenContacts,
    HeardUsers,
    LearnedRouters,
    Learning,
    MessageTrace,
    Periodic,
    RandomRouters,
    RandomUsers,
    Raters,
    Simulation,
    World,
    simulate,
)
from tests.worlds import assert_same_bits

SEED = 3
EACH_SECOND = Periodic(1.0, phase=0.0)
HALF_PAST = Periodic(1.0, phase=0.5)
NEVER = Periodic(1e6, phase=1e6)
RATED = {"a": "pq", "b": "qs", "c": "sp", "d": "t"}
HOSTING = {"p": "w", "q": "w", "s": "x", "t": "y"}
USERS, ROUTERS = ("a", "b", "c", "d"), ("w", "x", "y", "z")


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def network(**changes):
    """Four users; router w hosts p and q, x hosts s, y hosts t, z nothing; 0.25 s a message.

    Users broadcast at 0, 1, ... and routers at 0.5, 1.5, ...
    """
    pairs = [(user, item) for user, items in RATED.items() for item in items]
    ratings = Ratings.from_arrays(*zip(*pairs, strict=True), [1.0 + n % 5 for n in range(len(pairs))], scale=(1, 5))
    plain = World(
        ratings,
        routers=ROUTERS,
        hosting=HOSTING,
        user_broadcast=EACH_SECOND,
        router_broadcast=HALF_PAST,
        delay=0.25,
        minimum_delay=0.0,
        rating_exchange="attach",
        learning=Learning(rank=2),
    )
    return plain.replace(**changes)


def contacts(simulation, **node):
    """Ids in the contact list of a node, joined."""
    tables, world = simulation._tables, simulation.world
    names = [*world.ratings.user_ids, *world.router_ids]
    return "".join(names[n] for n in tables.contacts_of(simulation._node(node.get("user"), node.get("router"))))


def at(time, do):
    """A script that does something at an absolute time, before what the network does then."""

    def script(simulation):
        yield simulation.env.at(time, (-1, 1))
        do(simulation)

    return script


def lists(world, engine, times, *scripts, **node):
    """The list of a node at some times; what happens at that time itself in the network comes after."""
    seen = {}

    def look(time):
        return at(time, lambda simulation: seen.update({time: contacts(simulation, **node)}))

    simulate(world, until=max(times) + 0.125, seed=SEED, engine=engine, scripts=[*scripts, *map(look, times)])
    return [seen[time] for time in times]


def call(time, method, *arguments, **keywords):
    return at(time, lambda simulation: getattr(simulation, method)(*arguments, **keywords))


# -- drawn anew ----------------------------------------------------------------------------------------------------


def drawn(owner, others, count, number):
    """The others whose draws are smallest, of the pair and the number of the redraw."""
    role, other_role = (USER, ROUTER) if owner in USERS else (ROUTER, USER)
    key, keys = entity_keys(role, [owner])[0], entity_keys(other_role, others)
    pairs = [np.uint64(combine(key, each)) for each in keys]
    words = [int(draw(np.uint64(SEED), purposes.CONTACTS, pair, number)) for pair in pairs]
    return "".join(sorted(sorted(others, key=lambda name: words[others.index(name)])[:count]))


@pytest.mark.parametrize("user", USERS)
def test_users_lists_are_drawn_anew_at_each_multiple(engine, user):
    world = network(user_contacts=RandomRouters(2, every=1.5))
    numbers = {0.0: 0, 1.25: 0, 1.5: 1, 2.875: 1, 3.0: 2, 4.5: 3, 5.875: 3, 6.0: 4}
    expected = [drawn(user, ROUTERS, 2, number) for number in numbers.values()]
    assert len(set(expected)) > 1
    assert lists(world, engine, list(numbers), user=user) == expected


@pytest.mark.parametrize("router", ROUTERS)
def test_routers_lists_are_drawn_anew_at_each_multiple(engine, router):
    world = network(router_contacts=RandomUsers(3, every=0.75))
    numbers = {0.0: 0, 0.625: 0, 0.75: 1, 1.5: 2, 2.125: 2, 7.5: 10}
    expected = [drawn(router, USERS, 3, number) for number in numbers.values()]
    assert len(set(expected)) > 1
    assert lists(world, engine, list(numbers), router=router) == expected


def test_both_sides_are_drawn_anew_each_at_its_own_times(engine):
    world = network(user_contacts=RandomRouters(1, every=1.0), router_contacts=RandomUsers(1, every=0.5))
    assert lists(world, engine, [2.0], user="b") == [drawn("b", ROUTERS, 1, 2)]
    assert lists(world, engine, [2.0], router="w") == [drawn("w", USERS, 1, 4)]


def test_without_every_lists_stay(engine):
    world = network(user_contacts=RandomRouters(2), router_contacts=RandomUsers(2))
    assert lists(world, engine, [0.0, 50.0], user="c") == [drawn("c", ROUTERS, 2, 0)] * 2
    assert lists(world, engine, [0.0, 50.0], router="x") == [drawn("x", USERS, 2, 0)] * 2


def test_times_of_redraws_are_products_and_no_sums(engine):
    third = 3 * 0.1
    assert third > 0.3
    first = lists(network(user_contacts=RandomRouters(2, every=0.1)), engine, [0.3, third], user="b")
    assert first == [drawn("b", ROUTERS, 2, 2), drawn("b", ROUTERS, 2, 3)]
    assert first[0] != first[1]


def test_a_broadcast_at_the_time_of_a_redraw_goes_to_the_new_list():
    trace = MessageTrace()
    world = network(user_contacts=RandomRouters(2, every=1.0), router_contacts=RandomUsers(1, every=0.5))
    result = simulate(world, until=4.0, seed=SEED, engine="events", trace=trace)
    frame = trace.frame()
    for user in range(4):
        for tick in range(4):
            sent = frame[(frame["sender"] == user) & (frame["sent"] == tick)]
            assert "".join(ROUTERS[n - 4] for n in sent["receiver"]) == drawn(USERS[user], ROUTERS, 2, tick)
    for router, hosted in enumerate((2, 1, 1, 0)):
        for tick in range(4):
            sent = frame[(frame["sender"] == 4 + router) & (frame["sent"] == tick + 0.5)]
            chosen = drawn(ROUTERS[router], USERS, 1, 2 * tick + 1)
            assert "".join(USERS[n] for n in sent["receiver"]) == chosen * hosted
    assert_same_bits(result, simulate(world, until=4.0, seed=SEED, engine="compiled"))


def test_what_is_known_over_an_edge_is_kept_while_it_is_out_of_the_list(engine):
    # "c" rated an item of w and one of x. Whom he meets again knows his ratings, and does not ask again.
    world = network(user_contacts=RandomRouters(1, every=1.0), rating_exchange="request", router_broadcast=NEVER)
    met = [drawn("c", ROUTERS, 1, number) for number in range(40)]
    assert min(met.count("w"), met.count("x")) > 2  # he does meet them again
    quiet = [call(0.0, "hold_offline", user=user) for user in "abd"]  # so that all requests are to "c"
    result = simulate(world, until=40.0, seed=SEED, engine=engine, scripts=quiet)
    asked = result.accounts.set_index(["kind", "fate"])["messages"]["request", "sent"]
    # Once each for p of w, with q, and for s of x; y and z: y asks for t, z hosts nothing.
    assert asked == len(set(met) - {"z"})


def test_a_list_that_a_script_gives_lasts_until_the_next_redraw(engine):
    world = network(user_contacts=RandomRouters(2, every=1.5))
    longer = call(1.75, "set_contacts", ROUTERS, user="a")
    shorter = call(3.25, "set_contacts", [], user="a")
    assert lists(world, engine, [1.625, 1.875, 3.0, 3.5, 4.5], longer, shorter, user="a") == [
        drawn("a", ROUTERS, 2, 1),
        "wxyz",
        drawn("a", ROUTERS, 2, 2),
        "",
        drawn("a", ROUTERS, 2, 3),
    ]


def test_redraws_go_on_in_a_further_run(engine):
    simulation = Simulation(network(user_contacts=RandomRouters(2, every=1.5)), seed=SEED, engine=engine)
    simulation.run(1.5)  # the end comes before what happens at that time
    assert contacts(simulation, user="b") == drawn("b", ROUTERS, 2, 0)
    simulation.run(3.25)
    assert contacts(simulation, user="b") == drawn("b", ROUTERS, 2, 2)


def test_all_lists_are_of_all_where_the_count_is(engine):
    world = network(user_contacts=RandomRouters(4, every=0.5))
    assert lists(world, engine, [0.0, 0.5, 1.0], user="d") == ["wxyz"] * 3


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: RandomRouters(0), "RandomRouters: count must be an integer >= 1, got 0"),
        (lambda: RandomUsers(1.5), "RandomUsers: count must be an integer >= 1, got 1.5"),
        (lambda: RandomRouters(2, every=0), "RandomRouters: every must be a finite number of seconds > 0.*got 0"),
        (lambda: RandomRouters(2, every=-1.0), "RandomRouters: every must be .*got -1.0"),
        (lambda: RandomUsers(2, every=math.inf), "RandomUsers: every must be .*got inf"),
        (lambda: RandomUsers(2, every=math.nan), "RandomUsers: every must be .*got nan"),
        (lambda: RandomUsers(2, every="1"), "RandomUsers: every must be .*got '1'"),
        (lambda: RandomUsers(2, every=True), "RandomUsers: every must be .*got True"),
        (lambda: LearnedRouters(timeout=0), "LearnedRouters: timeout must be a finite number of seconds > 0, got 0"),
        (lambda: LearnedRouters(timeout=math.inf), "LearnedRouters: timeout must be .*got inf"),
        (lambda: LearnedRouters(timeout=math.nan), "LearnedRouters: timeout must be .*got nan"),
        (lambda: LearnedRouters(timeout="30"), "LearnedRouters: timeout must be .*got '30'"),
        (lambda: LearnedRouters(at_once=0), "LearnedRouters: at_once must be an integer >= 1, got 0"),
        (lambda: LearnedRouters(at_once=2.0), "LearnedRouters: at_once must be .*got 2.0"),
        (lambda: LearnedRouters(at_once=True), "LearnedRouters: at_once must be .*got True"),
        (lambda: network(user_contacts=HeardUsers()), "user_contacts must be .*got HeardUsers"),
        (lambda: network(router_contacts=LearnedRouters()), "router_contacts must be .*got LearnedRouters"),
        (lambda: network(user_patience=0), "user_patience must be a finite number of seconds > 0, or None, got 0"),
        (lambda: network(user_patience=math.inf), "user_patience must be .*got inf"),
        (lambda: network(router_patience="2"), "router_patience must be .*got '2'"),
        (lambda: network(router_patience=-1.0), "router_patience must be .*got -1.0"),
    ],
)
def test_a_wrong_argument_is_refused(make, told):
    with pytest.raises(ValueError, match=told):
        make()


@pytest.mark.parametrize("make", [lambda: LearnedRouters(timeout=True), lambda: RandomRouters(True)])
def test_a_truth_value_is_no_number(make):
    with pytest.raises(ValueError, match="got True"):
        make()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"user_contacts": RandomRouters(5, every=1.0)}, "count is 5, but there are only 4 routers"),
        ({"router_contacts": RandomUsers(5)}, "count is 5, but there are only 4 users"),
    ],
)
def test_a_list_longer_than_there_are_nodes_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        simulate(network(**changes), until=1.0, seed=SEED)


# -- dropped for silence -------------------------------------------------------------------------------------------

# "d" and y are a pair of their own: he broadcasts to it at 0, 1, ... and it to him at 0.5, 1.5, ...; 0.25 s each.


@pytest.mark.parametrize(
    ("patience", "dropped"),
    [(2.0, 3.0), (2.25, 4.0), (2.125, 3.0), (1.0, 2.0), (0.25, 2.0), (0.125, 1.0)],
)
def test_a_user_drops_a_router_that_is_silent_for_longer_than_his_patience(engine, patience, dropped):
    # It is heard at 0.75 for the last time.
    gone = call(1.0, "set_online", False, router="y")
    world = network(user_patience=patience)
    before, after = lists(world, engine, [dropped, dropped + 0.125], gone, user="d")
    assert (before, after) == ("y", "")


def test_a_router_drops_a_user_who_is_silent_for_longer_than_its_patience(engine):
    gone = call(1.0, "set_online", False, user="d")  # it heard him at 0.25 for the last time
    world = network(router_patience=2.0)
    assert lists(world, engine, [2.5, 2.625], gone, router="y") == ["d", ""]
    assert lists(network(router_patience=2.25), engine, [2.625, 3.5, 3.625], gone, router="y") == ["d", "d", ""]


def test_who_is_never_heard_of_is_dropped_as_if_heard_at_the_start(engine):
    world = network(user_patience=2.0, router_broadcast=NEVER)
    assert lists(world, engine, [2.125, 3.0, 3.125], user="a") == ["w", "w", ""]


def test_only_who_is_silent_is_dropped_and_the_order_stays(engine):
    world = network(user_patience=2.0, user_contacts=RandomRouters(4), router_contacts=RandomUsers(4))
    gone = [call(1.0, "set_online", False, router=router) for router in "y"]
    # z hosts nothing, and so never sends.
    assert lists(world, engine, [3.0, 3.125, 9.5], *gone, user="a") == ["wxyz", "wx", "wx"]


def test_who_sends_is_not_dropped(engine):
    world = network(user_patience=1.25, router_patience=1.25)
    assert lists(world, engine, [20.0], user="b") == ["wx"]
    assert lists(world, engine, [20.0], router="w") == ["abc"]


def test_what_is_dropped_is_not_sent_to_at_that_tick(engine):
    gone = call(1.0, "set_online", False, router="y")
    quiet = [call(0.0, "hold_offline", user=user) for user in "abc"]
    quiet += [call(0.0, "hold_offline", router=router) for router in "wxz"]
    result = simulate(network(user_patience=2.0), until=6.0, seed=SEED, engine=engine, scripts=[gone, *quiet])
    found = result.accounts.set_index(["kind", "fate"])["messages"]
    # His at 0, 1 and 2, of which two find it offline, and its one at 0.5.
    assert found["profile", "sent"] == 4
    assert found["profile", "lost_offline"] == 2


def test_time_offline_does_not_count(engine):
    gone = call(1.0, "set_online", False, router="y")
    away, back = call(2.125, "set_online", False, user="d"), call(5.5, "set_online", True, user="d")
    # At 6, the first tick after, it is given the whole time anew: 8 is not too late, 9 is.
    world = network(user_patience=2.0)
    assert lists(world, engine, [6.125, 8.125, 9.0, 9.125], gone, away, back, user="d") == ["y", "y", "y", ""]


def test_what_arrives_while_he_is_offline_is_not_heard(engine):
    # All that y sends arrives at 0.75. He misses no tick, so the time runs from 0, or else from 0.75.
    gone = call(1.0, "set_online", False, router="y")
    away, back = call(0.625, "set_online", False, user="d"), call(0.875, "set_online", True, user="d")
    world = network(user_patience=2.5)
    assert lists(world, engine, [3.125, 4.125], gone, user="d") == ["y", ""]
    assert lists(world, engine, [2.125, 3.125], gone, away, back, user="d") == ["y", ""]


def test_messages_that_are_lost_are_not_heard(engine):
    world = network(user_patience=2.0)
    assert lists(world, engine, [3.0, 3.125], call(1.0, "set_loss", 1.0), user="d") == ["y", ""]


def test_a_user_hears_a_request(engine):
    # Routers do not broadcast; that of t asks him at 0.25, which arrives at 0.5.
    world = network(user_patience=2.0, router_broadcast=NEVER, rating_exchange="request")
    assert lists(world, engine, [2.125, 3.0, 3.125], user="d") == ["y", "y", ""]
    longer = world.replace(user_patience=2.75)  # from time 0 it would be over at 3
    assert lists(longer, engine, [3.125, 4.125], user="d") == ["y", ""]


def test_who_was_dropped_and_is_heard_again_stays_out(engine):
    gone, back = call(1.0, "set_online", False, router="y"), call(4.125, "set_online", True, router="y")
    world = network(user_patience=2.0)
    assert lists(world, engine, [3.125, 10.5], gone, back, user="d") == ["", ""]
    simulation = Simulation(world, seed=SEED, engine=engine)
    for script in (gone, back):
        simulation.env.process(script(simulation))
    simulation.run(4.0)
    before = simulation.run(4.125).user_updates[3]
    assert simulation.run(6.0).user_updates[3] == before + 2  # he takes what arrives at 4.75 and 5.75 all the same


def test_without_patience_nothing_is_dropped(engine):
    gone = call(1.0, "set_online", False, router="y")
    assert lists(network(router_patience=2.0), engine, [90.0], gone, user="d") == ["y"]


def test_a_contact_that_a_script_gives_has_the_whole_time(engine):
    given = call(5.0, "set_contacts", "z", user="d")  # z hosts nothing, and so never sends
    world = network(user_patience=2.0)
    assert lists(world, engine, [5.125, 7.125, 8.0, 8.125], given, user="d") == ["z", "z", "z", ""]


def test_a_contact_that_is_drawn_has_the_whole_time(engine):
    world = network(user_patience=2.0, user_contacts=RandomRouters(4, every=5.0), router_contacts=GivenContacts({}))
    times = [2.125, 3.125, 5.125, 7.125, 8.125]
    assert lists(world, engine, times, user="d") == ["wxyz", "", "wxyz", "wxyz", ""]


def test_the_router_of_a_rating_that_arrives_has_the_whole_time(engine):
    world = network(user_patience=2.0, router_broadcast=NEVER)
    rating = call(5.0, "add_rating", "d", "s", 3.0)
    assert lists(world, engine, [5.125, 7.125, 8.125], rating, user="d") == ["x", "x", ""]


def test_an_heir_has_the_whole_time(engine):
    # The quitter is heard until 4.75; its heir, which begins to send to him at 5.5, is dropped at 5 already.
    world = network(user_patience=2.0, rehosting="fresh", router_contacts=GivenContacts({"y": ["d"]}))
    (heirs,) = lists(world, engine, [5.125], call(4.875, "depart", router="y"), user="d")
    assert len(heirs) == 1
    assert heirs in "wxz"


# -- heard of ------------------------------------------------------------------------------------------------------


def test_a_router_lists_a_rater_once_it_hears_of_him(engine):
    world = network(router_contacts=HeardUsers(), user_contacts=GivenContacts({"c": "w", "d": "w"}))
    found = call(1.5, "set_contacts", "w", user="a")
    # "d" has rated nothing there; "b" has, but does not send. They stand in the order of users.
    assert lists(world, engine, [0.0, 0.25, 0.375, 2.25, 2.375], found, router="w") == ["", "", "c", "c", "ac"]


def test_it_sends_to_those_whom_it_lists(engine):
    world = network(router_contacts=HeardUsers(), user_contacts=GivenContacts({"c": "w"}))
    result = simulate(world, until=2.0, seed=SEED, engine=engine)
    found = result.accounts.set_index(["kind", "fate"])["messages"]
    # His at 0 and 1; p and q to him at 0.5 and 1.5.
    assert found["profile", "sent"] == 2 + 4
    assert result.users["updates"].tolist() == [0, 0, 2, 0]


def test_it_hears_of_him_with_requests_too(engine):
    world = network(router_contacts=HeardUsers(), user_contacts=GivenContacts({"c": "w"}), rating_exchange="request")
    assert lists(world, engine, [0.375, 1.0], router="w") == ["", "c"]  # not before it knows a rating of his


def test_it_drops_who_is_silent_and_lists_him_again_when_he_is_heard(engine):
    world = network(router_contacts=HeardUsers(), router_patience=2.0)
    gone, back = call(1.0, "set_online", False, user="d"), call(3.75, "set_online", True, user="d")
    assert lists(world, engine, [2.5, 2.625, 4.25, 4.375], gone, back, router="y") == ["d", "", "", "d"]


def test_a_script_gives_it_another_list_and_it_lists_whom_it_hears(engine):
    world = network(router_contacts=HeardUsers(), user_contacts=GivenContacts({"c": "w"}))
    given = call(0.5, "set_contacts", "bd", router="w")
    assert lists(world, engine, [0.375, 0.625, 1.25, 1.375], given, router="w") == ["c", "bd", "bd", "bcd"]


def test_an_heir_lists_those_whom_the_quitter_listed(engine):
    # "a" and "c" rated items of w and send to it; "b" rated one and does not.
    world = network(router_contacts=HeardUsers(), rehosting="fresh", user_contacts=GivenContacts({"a": "w", "c": "w"}))
    times, gone = [1.5], call(1.0, "depart", router="w")
    found = "".join(lists(world, engine, times, gone, router=router)[0] for router in "xyz")
    assert set(found) == {"a", "c"}


FORESEEN = "edges from routers to users are made from the ratings that the world foresees, at the start"


def test_it_lists_a_user_who_rates_what_nobody_foresaw(engine):
    world = network(router_contacts=HeardUsers(), user_contacts=GivenContacts({"d": "w"}))
    rating = call(1.5, "add_rating", "d", "p", 3.0)
    assert lists(world, engine, [2.25, 2.375], rating, router="w") == ["", "d"]


def test_it_does_not_list_a_user_before_he_rates(engine):
    times = np.zeros(7)
    times[-1] = 1.5  # that of d
    world = network(
        router_contacts=HeardUsers(), user_contacts=GivenContacts({"d": "y"}), arrivals=Arrivals(times, join="start")
    )
    assert lists(world, engine, [0.375, 2.25, 2.375], router="y") == ["", "", "d"]


def test_an_heir_lists_a_rater_whom_the_quitter_had_not_heard(engine):
    world = network(router_contacts=HeardUsers(), rehosting="fresh", user_contacts=GivenContacts({}))
    found = [call(2.5, "set_contacts", ROUTERS, user="d")]
    gone = call(1.0, "depart", router="y")
    listed = [lists(world, engine, [3.5], gone, *found, router=router)[0] for router in "wxz"]
    assert sorted(listed) == ["", "", "d"]


def test_raters_are_as_before(engine):
    assert lists(network(router_contacts=Raters()), engine, [0.0, 3.5], router="w") == ["abc", "abc"]
