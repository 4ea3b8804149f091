"""Learned contact lists: look-ups and answers as messages, to the byte and the second, and what goes wrong."""

import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, combine, draw, entity_keys
from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    GivenContacts,
    LearnedRouters,
    MessageTrace,
    Simulation,
    Uniform,
    simulate,
)
from tests.netsim.test_contact_lists import HOSTING, NEVER, RATED, ROUTERS, SEED, call, lists, network
from tests.worlds import assert_same_bits

LOOKUP_BYTES, FOUND_BYTES = 48 + 8, 48 + 16


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def directory(item, routers=ROUTERS):
    """The router with the highest draw of the pair."""
    key, keys = entity_keys(ITEM, [item])[0], entity_keys(ROUTER, routers)
    weights = [int(draw(np.uint64(SEED), purposes.DIRECTORY, np.uint64(combine(key, each)), 0)) for each in keys]
    return routers[int(np.argmax(np.array(weights, dtype=np.uint64)))]


def learning(timeout=30.0, at_once=10, **changes):
    """`network` with learned lists, and routers that do not broadcast."""
    return network(user_contacts=LearnedRouters(timeout, at_once), router_broadcast=NEVER, **changes)


def seeker(items, *, hosting=None, routers=ROUTERS, **changes):
    """User "a" alone, who rated some items, each hosted by the router that `hosting` names."""
    ratings = Ratings.from_arrays(["a"] * len(items), list(items), [3.0] * len(items), scale=(1, 5))
    hosting = hosting or {item: HOSTING[item] for item in items}
    return learning(**{"ratings": ratings, "routers": tuple(routers), "hosting": hosting} | changes)


def counted(result, kind, unit="messages"):
    """What became of messages of a kind, where there are any."""
    found = result.accounts[result.accounts["kind"] == kind].set_index("fate")[unit]
    return found[found > 0].to_dict()


def traced(world, until, *scripts):
    """Look-ups and answers as (kind, sender, receiver, item, sent, arrives, bytes, fate), in the order of sending."""
    trace = MessageTrace()
    result = simulate(world, until=until, seed=SEED, engine="events", trace=trace, scripts=scripts)
    assert_same_bits(result, simulate(world, until=until, seed=SEED, engine="compiled", scripts=scripts))
    nodes, items = [*world.ratings.user_ids, *world.router_ids], world.ratings.item_ids
    frame = trace.frame()
    rows = frame[frame["kind"].isin(["lookup", "found"])].itertuples()
    n_users = world.ratings.n_users
    return [
        (
            row.kind,
            nodes[row.sender],
            nodes[row.receiver],
            items[row.profile - n_users],
            row.sent,
            row.arrives,
            row.bytes,
            row.fate,
        )
        for row in rows
    ]


# -- one look-up ---------------------------------------------------------------------------------------------------


def test_a_user_asks_the_directory_and_lists_the_router_that_it_names():
    asked = directory("t")
    assert traced(seeker("t"), 5.0) == [
        ("lookup", "a", asked, "t", 0.0, 0.25, LOOKUP_BYTES, "control"),
        ("found", asked, "a", "t", 0.25, 0.5, FOUND_BYTES, "control"),
    ]


def test_he_sends_from_the_next_tick_on(engine):
    assert lists(seeker("t"), engine, [0.0, 0.5, 0.625, 9.5], user="a") == ["", "", "y", "y"]
    result = simulate(seeker("t"), until=4.0, seed=SEED, engine=engine)
    assert counted(result, "lookup") == counted(result, "found") == {"sent": 1, "control": 1}
    assert counted(result, "lookup", "bytes") == {"sent": LOOKUP_BYTES, "control": LOOKUP_BYTES}
    assert counted(result, "found", "bytes") == {"sent": FOUND_BYTES, "control": FOUND_BYTES}
    assert counted(result, "profile") == {"sent": 3, "updated": 3}  # at 1, 2 and 3


def test_look_ups_count_as_bytes_of_who_sends_them(engine):
    simulation = Simulation(seeker("t"), seed=SEED, engine=engine)
    simulation.run(0.75)
    sent = dict(zip(("a", *ROUTERS), simulation._tables.nodes["bytes_sent"].tolist(), strict=True))
    assert sent == {"a": LOOKUP_BYTES, **dict.fromkeys(ROUTERS, 0), directory("t"): FOUND_BYTES}


def test_the_directory_of_an_item_is_the_same_for_everybody():
    found = traced(learning(), 5.0)
    asked = {(row[1], row[3]): row[2] for row in found if row[0] == "lookup"}
    # "a" asks for p and q, which are at one router: he does not know that yet.
    assert asked == {(user, item): directory(item) for user, items in RATED.items() for item in items}
    assert len(found) == 2 * 7


def test_a_directory_that_is_not_the_host_learns_nothing(engine):
    item = next(item for item in "pqst" if directory(item) != HOSTING[item])
    result = simulate(seeker(item), until=4.0, seed=SEED, engine=engine)
    assert result.disclosed.tolist() == [1]  # to the host
    assert result.users["updates"].tolist() == [0]
    assert lists(seeker(item), engine, [3.5], user="a") == [HOSTING[item]]


def test_all_learn_the_routers_of_what_they_rated(engine):
    for user, expected in {"a": "w", "b": "wx", "c": "wx", "d": "y"}.items():
        assert lists(learning(), engine, [0.5, 0.625], user=user) == ["", expected]


def test_who_rated_nothing_asks_for_nothing(engine):
    ratings = Ratings.from_arrays(["a"], ["t"], [3.0], scale=(1, 5), user_ids=["a", "idle"], item_ids=list("pqst"))
    result = simulate(learning(ratings=ratings), until=4.0, seed=SEED, engine=engine)
    assert counted(result, "lookup") == {"sent": 1, "control": 1}


# -- several items -------------------------------------------------------------------------------------------------


def test_one_answer_is_enough_for_all_items_of_a_router(engine):
    result = simulate(seeker("pq", at_once=1), until=6.0, seed=SEED, engine=engine)
    assert counted(result, "lookup") == {"sent": 1, "control": 1}
    assert lists(seeker("pq", at_once=1), engine, [0.625, 5.5], user="a") == ["w", "w"]


def test_items_of_one_router_are_asked_for_at_once_while_it_is_not_known(engine):
    result = simulate(seeker("pq"), until=6.0, seed=SEED, engine=engine)
    assert counted(result, "lookup") == counted(result, "found") == {"sent": 2, "control": 2}
    assert lists(seeker("pq"), engine, [0.625, 5.5], user="a") == ["w", "w"]


@pytest.mark.parametrize(("at_once", "ticks"), [(1, [0, 1, 2, 3, 4]), (2, [0, 0, 1, 1, 2]), (4, [0, 0, 0, 0, 1])])
def test_so_many_look_ups_at_one_tick_in_the_order_of_items(at_once, ticks):
    items = "pqrst"
    world = seeker(items, routers=items, hosting=dict(zip(items, items, strict=True)), at_once=at_once)
    asked = [(row[3], row[4]) for row in traced(world, 9.0) if row[0] == "lookup"]
    assert asked == list(zip(items, map(float, ticks), strict=True))


def test_a_list_is_in_the_order_of_routers_whatever_was_found_first(engine):
    world = seeker("pqst", hosting={"p": "z", "q": "x", "s": "w", "t": "y"}, at_once=1)
    found = lists(world, engine, [0.625, 1.625, 2.625, 3.625, 4.625], user="a")
    assert found == ["z", "xz", "wxz", "wxyz", "wxyz"]


# -- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout", "again"),
    [(0.5, [1.0, 2.0, 3.0]), (1.0, [1.0, 2.0, 3.0]), (1.5, [2.0, 4.0]), (2.0, [2.0, 4.0]), (3.25, [4.0])],
)
def test_he_asks_again_at_the_first_tick_after_the_time_out(timeout, again):
    asked = directory("t")
    gone, back = call(0.0, "set_online", False, router=asked), call(2.125, "set_online", True, router=asked)
    found = traced(seeker("t", timeout=timeout), 9.0, gone, back)
    rows = [(row[4], row[7]) for row in found if row[0] == "lookup"]
    until = [time for time in again if time < 2.0] + [time for time in again if time >= 2.0][:1]
    # Online from 2.125 on, so that what is sent at 2 is answered.
    assert rows == [(0.0, "lost_offline"), *((time, "lost_offline") for time in until[:-1]), (until[-1], "control")]
    assert [row[4] for row in found if row[0] == "found"] == [until[-1] + 0.25]


def test_a_look_up_that_is_lost_is_made_again(engine):
    mended = call(0.125, "set_loss", 0.0)
    world = seeker("t", timeout=2.0, loss=1.0)
    result = simulate(world, until=6.0, seed=SEED, engine=engine, scripts=[mended])
    assert counted(result, "lookup") == {"sent": 2, "lost_link": 1, "control": 1}
    assert counted(result, "found") == {"sent": 1, "control": 1}
    assert lists(world, engine, [2.5, 2.625], mended, user="a") == ["", "y"]


def test_a_look_up_is_made_again_where_the_answer_is_lost(engine):
    lost, mended = call(0.125, "set_loss", 1.0), call(0.375, "set_loss", 0.0)
    world = seeker("t", timeout=2.0)
    result = simulate(world, until=6.0, seed=SEED, engine=engine, scripts=[lost, mended])
    assert counted(result, "lookup") == {"sent": 2, "control": 2}
    assert counted(result, "found") == {"sent": 2, "lost_link": 1, "control": 1}
    assert lists(world, engine, [2.5, 2.625], lost, mended, user="a") == ["", "y"]


def test_an_answer_that_finds_him_offline_is_lost(engine):
    gone, back = call(0.375, "set_online", False, user="a"), call(0.75, "set_online", True, user="a")
    result = simulate(seeker("t", timeout=2.0), until=6.0, seed=SEED, engine=engine, scripts=[gone, back])
    assert counted(result, "lookup") == {"sent": 2, "control": 2}
    assert counted(result, "found") == {"sent": 2, "lost_offline": 1, "control": 1}


def test_who_is_offline_at_a_tick_does_not_ask(engine):
    gone, back = call(0.0, "set_online", False, user="a"), call(2.5, "set_online", True, user="a")
    assert lists(seeker("t"), engine, [3.5, 3.625], gone, back, user="a") == ["", "y"]


def test_a_late_answer_is_taken():
    asked = directory("t")
    assert traced(seeker("t", timeout=1.0, delay=0.75), 6.0) == [
        ("lookup", "a", asked, "t", 0.0, 0.75, LOOKUP_BYTES, "control"),
        ("found", asked, "a", "t", 0.75, 1.5, FOUND_BYTES, "control"),
        ("lookup", "a", asked, "t", 1.0, 1.75, LOOKUP_BYTES, "control"),
        ("found", asked, "a", "t", 1.75, 2.5, FOUND_BYTES, "control"),
    ]


def test_what_is_in_flight_at_the_end_is_in_the_accounts(engine):
    early = simulate(seeker("t"), until=0.125, seed=SEED, engine=engine)
    assert counted(early, "lookup") == {"sent": 1, "in_flight": 1}
    later = simulate(seeker("t"), until=0.375, seed=SEED, engine=engine)
    assert counted(later, "found") == {"sent": 1, "in_flight": 1}


def test_a_directory_that_does_not_answer_does_not_keep_the_others_waiting(engine):
    items = "pqrst"
    first = next(item for item in items if directory(item, tuple(items)) != directory("t", tuple(items)))
    world = seeker(items, routers=items, hosting=dict(zip(items, items, strict=True)), timeout=1.0, at_once=1)
    silent = call(0.0, "hold_offline", router=directory(first, tuple(items)))
    (found,) = lists(world, engine, [30.5], silent, user="a")
    assert "t" in found


def test_the_answer_to_a_second_copy_has_draws_of_its_own():
    world = seeker("t", duplication=1.0, delay=Uniform(0.0, 0.25))
    found = [row for row in traced(world, 0.75) if row[0] == "found"]
    assert len(found) == 4  # two of each of the two copies of the look-up
    ways = {round(row[5] - row[4], 12) for row in found}
    assert len(ways) == 4


# -- items that move -----------------------------------------------------------------------------------------------


def moving(**changes):
    """An item whose directory is not its router, which quits: (world, item, router, directory)."""
    item = next(item for item in "pqst" if directory(item) != "w")
    return seeker(item, hosting={item: "w"}, rehosting="fresh", **changes), item, directory(item)


def heir_of(world, engine, time, until):
    """Who hosts the item after w has quit."""
    result = simulate(world, until=until, seed=SEED, engine=engine, scripts=[call(time, "depart", router="w")])
    (heir,) = result.items["router"]
    assert heir != "w"
    return heir


def test_an_answer_that_the_item_has_overtaken_is_stale(engine):
    world, _, _ = moving(timeout=2.0)
    quits = call(0.375, "depart", router="w")  # the answer is on its way from 0.25 to 0.5
    result = simulate(world, until=6.0, seed=SEED, engine=engine, scripts=[quits])
    assert counted(result, "lookup") == {"sent": 2, "control": 2}
    assert counted(result, "found") == {"sent": 2, "stale": 1, "control": 1}
    heir = heir_of(world, engine, 0.375, 6.0)
    assert lists(world, engine, [2.5, 2.625], quits, user="a") == ["", heir]


def test_a_directory_names_the_router_of_the_moment(engine):
    world, _, _ = moving()
    quits = call(0.125, "depart", router="w")  # the look-up is on its way
    assert lists(world, engine, [0.5, 0.625], quits, user="a") == ["", heir_of(world, engine, 0.125, 1.0)]


def test_a_known_router_that_has_quit_stays_listed_without_patience(engine):
    world, _, _ = moving()
    quits = call(2.25, "depart", router="w")
    assert lists(world, engine, [2.0, 40.5], quits, user="a") == ["w", "w"]
    result = simulate(world, until=40.5, seed=SEED, engine=engine, scripts=[quits])
    assert counted(result, "lookup") == {"sent": 1, "control": 1}


def test_the_new_router_is_found_after_the_old_one_was_dropped():
    world, item, asked = moving(user_patience=2.0)
    # w never broadcasts, and is listed from 0.5 on: at 3 it has been silent for 2.5 s.
    quits = call(0.75, "depart", router="w")
    found = traced(world, 3.5, quits)
    assert found == [
        ("lookup", "a", asked, item, 0.0, 0.25, LOOKUP_BYTES, "control"),
        ("found", asked, "a", item, 0.25, 0.5, FOUND_BYTES, "control"),
        ("lookup", "a", asked, item, 3.0, 3.25, LOOKUP_BYTES, "control"),
        ("found", asked, "a", item, 3.25, 3.5, FOUND_BYTES, "in_flight"),
    ]


def test_the_list_has_the_heir_in_the_place_of_who_was_dropped(engine):
    world, _, _ = moving(user_patience=2.0)
    quits = call(0.75, "depart", router="w")
    heir = heir_of(world, engine, 0.75, 6.0)
    # The heir is silent too, found at 3.5: it is dropped at 6 and found again at 6.5.
    times = [3.0, 3.125, 3.5, 3.625, 6.0, 6.125, 6.5, 6.625]
    assert lists(world, engine, times, quits, user="a") == ["w", "", "", heir, heir, "", "", heir]


def test_who_was_dropped_and_is_heard_again_is_not_listed_until_found(engine):
    # y goes silent from 1 on and comes back at 3.25; the directory is silent from 1 until 9.
    host, asked = "y", directory("t")
    assert host != asked
    world = seeker("t", user_patience=2.0, timeout=1.0).replace(router_broadcast=network().router_broadcast)
    gone, back = call(1.0, "set_online", False, router=host), call(3.25, "set_online", True, router=host)
    quiet, speaks = call(1.0, "set_online", False, router=asked), call(8.75, "set_online", True, router=asked)
    # Heard at 3.75, 4.75, ..., and listed when the answer to the look-up of 9 arrives.
    times = [3.0, 3.125, 8.5, 9.5, 9.625]
    assert lists(world, engine, times, gone, back, quiet, speaks, user="a") == ["y", "", "", "", "y"]


@pytest.mark.parametrize("when", [0.125, 0.75])
def test_another_router_is_the_directory_after_it_has_quit(engine, when):
    # At 0.125 w has not been found yet; at 0.75 it has, is dropped for silence at 3, and is to be found again.
    world, _, asked = moving(user_patience=2.0, timeout=1.0)
    quits = call(when, "depart", router=asked)
    assert lists(world, engine, [5.5], quits, user="a") == ["w"]


def test_a_directory_that_answers_has_been_heard_of(engine):
    # The only router hosts both items and is the directory of both. q is rated at 1.5, and its router asked for at 2.
    ratings = Ratings.from_arrays(["a"], ["p"], [3.0], scale=(1, 5), item_ids=["p", "q"])
    world = seeker("p", ratings=ratings, routers=("w",), hosting={"p": "w", "q": "w"}, user_patience=2.0)
    rating = call(1.5, "add_rating", "a", "q", 3.0)
    result = simulate(world, until=2.75, seed=SEED, engine=engine, scripts=[rating])
    assert counted(result, "found") == {"sent": 2, "control": 2}  # at 0.5 and at 2.5
    assert lists(world, engine, [3.125], rating, user="a") == ["w"]


# -- ratings that arrive, and scripts ------------------------------------------------------------------------------


def test_the_router_of_a_rating_that_arrives_is_looked_up():
    times = np.array([0.0, 2.25])
    world = seeker("st", arrivals=Arrivals(times))
    found = [row[:5] for row in traced(world, 6.0)]
    assert found == [
        ("lookup", "a", directory("s"), "s", 0.0),
        ("found", directory("s"), "a", "s", 0.25),
        ("lookup", "a", directory("t"), "t", 3.0),
        ("found", directory("t"), "a", "t", 3.25),
    ]


def test_a_rating_at_the_time_of_a_tick_is_looked_up_at_once(engine):
    world = seeker("st", arrivals=Arrivals(np.array([0.0, 2.0])))
    assert lists(world, engine, [2.0, 2.5, 2.625], user="a") == ["x", "x", "xy"]


def test_a_rating_that_a_script_adds_is_looked_up(engine):
    world = learning()
    rating = call(2.25, "add_rating", "d", "s", 3.0)
    assert lists(world, engine, [2.375, 3.5, 3.625], rating, user="d") == ["y", "y", "xy"]


def test_a_changed_rating_is_not_looked_up_again(engine):
    change = call(2.25, "add_rating", "a", "t", 4.0)
    result = simulate(seeker("t"), until=6.0, seed=SEED, engine=engine, scripts=[change])
    assert counted(result, "lookup") == {"sent": 1, "control": 1}


def test_a_user_who_joins_looks_up_his_first_rating(engine):
    world = seeker("t", arrivals=Arrivals(np.array([2.25])))
    assert lists(world, engine, [2.375, 3.5, 3.625], user="a") == ["", "", "y"]
    assert counted(simulate(world, until=3.0, seed=SEED, engine=engine), "lookup") == {}


def test_a_list_that_a_script_gives_grows_by_what_is_found(engine):
    given = call(0.125, "set_contacts", "zx", user="a")  # before any answer
    assert lists(seeker("t"), engine, [0.25, 0.5, 0.625], given, user="a") == ["xz", "xz", "xyz"]


def test_a_list_that_a_script_gives_later_takes_the_place_of_what_was_found(engine):
    given = call(0.75, "set_contacts", "zyx", user="a")
    assert lists(seeker("t"), engine, [0.625, 0.875, 40.5], given, user="a") == ["y", "xyz", "xyz"]
    rating = call(2.25, "add_rating", "d", "p", 3.0)
    more = lists(learning(), engine, [3.625], call(0.75, "set_contacts", "xyz", user="d"), rating, user="d")
    assert more == ["wxyz"]


def test_who_is_taken_out_of_the_list_by_a_script_is_looked_for_again(engine):
    given = call(0.75, "set_contacts", [], user="a")
    assert lists(seeker("t"), engine, [0.875, 1.625], given, user="a") == ["", "y"]


def test_other_lists_make_no_look_up(engine):
    world = learning(user_patience=2.0).replace(user_contacts=GivenContacts({"a": "wx"}))
    result = simulate(world, until=5.0, seed=SEED, engine=engine)
    assert counted(result, "lookup") == counted(result, "found") == {}
    assert result.final["sent"] > 0
