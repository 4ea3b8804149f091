"""Requests for recommendations: when, for what, how they end, and what is predicted: small cases, written out."""

import math

import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import USER, draw, entity_keys, uniform
from algorithms.ratings import Ratings
from netsim import (
    Arrivals,
    Constant,
    Learning,
    MessageTrace,
    OnOff,
    Periodic,
    Recommendations,
    Simulation,
    World,
    simulate,
)

RANK, SEED, GAP, DELAY = 2, 3, 8.0, 0.25
QUERY, ANSWER = 48 + 8, 48 + 8 * RANK + 8
NEVER = Periodic(1e6, phase=1e6)
RATINGS = Ratings.from_arrays(["a", "a", "b"], ["p", "q", "p"], [2.0, 4.0, 5.0], scale=(1, 5))
HOSTING = {"p": "x", "q": "y"}


@pytest.fixture(params=["events", "compiled"])
def engine(request):
    return request.param


def asking(targets=RATINGS, *, mean_gap=GAP, timeout=2.0, retries=2, **changes):
    """Users a and b, routers x with p and y with q; nobody sends a profile unasked; a message takes 0.25 s."""
    plain = World(
        RATINGS,
        routers=("x", "y"),
        hosting=HOSTING,
        user_broadcast=NEVER,
        router_broadcast=NEVER,
        delay=DELAY,
        minimum_delay=0.0,
        learning=Learning(rank=RANK),
        recommendations=Recommendations(targets, mean_gap=mean_gap, timeout=timeout, retries=retries),
    )
    return plain.replace(**changes)


def only(*pairs):
    """Those of the ratings whose (user, item) are named."""
    table = RATINGS.to_frame()
    return RATINGS.select([pair in pairs for pair in zip(table["user"], table["item"], strict=True)])


def wish_times(user, until, gap=GAP, seed=SEED):
    """When a user wishes: a Poisson process, its gaps added up."""
    (key,), number, time, found = entity_keys(USER, [user]), 0, 0.0, []
    while True:
        time -= gap * math.log(uniform(np.uint64(draw(np.uint64(seed), purposes.WISH_GAP, key, number))))
        if time >= until:
            return found
        found.append(time)
        number += 1


def wished(user, number, n_targets, seed=SEED):
    """Which of his targets a user wishes for."""
    (key,) = entity_keys(USER, [user])
    return int(uniform(np.uint64(draw(np.uint64(seed), purposes.WISH_TARGET, key, number))) * n_targets)


def run(world, until, engine="events", *scripts, seed=SEED):
    return simulate(world, until=until, seed=seed, engine=engine, every=until, scripts=scripts)


def rows(result, *columns):
    return list(result.recommendations[list(columns)].itertuples(index=False, name=None))


def fates(result, kind):
    found = result.accounts.set_index(["kind", "fate"]).loc[kind]
    return {fate: (row["messages"], row["bytes"]) for fate, row in found.iterrows() if row["messages"] > 0}


def script(*steps):
    """Acts at given times: (time, function of the simulation)."""

    def process(simulation):
        for time, act in steps:
            yield simulation.env.timeout(time - simulation.env.now)
            act(simulation)

    return process


# -- when, and for what ------------------------------------------------------------------------------------------------


def test_each_user_asks_at_times_of_his_own(engine):
    result = run(asking(), 200.0, engine)
    for user in "ab":
        table = result.recommendations.query(f"user == '{user}'")
        assert table["asked"].tolist() == wish_times(user, 200.0 - 2 * DELAY)


def test_each_target_of_a_user_is_drawn_anew(engine):
    result = run(asking(), 200.0, engine).recommendations
    found = result[result["user"] == "a"]
    assert found["item"].tolist() == ["pq"[wished("a", number, 2)] for number in range(len(found))]
    assert found["rating"].tolist() == [{"p": 2.0, "q": 4.0}[item] for item in found["item"]]
    assert set(found["item"]) == {"p", "q"}
    assert set(result[result["user"] == "b"]["item"]) == {"p"}


def test_who_has_no_target_asks_nothing(engine):
    result = run(asking(only(("b", "p"))), 100.0, engine)
    assert set(result.recommendations["user"]) == {"b"}
    assert fates(result, "query")["sent"][0] == len(wish_times("b", 100.0))


def test_the_table_is_in_the_order_of_asking(engine):
    table = run(asking(), 200.0, engine).recommendations
    assert table["asked"].is_monotonic_increasing
    assert table["user"].nunique() == 2
    assert table["asked"].tolist() == sorted(wish_times("a", 200.0) + wish_times("b", 200.0))[: len(table)]
    assert list(table.columns) == ["user", "item", "asked", "finished", "attempts", "outcome", "predicted", "rating"]


def test_open_requests_are_not_in_the_table(engine):
    first = wish_times("b", 100.0)[0]
    world = asking(only(("b", "p")))
    assert run(world, first + 0.4, engine).recommendations.empty
    assert len(run(world, first + 0.6, engine).recommendations) == 1


def test_who_asks_changes_nothing_that_is_learned(engine):
    every = {"user_broadcast": 1.0, "router_broadcast": 1.0, "loss": 0.2}
    with_, without = run(asking(**every), 20.0, engine), run(asking(**every, recommendations=None), 20.0, engine)
    assert with_.user_profiles.tobytes() == without.user_profiles.tobytes()
    assert with_.item_profiles.tobytes() == without.item_profiles.tobytes()
    assert fates(with_, "profile") == fates(without, "profile")


# -- served ------------------------------------------------------------------------------------------------------------


def test_an_answer_takes_there_and_back(engine):
    result = run(asking(), 100.0, engine)
    for asked, finished, attempts, outcome in rows(result, "asked", "finished", "attempts", "outcome"):
        assert (finished, attempts, outcome) == ((asked + DELAY) + DELAY, 1, "served")


def test_an_answer_waits_in_queues(engine):
    """0.5 s of processing at the router, 0.125 s at the user; uplinks of 28 and 36 bytes a second take 2 s each."""
    busy = {"router_processing": 0.5, "user_processing": 0.125, "user_uplink": QUERY / 2, "router_uplink": ANSWER / 2}
    first = wish_times("b", 100.0)[0]
    result = run(asking(only(("b", "p")), timeout=50.0, **busy), first + 6.0, engine)
    (finished,) = result.recommendations["finished"][:1]
    assert finished == pytest.approx(first + 2 + DELAY + 0.5 + 2 + DELAY + 0.125, rel=1e-14)


def test_what_is_predicted_without_learning(engine):
    simulation = Simulation(asking(), seed=SEED, engine=engine)
    view = simulation.view()
    result = simulation.run(100.0)
    for user, item, predicted in rows(result, "user", "item", "predicted"):
        u, v = view.user_profiles["ab".index(user)], view.item_profiles["pq".index(item)]
        assert predicted == pytest.approx(np.clip(u @ v, 1, 5), rel=1e-14)


@pytest.mark.parametrize(("entry", "predicted"), [(10.0, 5.0), (0.01, 1.0)])
def test_predictions_are_clipped(engine, entry, predicted):
    result = run(asking(learning=Learning(rank=RANK, initial=Constant(entry))), 60.0, engine)
    assert set(result.recommendations["predicted"]) == {predicted}


def test_the_item_is_as_the_router_answered_and_the_user_as_he_receives(engine):
    every = {"user_broadcast": Periodic(0.1, phase=0.0), "router_broadcast": Periodic(0.1, phase=0.05)}
    world = asking(only(("b", "p")), delay=1.0, timeout=9.0, rating_exchange="attach", **every)
    asked = wish_times("b", 100.0)[0]
    simulation = Simulation(world, seed=SEED, engine=engine)
    v = simulation.run(asked + 1.0).item_profiles[0]
    u = simulation.run((asked + 1.0) + 1.0).user_profiles[1]
    result = simulation.run(asked + 2.5)
    later = result.user_profiles[1] @ result.item_profiles[0]
    (predicted,) = result.recommendations["predicted"][:1]
    assert predicted == pytest.approx(np.clip(u @ v, 1, 5), rel=1e-14)
    assert abs(predicted - later) > 1e-6  # both move all the while


def test_what_is_sent_is_accounted(engine):
    result = run(asking(), 100.0, engine)
    n = len(wish_times("a", 100.0)) + len(wish_times("b", 100.0))
    assert len(result.recommendations) == n  # none was asked in the last half second
    assert fates(result, "query") == {"sent": (n, n * QUERY), "control": (n, n * QUERY)}
    assert fates(result, "answer") == {"sent": (n, n * ANSWER), "control": (n, n * ANSWER)}
    assert result.users["bytes_sent"].tolist() == [QUERY * len(wish_times(user, 100.0)) for user in "ab"]
    assert result.users["profiles_sent"].tolist() == [0, 0]
    to_p = (result.recommendations["item"] == "p").sum()
    assert result.routers["profiles_sent"].tolist() == [to_p, n - to_p]
    assert result.routers["bytes_sent"].tolist() == [ANSWER * to_p, ANSWER * (n - to_p)]


def test_a_second_copy_of_an_answer_is_stale(engine):
    """Both the query and its copy are answered, and each answer is doubled: four of which one serves."""
    first = wish_times("b", 100.0)[0]
    result = run(asking(only(("b", "p")), duplication=1.0), first + 1.0, engine)
    assert fates(result, "query")["sent"] == (2, 2 * QUERY)
    found = fates(result, "answer")
    assert (found["sent"][0], found["control"][0], found["stale"][0]) == (4, 1, 3)
    assert result.users["bytes_sent"].tolist() == [0, QUERY]


# -- time-outs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retries", [0, 1, 15])
def test_a_request_that_nothing_answers_ends_after_its_retries(engine, retries):
    first = wish_times("b", 100.0)[0]
    until = first + 2.0 * (retries + 1) + 0.01
    result = run(asking(only(("b", "p")), loss=1.0, retries=retries), until, engine)
    finished = first
    for _ in range(retries + 1):
        finished += 2.0
    (row,) = rows(result, "asked", "finished", "attempts", "outcome", "rating")[:1]
    assert row == (first, finished, retries + 1, "timed_out", 5.0)
    assert result.recommendations["predicted"].isna().all()


def test_a_lost_query_is_asked_again(engine):
    first = wish_times("b", 100.0)[0]
    heal = script((0.0, lambda run: run.set_loss(1.0)), (first + 0.1, lambda run: run.set_loss(0.0)))
    result = run(asking(only(("b", "p"))), first + 2.6, engine, heal)
    assert rows(result, "finished", "attempts", "outcome")[0] == (((first + 2.0) + DELAY) + DELAY, 2, "served")
    assert fates(result, "query")["lost_link"] == (1, QUERY)


def test_a_router_offline_answers_nothing(engine):
    first = wish_times("b", 100.0)[0]
    back = script(
        (0.0, lambda run: run.hold_offline(router="x")), (first + 1.0, lambda run: run.release_offline(router="x"))
    )
    result = run(asking(only(("b", "p"))), first + 2.6, engine, back)
    assert rows(result, "attempts", "outcome")[0] == (2, "served")
    assert fates(result, "query")["lost_offline"] == (1, QUERY)


def test_a_late_answer_serves_while_he_still_asks_and_is_stale_afterwards(engine):
    """There and back takes 2 s, and he waits for 1.5 s each time."""
    first = wish_times("b", 100.0)[0]
    slow = {"delay": 1.0, "timeout": 1.5}
    none = run(asking(only(("b", "p")), retries=0, **slow), first + 2.1, engine)
    assert rows(none, "finished", "attempts", "outcome")[0] == (first + 1.5, 1, "timed_out")
    assert fates(none, "answer")["stale"] == (1, ANSWER)
    once = run(asking(only(("b", "p")), retries=1, **slow), first + 3.6, engine)
    assert rows(once, "finished", "attempts", "outcome")[0] == ((first + 1.0) + 1.0, 2, "served")
    assert fates(once, "answer") == {"sent": (2, 2 * ANSWER), "control": (1, ANSWER), "stale": (1, ANSWER)}


def test_a_time_out_comes_before_an_answer_of_the_same_time(engine):
    def exact(seed):
        (first, *_) = wish_times("b", 100.0, seed=seed)
        return (first + DELAY) + DELAY == first + 2 * DELAY

    seed = next(seed for seed in range(99) if exact(seed))
    first = wish_times("b", 100.0, seed=seed)[0]
    world = asking(only(("b", "p")), retries=0, timeout=2 * DELAY)
    result = run(world, first + 0.6, engine, seed=seed)
    assert rows(result, "finished", "outcome") == [(first + 2 * DELAY, "timed_out")]
    assert fates(result, "answer")["stale"] == (1, ANSWER)


def test_an_answer_to_a_wish_that_is_over_serves_no_later_one(engine):
    """Each wish times out at 0.5 s, and its answer comes as others are open."""
    result = run(asking(only(("b", "p")), mean_gap=0.3, timeout=0.5, retries=0, delay=1.0), 60.0, engine)
    assert set(result.recommendations["outcome"]) <= {"timed_out", "refused"}
    assert fates(result, "answer")["stale"][0] > 50


# -- refused -----------------------------------------------------------------------------------------------------------


def test_a_fifth_that_is_open_is_refused(engine):
    result = run(asking(only(("b", "p")), loss=1.0, timeout=1000.0), 200.0, engine)
    times = wish_times("b", 200.0)
    assert len(times) > 10
    expected = [(time, time, 0, "refused") for time in times[4:]]
    assert rows(result, "asked", "finished", "attempts", "outcome") == expected
    assert result.recommendations["predicted"].isna().all()
    assert fates(result, "query")["sent"][0] == 4


def test_one_that_is_open_leaves_room_for_three(engine):
    """a's first wish is for q, whose router is away; those for p are served within half a second."""
    seed = next(
        seed
        for seed in range(9999)
        if [wished("a", n, 2, seed) for n in range(5)] == [1, 0, 0, 0, 0]
        and min(np.diff(wish_times("a", 300.0, seed=seed)[:6])) > 0.6
    )
    end = wish_times("a", 300.0, seed=seed)[4] + 0.6
    world = asking(only(("a", "p"), ("a", "q")), timeout=1000.0)
    result = run(world, end, engine, script((0.0, lambda run: run.set_online(False, router="y"))), seed=seed)
    assert rows(result, "item", "outcome") == [("p", "served")] * 4


# -- offline, later, gone ----------------------------------------------------------------------------------------------


def test_who_is_offline_asks_nothing_and_the_times_go_on(engine):
    away = script(
        (0.0, lambda run: run.set_online(False, user="b")), (40.0, lambda run: run.set_online(True, user="b"))
    )
    result = run(asking(only(("b", "p"))), 100.0, engine, away)
    assert result.recommendations["asked"].tolist() == [time for time in wish_times("b", 100.0) if time >= 40.0]


def test_who_is_offline_gets_no_answer_and_asks_again_later(engine):
    first = wish_times("b", 100.0)[0]
    away = script(
        (first + 0.3, lambda run: run.set_online(False, user="b")),
        (first + 0.8, lambda run: run.set_online(True, user="b")),
    )
    result = run(asking(only(("b", "p"))), first + 2.6, engine, away)
    assert fates(result, "answer")["lost_offline"] == (1, ANSWER)
    assert rows(result, "finished", "attempts", "outcome")[0] == (((first + 2.0) + DELAY) + DELAY, 2, "served")


def test_who_is_offline_at_the_end_of_a_time_out_gives_up(engine):
    first = wish_times("b", 100.0)[0]
    away = script((first + 0.3, lambda run: run.set_online(False, user="b")))
    result = run(asking(only(("b", "p"))), first + 9.0, engine, away)
    assert rows(result, "finished", "attempts", "outcome") == [(first + 2.0, 1, "timed_out")]


def test_who_has_quit_asks_nothing(engine):
    first = wish_times("b", 100.0)[0]
    quits = script((first + 0.1, lambda run: run.depart(user="b")))
    result = run(asking(only(("b", "p"))), 100.0, engine, quits)
    assert rows(result, "asked", "outcome") == [(first, "timed_out")]
    assert fates(result, "answer")["lost_offline"][0] == 1


def test_a_user_who_comes_later_asks_from_then_on(engine):
    world = asking(only(("b", "p")), arrivals=Arrivals([0.0, 0.0, 40.0]))
    result = run(world, 100.0, engine)
    assert result.recommendations["asked"].tolist() == [time for time in wish_times("b", 100.0) if time >= 40.0]


def test_an_item_that_has_not_come_is_not_answered(engine):
    """q comes at 40. Its router x hosts p too and is there; alone at y it is not there itself."""
    times = wish_times("a", 100.0)
    for hosting, fate in (({"p": "x", "q": "x"}, "control"), (HOSTING, "lost_offline")):
        world = asking(only(("a", "q")), hosting=hosting, retries=0, timeout=1.0, arrivals=Arrivals([0.0, 40.0, 0.0]))
        result = run(world, 100.0, engine)
        found = dict(rows(result, "asked", "outcome"))
        assert {time: outcome for time, outcome in found.items() if time < 39} == {
            time: "timed_out" for time in times if time < 39
        }
        assert {outcome for time, outcome in found.items() if time > 40} == {"served"}
        assert fates(result, "answer")["sent"][0] == sum(outcome == "served" for outcome in found.values())
        before = run(world, 39.0, engine)
        assert fates(before, "query")[fate] == fates(before, "query")["sent"]


def test_an_item_that_has_moved_is_asked_for_where_it_is(engine):
    """y quits between two requests, and x hosts q from then on."""
    world = asking(only(("a", "q")), rehosting="fresh", retries=0)
    times = wish_times("a", 100.0)
    away = times[1] - 0.01
    simulation = Simulation(world, seed=SEED, engine=engine)
    simulation.env.process(script((away, lambda run: run.depart(router="y")))(simulation))
    simulation.run(away + 0.001)
    view = simulation.view()
    result = simulation.run(100.0)
    assert result.routers["profiles_sent"].tolist() == [len(times) - 1, 1]
    assert set(result.recommendations["outcome"]) == {"served"}
    predicted = np.clip(view.user_profiles[0] @ view.item_profiles[1], 1, 5)
    assert result.recommendations["predicted"].tolist()[1:] == pytest.approx([predicted] * (len(times) - 1), rel=1e-14)


def test_a_query_to_the_router_that_has_quit_is_lost_and_the_next_goes_to_the_heir(engine):
    first = wish_times("a", 100.0)[0]
    world = asking(only(("a", "q")), rehosting="fresh")
    result = run(world, first + 2.6, engine, script((first + 0.1, lambda run: run.depart(router="y"))))
    assert fates(result, "query")["lost_offline"] == (1, QUERY)
    assert rows(result, "attempts", "outcome")[0] == (2, "served")
    assert result.routers["profiles_sent"].tolist() == [1, 0]


def test_churn_and_loss_end_every_request_one_way_or_the_other(engine):
    world = asking(mean_gap=0.5, timeout=0.4, loss=0.3, router_churn=OnOff(2.0, 1.0), user_churn=OnOff(2.0, 1.0))
    result = run(world, 50.0, engine)
    table = result.recommendations
    assert set(table["outcome"]) >= {"served", "timed_out"}
    assert (table["predicted"].notna() == (table["outcome"] == "served")).all()
    assert table["predicted"].dropna().between(1, 5).all()
    assert table["asked"].is_monotonic_increasing
    assert not table["finished"].is_monotonic_increasing  # so the order is that of asking, not of ending
    ended = table[table["outcome"] != "refused"]
    assert ended["attempts"].between(1, 3).all()
    assert (table["finished"] - table["asked"] <= 3 * 0.4 + 1e-9).all()
    assert fates(result, "answer")["control"][0] == (table["outcome"] == "served").sum()


def test_the_trace_names_queries_and_answers():
    first = wish_times("b", 100.0)[0]
    trace = MessageTrace()
    simulate(asking(only(("b", "p"))), until=first + 1.0, seed=SEED, trace=trace)
    found = trace.frame()[["kind", "sender", "receiver", "profile", "bytes", "fate"]]
    assert found.to_numpy().tolist() == [
        ["query", 1, 2, 2, QUERY, "control"],
        ["answer", 2, 1, 2, ANSWER, "control"],
    ]


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"targets": "all"}, "targets must be a Ratings, got str"),
        ({"mean_gap": 0}, "mean_gap must be a finite number of seconds > 0"),
        ({"mean_gap": math.nan}, "mean_gap"),
        ({"mean_gap": True}, "mean_gap"),
        ({"timeout": -1.0}, "timeout must be a finite number of seconds > 0"),
        ({"timeout": math.nan}, "timeout"),
        ({"retries": -1}, "retries must be an integer from 0 to 15"),
        ({"retries": 16}, "retries must be an integer from 0 to 15"),
        ({"retries": 1.0}, "retries"),
        ({"retries": True}, "retries"),
    ],
)
def test_recommendations_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        Recommendations(**({"targets": RATINGS, "mean_gap": 1.0} | changes))


def test_a_world_refuses():
    others = Ratings.from_arrays(["a"], ["p"], [1.0])
    with pytest.raises(ValueError, match=r"targets must have the users and items of ratings \(2 and 2\), got 1 and 1"):
        asking(others)
    with pytest.raises(ValueError, match="recommendations must be Recommendations or None"):
        asking(recommendations=5)


def test_it_is_data():
    world = asking()
    assert world == asking()
    assert world != asking(retries=1)
    told = world.describe()["recommendations"]
    assert told == {
        "type": "Recommendations",
        "targets": 3,
        "sha256": RATINGS.digest,
        "mean_gap": GAP,
        "timeout": 2.0,
        "retries": 2,
    }
