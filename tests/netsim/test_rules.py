"""A researcher's own rules: the same bits on every engine, and mistakes that are heard."""

import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from algorithms.chance import uniform
from algorithms.synthetic import low_rank
from netsim import World, simulate, truth_rmse

DATA = low_rank(12, 10, rank=2, seed=1)
ROOT = Path(__file__).resolve().parents[2]


@njit
def sign_step(own, other, rating, rate, lam):
    error = 0.0
    for k in range(own.shape[0]):
        error += own[k] * other[k]
    error = np.sign(error - rating)
    for k in range(own.shape[0]):
        own[k] -= rate * (other[k] * error + lam * own[k])


@njit
def literal(own, other, rating, rate, lam):
    error = 0.0
    for k in range(own.shape[0]):
        error += own[k] * other[k]
    error -= rating
    for k in range(own.shape[0]):
        own[k] = own[k] - rate * other[k] * error - rate * lam * own[k]


@njit
def slow_start(word, base, now):
    return 0.3 * uniform(word) if now < 20.0 else 0.05


@njit
def burst(word, base, now):
    return 10.0 <= now < 20.0 and uniform(word) < 0.5


def bits(result):
    table = result.probes.drop(columns=["time"])
    return result.user_profiles.tobytes(), result.item_profiles.tobytes(), table.to_csv()


@pytest.mark.parametrize(
    "rules",
    [
        {"update_user": sign_step},
        {"update_item": sign_step},
        {"delay": slow_start},
        {"loss": burst},
        {"update_user": sign_step, "update_item": sign_step, "delay": slow_start, "loss": burst},
    ],
    ids=lambda rules: "+".join(rules),
)
def test_engines_and_threads_give_the_same_bits(rules):
    world = World(DATA.train, **rules)
    runs = [
        simulate(world, until=40.0, seed=1, probes=[truth_rmse(DATA.truth)], engine=engine, threads=threads)
        for engine, threads in (("events", None), ("compiled", 1), ("compiled", 2))
    ]
    assert bits(runs[0]) == bits(runs[1]) == bits(runs[2])
    plain = simulate(World(DATA.train), until=40.0, seed=1, probes=[truth_rmse(DATA.truth)])
    assert bits(runs[0]) != bits(plain)  # the rule did something


def test_the_equations_as_own_rules_change_nothing():
    own = simulate(World(DATA.train, update_user=literal, update_item=literal), until=40.0, seed=1)
    assert own.engine == "compiled"
    assert bits(own) == bits(simulate(World(DATA.train), until=40.0, seed=1))


def test_a_python_function_gives_the_bits_of_its_compiled_self_on_the_events_engine_only():
    world = World(DATA.train, update_user=literal.py_func, loss=burst.py_func)
    result = simulate(world, until=30.0, seed=1)
    assert result.engine == "events"
    assert "literal" in result.engine_reason
    assert "burst" in result.engine_reason
    compiled = simulate(World(DATA.train, update_user=literal, loss=burst), until=30.0, seed=1, engine="compiled")
    assert bits(result) == bits(compiled)
    with pytest.raises(ValueError, match=r"engine='compiled' cannot run loss=.*burst.*update_user=.*literal"):
        simulate(world, until=30.0, seed=1, engine="compiled")


def test_loss_and_delay_rules_decide():
    result = simulate(World(DATA.train, loss=burst), until=40.0, seed=1, every=10.0)
    lost = result.probes["lost_link"].tolist()
    assert lost[:2] == [0, 0]
    assert lost[2] > 0
    assert lost[2:] == [lost[2]] * 3


@pytest.mark.parametrize(
    ("argument", "rule", "told"),
    [
        ("update_user", 3, r"update_user must be a function rule\(own, other, rating, rate, lam\).*got 3"),
        ("update_item", lambda own: None, r"update_item: a call of '<lambda>' as rule\(own.*failed"),
        ("loss", lambda word: False, r"loss: a call of .* failed"),
        ("delay", njit(lambda word, base, now: "late"), r"delay: numba cannot compile '<lambda>' as rule\(word"),
    ],
)
def test_a_wrong_rule_is_refused_when_the_world_is_made(argument, rule, told):
    with pytest.raises(ValueError, match=told):
        World(DATA.train, **{argument: rule})


def test_a_rule_that_raises_in_mid_run_is_heard():
    def fragile(own, other, rating, rate, lam):
        if not np.array_equal(own, np.ones(2)):
            raise ZeroDivisionError("too far")

    with pytest.raises(RuntimeError, match="a rule of the world raised ZeroDivisionError: too far"):
        simulate(World(DATA.train, update_user=fragile), until=20.0, seed=1)
    simulate(World(DATA.train), until=20.0, seed=1)  # and once only


def test_worlds_with_rules_are_described_by_name():
    world = World(DATA.train, delay=slow_start)
    assert world.describe()["delay"].endswith("slow_start")
    assert world == World(DATA.train, delay=slow_start)
    assert world != World(DATA.train, delay=burst)


def test_the_examples_of_the_docs_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "own-rules.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(block, names)
