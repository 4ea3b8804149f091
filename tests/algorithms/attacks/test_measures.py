import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.attacks import hit_rate, hit_rate_shift, mean_prediction_shift

MISSING = np.array([True, False, True, True])
PREDICTED = np.array([[5.0, 4, 3, 2], [1, 2, 3, 4], [3, 3, 3, 3]])
NONE_RATED = np.zeros((3, 4), dtype=bool)


def test_mean_prediction_shift_by_hand():
    # Of users 0, 2 and 3: -1, 0.5 and -1.
    assert mean_prediction_shift([4, 5, 3, 2], [3, 1, 3.5, 1], MISSING) == pytest.approx(-0.5)
    assert mean_prediction_shift([4, 5, 3, 2], [4, 5, 3, 2], MISSING) == 0


def test_what_a_user_rated_does_not_count_in_the_shift():
    assert mean_prediction_shift([4, np.nan, 3, 2], [5, 9, 4, 3], MISSING) == 1


def test_hit_rate_by_hand():
    # Item 1 stands second for user 0, third for user 1, and ties with three others for user 2.
    assert hit_rate(PREDICTED, NONE_RATED, 1, n=1) == pytest.approx((0 + 0 + 1 / 4) / 3)
    assert hit_rate(PREDICTED, NONE_RATED, 1, n=2) == pytest.approx((1 + 0 + 2 / 4) / 3)
    assert hit_rate(PREDICTED, NONE_RATED, 1, n=3) == pytest.approx((1 + 1 + 3 / 4) / 3)
    assert hit_rate(PREDICTED, NONE_RATED, 1, n=4) == 1
    assert hit_rate(PREDICTED, NONE_RATED, 1) == 1


def test_rated_items_are_no_candidates():
    rated = NONE_RATED.copy()
    rated[0, 0] = rated[2, [0, 2]] = True
    assert hit_rate(PREDICTED, rated, 1, n=1) == pytest.approx((1 + 0 + 1 / 2) / 3)
    rated[1, 1] = True  # this user has rated the target and has no part in it
    assert hit_rate(PREDICTED, rated, 1, n=1) == pytest.approx((1 + 1 / 2) / 2)
    unknown = np.where(rated, np.nan, PREDICTED)
    assert hit_rate(unknown, rated, 1, n=1) == pytest.approx((1 + 1 / 2) / 2)


@given(
    rows=st.lists(
        st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=4, max_size=4), min_size=1, max_size=3
    ),
    n=st.integers(1, 5),
)
def test_hit_rate_is_the_mean_over_all_orders_of_equals(rows, n):
    predicted = np.array([[value for value, _ in row] for row in rows], dtype=float)
    rated = np.array([[known for _, known in row] for row in rows])
    rated[0, 2] = False
    rates = []
    for user in np.flatnonzero(~rated[:, 2]):
        candidates = np.flatnonzero(~rated[user]).tolist()
        hits = [
            2 in sorted(order, key=lambda item: -predicted[user, item])[:n]
            for order in itertools.permutations(candidates)
        ]
        rates.append(Fraction(sum(hits), len(hits)))
    assert hit_rate(predicted, rated, 2, n=n) == pytest.approx(float(sum(rates) / len(rates)), abs=1e-12)


def test_hit_rate_shift_is_after_less_before():
    after = PREDICTED.copy()
    after[0, 1] = 1
    assert hit_rate_shift(PREDICTED, after, NONE_RATED, 1, n=2) == pytest.approx(-1 / 3)
    assert hit_rate_shift(after, PREDICTED, NONE_RATED, 1, n=2) == pytest.approx(1 / 3)
    assert hit_rate_shift(PREDICTED, PREDICTED, NONE_RATED, 1) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"after": [1.0, 2, 3, 4, 5]},
            r"^before and after must have one shape .* \(4,\) and \(5,\); .* after\[:n_users\]$",
        ),
        ({"before": [[1.0]], "after": [[1.0]]}, r"^before and after must have one shape"),
        (
            {"missing_users": [0, 2, 3]},
            r"^missing_users must be boolean of shape \(4,\), got int64 of shape \(3,\); pass",
        ),
        ({"missing_users": np.zeros(4, dtype=bool)}, r"^missing_users must hold a user who has not .* another target$"),
        ({"before": [np.nan, 2, 3, 4]}, r"^before must hold a finite prediction for each unrated item, got NaN"),
        ({"after": [1, 2, np.inf, 4]}, r"^after must hold a finite prediction"),
    ],
)
def test_errors_of_the_shift_name_the_argument_and_the_mend(arguments, message):
    given = {"before": [1.0, 2, 3, 4], "after": [1.0, 2, 3, 4], "missing_users": MISSING} | arguments
    with pytest.raises(ValueError, match=message):
        mean_prediction_shift(**given)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"predicted": [1.0, 2]}, r"^predicted must have shape \(n_users, n_items\), got \(2,\); pass the completed"),
        (
            {"rated": NONE_RATED[:2]},
            r"^rated must be boolean of shape \(3, 4\), got bool of shape \(2, 4\); .*leave fake",
        ),
        ({"rated": NONE_RATED.astype(int)}, r"^rated must be boolean of shape \(3, 4\), got int64"),
        ({"rated": ~NONE_RATED}, r"^rated must leave a user who has not rated the target, got none; choose another"),
        ({"predicted": np.where(PREDICTED == 5, np.nan, PREDICTED)}, r"^predicted must hold a finite prediction"),
        ({"target": 4}, r"^target must be a column from 0 to 3, got 4; pass an index, not an id$"),
        ({"n": 0}, r"^n must be an integer >= 1, got 0; it is the length of a list$"),
    ],
)
def test_errors_of_the_hit_rate_name_the_argument_and_the_mend(arguments, message):
    given = {"predicted": PREDICTED, "rated": NONE_RATED, "target": 1} | arguments
    with pytest.raises(ValueError, match=message):
        hit_rate(**given)
