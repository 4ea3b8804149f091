"""The scenario of contact lists that are given, random, or learned."""

import math

import numpy as np
import pandas as pd
import pytest

from scenarios import contacts
from tests.scenarios.comparing import TINY, arguments, check_repeats, check_written, mistake, study

SOME = [*TINY, "--lengths", "0.25,0.5"]
GIVEN, LEARNED = "given", "learned"
QUIT = "quit 20%, "


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return study("contacts", tmp_path_factory.mktemp("contacts"), SOME)


def test_it_writes_tables_figure_and_answer(done):
    check_written(done, conditions=10)


def test_the_same_seeds_give_the_same_numbers(done, tmp_path):
    check_repeats(done, tmp_path, SOME)


def test_lists_are_as_long_as_was_asked_for(done):
    worlds = done.json("configuration.json")["worlds"]
    # Of 12 items and 16 users.
    for label, routers, users, every in (
        ("random 25%, kept", 3, 4, None),
        ("random 50%, redrawn", 6, 8, 100.0),
        ("all", 12, 16, None),
    ):
        world = worlds[f"{label}, seed 3"]
        assert (world["user_contacts"]["count"], world["user_contacts"].get("every")) == (routers, every)
        assert (world["router_contacts"]["count"], world["router_contacts"].get("every")) == (users, every)


def test_coverage_is_that_of_the_lists(done):
    np.testing.assert_array_equal(done.seeds(GIVEN, "coverage"), 100)
    np.testing.assert_array_equal(done.seeds("all", "coverage"), 100)
    for share in (25, 50):
        np.testing.assert_allclose(done.seeds(f"random {share}%, kept", "coverage"), share, atol=15)
    np.testing.assert_array_equal(done.seeds(LEARNED, "coverage"), 100)
    assert (done.seeds(LEARNED, "complete") > 0).all()


def test_what_is_sent_in_vain(done):
    np.testing.assert_array_equal(done.seeds(GIVEN, "useless"), 0)
    # Half of the ratings are missing.
    np.testing.assert_allclose(done.seeds("all", "useless"), 50, atol=8)


def test_errors_are_taken_at_equal_time_and_at_equal_messages(done):
    for condition in ("random 25%, kept", "all", LEARNED):
        plain, run = done.probes(GIVEN, 3), done.probes(condition, 3)
        last = plain["test_rmse"].iloc[-1]
        sent = plain["sent"].iloc[-1]
        assert run["sent"].iloc[-1] >= sent
        at_time = np.interp(60.0, run["time"], run["test_rmse"])
        at_messages = np.interp(sent, run["sent"], run["test_rmse"])
        assert done.seeds(condition, "cost_time")[0] == pytest.approx(at_time - last, abs=1e-12)
        assert done.seeds(condition, "cost_sent")[0] == pytest.approx(at_messages - last, abs=1e-12)
        slowdown = np.interp(sent, run["sent"], run["time"]) / 60
        assert done.seeds(condition, "slowdown")[0] == pytest.approx(slowdown, abs=1e-12)
    np.testing.assert_array_equal(done.seeds(GIVEN, "cost_time"), 0)
    np.testing.assert_array_equal(done.seeds(GIVEN, "cost_sent"), 0)


def test_only_learned_lists_are_looked_up(done):
    for condition in done.table("table.csv")["condition"]:
        lookups = done.seeds(condition, "lookups")
        # About six ratings a user, a look-up and an answer each, and some made again.
        assert ((lookups > 8) & (lookups < 30)).all() if LEARNED in condition else (lookups == 0).all(), condition
    run = done.probes(LEARNED, 3)
    messages = np.interp(60.0, run["time"], run["lookup_sent"] + run["found_sent"])
    assert done.seeds(LEARNED, "lookups")[0] == pytest.approx(messages / 16)
    share = messages / np.interp(60.0, run["time"], run["sent"])
    assert done.seeds(LEARNED, "finding")[0] == pytest.approx(100 * share)


def test_where_routers_quit_given_lists_follow(done):
    np.testing.assert_array_equal(done.seeds(f"{QUIT}given", "coverage"), 100)
    kept = f"{QUIT}learned, kept"
    run = done.probes(kept, 3)
    covered = np.interp(60.0, run["time"], run["users_coverage"])
    assert done.seeds(kept, "coverage")[0] == pytest.approx(100 * covered)
    assert run["users_coverage"].iloc[-1] < run["users_coverage"].max()  # what moves is not found again


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--lengths", "5"], "argument --lengths: expected distinct fractions between 0 and 1"),
        (["--refresh", "0"], "argument --refresh: expected a number > 0"),
        (["--timeout", "-1"], "argument --timeout: "),
        (["--at-once", "0"], "argument --at-once: "),
        (["--quit", "1"], "argument --quit: expected distinct fractions between 0 and 1"),
        (["--patience", "soon"], "argument --patience: "),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, told, tmp_path, capsys):
    assert told in mistake("contacts", argv, tmp_path, capsys)


def test_a_run_in_which_nothing_is_sent_is_refused(tmp_path, capsys):
    assert contacts.main([*TINY, "--until", "0.01", "--period", "1000", "--out", str(tmp_path)]) == 2
    assert "--until 0.01: no message was sent" in capsys.readouterr().err


def test_runs_that_diverge_are_told(tmp_path):
    argv = [*TINY, "--seeds", "3", "--lengths", "0.5", "--rate", "50"]
    with np.errstate(all="ignore"):
        diverged = study("contacts", tmp_path, argv)
    assert "diverged" in diverged.printed
    assert "try a smaller --rate" in diverged.printed
    diverged.json("summary.json")  # is JSON all the same


# -- the answer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ({0.05: 0.3, 0.2: 0.1, 0.5: 0.01, 1.0: 0.0}, 0.5),
        ({0.05: 0.01, 0.2: 0.01, 0.5: 0.02, 1.0: 0.0}, 0.05),
        ({0.05: 0.01, 0.2: 0.05, 0.5: 0.01, 1.0: 0.0}, 0.5),  # what is shorter than one that is too dear does not count
        ({0.05: 0.3, 0.2: 0.2, 0.5: math.nan, 1.0: 0.0}, 1.0),
        ({0.05: 0.0, 0.2: 0.0, 0.5: 0.0, 1.0: 0.03}, math.nan),
    ],
)
def test_the_shortest_list_is_the_one_from_which_on_all_cost_little(costs, expected):
    rows = [
        {"kind": kind, "length": length, "cost_time": cost}
        for kind in ("kept", "redrawn")
        for length, cost in costs.items()
        if length < 1 or kind == "kept"
    ]
    measured = pd.DataFrame(rows)
    for kind in ("kept", "redrawn"):
        found = contacts.shortest(measured, kind, "cost_time")
        assert found == expected or (math.isnan(found) and math.isnan(expected))


def told(**changed):
    """The answer for made-up numbers; `changed` are columns by kind, such as redrawn={"cost_time": 0.1}."""
    args = arguments("contacts")
    compared = contacts.conditions(args)
    plain = {"cost_time": 0.0, "cost_sent": 0.0, "coverage": 100.0, "lookups": 0.0, "finding": 0.0, "complete": 5.0}
    rows = [
        {"condition": each.label, "seed": seed, "kind": each.kind, "length": each.length, **plain}
        | {name: value + 0.001 * seed for name, value in changed.get(each.kind.replace(" ", "_"), {}).items()}
        for each in compared
        for seed in (-1, 1)
    ]
    return contacts.answer(pd.DataFrame(rows), compared, args)


def test_the_answer_says_how_long_a_list_must_be_and_what_refreshing_gains():
    answer = told(kept={"cost_time": 0.05, "cost_sent": 0.01}, redrawn={"cost_time": 0.01, "cost_sent": 0.01})
    # All are of kind "kept" too.
    assert "kept, not even all suffice at equal time and 5% of the nodes at equal messages; drawn anew" in answer
    assert "Drawing anew lowers the error at equal time by +0.040 ± 0.000 at 5%, " in answer


def test_the_answer_says_what_finding_costs():
    answer = told(learned={"lookups": 100.0, "finding": 2.5, "cost_time": 0.004, "complete": 5.3})
    assert "Learned lists cover 95% of the ratings after 5.3 ± 0.0 periods" in answer
    assert (
        "100.0 ± 0.0 messages are sent for each user's, 2.50 ± 0.00% of all; it costs +0.0040 ± 0.0014 at equal time"
        in answer
    )
    never = told(learned={"complete": math.nan})
    assert "Learned lists never cover 95% of the ratings" in never


@pytest.mark.parametrize(("cost", "judged"), [(0.01, "small"), (0.05, "not small")])
def test_the_answer_says_what_dropping_the_silent_gains(cost, judged):
    answer = told(learned_quit={"coverage": 80.0}, dropped_quit={"coverage": 95.0, "cost_time": cost})
    assert "given 100.0 ± 0.0%" in answer
    assert "finds the routers of 15.0 ± 0.0% of the ratings" in answer
    assert f"then, which is {judged}." in answer


# -- what it shows ---------------------------------------------------------------------------------------------------


def test_longer_and_fresher_lists_are_better_and_learned_ones_as_good_as_given(tmp_path):
    argv = ["--users", "60", "--items", "60", "--seeds", "1-3", "--until", "300", "--lengths", "0.1,0.5"]
    run = study("contacts", tmp_path, argv)
    short, long, all_of_them = (
        run.seeds(name, "cost_time") for name in ("random 10%, kept", "random 50%, kept", "all")
    )
    assert (short > long + 0.1).all()
    assert (long > all_of_them + 0.01).all()
    assert (run.seeds("random 10%, redrawn", "cost_time") < short - 0.1).all()
    np.testing.assert_allclose(run.seeds(LEARNED, "cost_time"), 0, atol=0.02)
    assert (run.seeds(f"{QUIT}learned, dropped", "coverage") > run.seeds(f"{QUIT}learned, kept", "coverage")).all()
