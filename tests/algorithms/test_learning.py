import math
import re

import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import USER, draw, entity_keys, uniform
from algorithms.distributions import Constant, Normal, Uniform, compile_distributions
from algorithms.learning import Learning, Schedule, fill_profile, initial_profiles

KEYS = entity_keys(USER, range(2000))
SEED = np.uint64(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"form": "linear"}, "Schedule: form must be one of constant, inverse, exponential, got 'linear'"),
        ({"age": "epochs"}, "Schedule: age must be 'updates' or 'passes', got 'epochs'"),
        ({"form": "inverse", "half_life": 0}, "Schedule: half_life must be > 0 passes, got 0"),
        ({"form": "inverse", "half_life": math.nan}, "Schedule: half_life must be > 0 passes, got nan"),
        ({"form": "exponential"}, "Schedule: half_life must be finite with form='exponential'"),
    ],
)
def test_a_bad_schedule_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Schedule(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rank": 0}, "rank must be an integer >= 1, got 0"),
        ({"rank": 2.0}, "rank must be an integer >= 1, got 2.0"),
        ({"rank": True}, "rank must be an integer >= 1, got True"),
        ({"lam": -0.1}, "lam must be a finite number >= 0, got -0.1"),
        ({"lam": math.nan}, "lam must be a finite number >= 0, got nan"),
        ({"regularization": "l2"}, "regularization must be 'per_message' or 'uniform', got 'l2'"),
        ({"schedule": "inverse"}, "schedule must be a Schedule, got 'inverse'"),
        ({"rate": -0.1}, "rate must not give values below 0, got -0.1"),
        ({"rate": Normal(1, 1)}, "rate must not give values below 0"),
        ({"rate": "fast"}, "rate must be a finite number or a distribution"),
        ({"initial": "random"}, "initial must be a finite number or a distribution"),
    ],
)
def test_bad_learning_is_named(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Learning(**arguments)


def test_learning_is_data():
    assert Learning(rank=np.int64(3), lam=1, rate=0.1) == Learning(rank=3, lam=1.0, rate=Constant(0.1))
    assert Learning(rate=0.1) != Learning(rate=0.2)
    assert Learning(initial=0.5).initial == Constant(0.5)


def test_codes_tell_rules_and_schedules_apart():
    codes = Learning(lam=0.3, schedule=Schedule("inverse", 5, "updates")).codes()
    assert (codes["lam"], codes["half_life"], codes["per_pass"]) == (0.3, 5, False)
    assert Learning(schedule=Schedule("inverse", 5)).codes()["per_pass"]
    forms = [Schedule(), Schedule("inverse", 5), Schedule("exponential", 5)]
    assert len({Learning(schedule=form).codes()["schedule"] for form in forms}) == 3
    assert len({Learning(regularization=r).codes()["regularization"] for r in ("per_message", "uniform")}) == 2


@pytest.mark.parametrize("scale", [(1, 5), (0, 100), (-1, 9)])
@pytest.mark.parametrize("rank", [1, 10])
def test_fresh_predictions_lie_around_the_middle_of_the_scale(scale, rank):
    middle = sum(scale) / 2
    profiles = initial_profiles(KEYS, Learning(rank=rank), scale, seed=SEED)
    assert profiles.shape == (2000, rank)
    assert (profiles > 0).all()
    assert (profiles < 2 * math.sqrt(middle / rank)).all()
    # An entry's mean is sqrt(middle / rank), its deviation 1 / sqrt(3) of that; half the rows meet the other half.
    predicted = (profiles[:1000] * profiles[1000:]).sum(axis=1)
    assert predicted.mean() == pytest.approx(middle, rel=5 * math.sqrt((16 / 9 - 1) / rank / 1000))


@pytest.mark.parametrize("scale", [(-10, 10), (-5, -1), (-3, 3)])
def test_around_zero_and_below_fresh_entries_are_symmetric(scale):
    width = math.sqrt((scale[1] - scale[0]) / 10) / 2
    profiles = initial_profiles(KEYS, Learning(rank=10), scale, seed=SEED)
    assert np.abs(profiles).max() < width
    assert profiles.min() < -0.99 * width
    assert profiles.max() > 0.99 * width
    assert abs(profiles.mean()) < 5 * width / math.sqrt(3 * profiles.size)


def test_initial_entries_can_be_given():
    profiles = initial_profiles(KEYS[:3], Learning(rank=4, initial=Uniform(7, 8)), (1, 5), seed=SEED)
    assert ((profiles > 7) & (profiles < 8)).all()


def test_a_profile_depends_on_its_key_and_the_seed_only():
    learning = Learning(rank=3)
    all_of_them = initial_profiles(KEYS[:10], learning, (1, 5), seed=SEED)
    assert np.array_equal(initial_profiles(KEYS[[7, 2]], learning, (1, 5), seed=SEED), all_of_them[[7, 2]])
    assert not np.isclose(initial_profiles(KEYS[:10], learning, (1, 5), seed=np.uint64(2)), all_of_them).any()
    assert len(np.unique(all_of_them)) == 30


def test_entries_are_numbered_draws_of_the_profile():
    profile = initial_profiles(KEYS[:1], Learning(rank=3, initial=Uniform(0, 1)), (1, 5), seed=SEED)[0]
    words = [draw(SEED, purposes.INITIAL_PROFILE, KEYS[0], k) for k in range(3)]
    assert profile.tolist() == [uniform(np.uint64(word)) for word in words]


def test_each_incarnation_is_another_profile():
    rows, pool = compile_distributions([Uniform(0, 1)])
    filled = np.empty((3, 5))
    for incarnation in range(3):
        fill_profile(filled[incarnation], rows, pool, 0, SEED, KEYS[0], incarnation)
    assert len(np.unique(filled)) == 15
    first = initial_profiles(KEYS[:1], Learning(rank=5, initial=Uniform(0, 1)), (1, 5), seed=SEED)
    assert np.array_equal(first[0], filled[0])
