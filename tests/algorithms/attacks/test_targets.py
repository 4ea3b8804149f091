import os
from pathlib import Path

import numpy as np
import pytest

from algorithms.attacks import popular_target, popular_targets, simulated_target
from algorithms.datasets import movielens_100k
from algorithms.datasets.filters import with_at_least
from algorithms.synthetic import missing_not_at_random, recommender

N = np.nan
# Means 3, 4.5, 4.5, 5, none; ratings 4, 2, 2, 1, 0.
MATRIX = np.array([[3, 5, N, 5, N], [3, N, 4, N, N], [3, 4, 5, N, N], [3, N, N, N, N]])
PLACES = [
    Path(os.environ.get("MOVIELENS_100K") or "nowhere").expanduser(),
    Path(__file__).resolve().parents[4] / "shared" / "data" / "ml-100k",
]


@pytest.mark.parametrize(
    ("shifts", "target"),
    [
        ([1.0, 0.95, 0.2, 0.1, 1.0], 1),  # of items 0, 1 and 4, the highest mean
        ([1.0, 0.5, 0.2, 0.91, 0.0], 3),
        ([0.2, 0.95, 0.95, 0.1, 0.0], 1),  # equal means: the lower index
        ([0.95, 0.9, 0.9, 0.1, 0.0], 0),  # 0.9 itself is not above 0.9
        ([0.2, 0.3, 0.8, 0.1, 0.0], 2),  # none above 0.9: the largest shift
        ([0.2, 0.3, 0.8, 0.1, 1.0], 2),  # nor one with a rating
    ],
)
def test_target_of_a_simulation_by_hand(shifts, target):
    assert simulated_target(MATRIX, shifts, 1.0) == target
    assert simulated_target(MATRIX, 2 * np.array(shifts), 2.0) == target


def test_threshold_of_the_target_is_an_argument():
    assert simulated_target(MATRIX, [1.0, 0.5, 0.2, 0.1, 0.0], 1.0, threshold=0.4) == 1


def test_target_of_the_design_of_the_paper_is_popular_and_liked():
    for seed in range(5):
        data = recommender(seed=seed)
        matrix = np.where(missing_not_at_random(data.shifts, 300, seed=seed), N, data.complete)
        target = simulated_target(matrix, data.shifts, data.largest_shift)
        popular = np.flatnonzero(data.shifts > 0.9 * data.largest_shift)
        assert target in popular
        assert np.nanmean(matrix[:, target]) == np.nanmean(matrix[:, popular], axis=0).max()


@pytest.mark.parametrize(("share", "targets"), [(0.2, [0]), (0.3, [1, 2, 0]), (0.4, [1, 2, 0]), (0.8, [3, 1, 2, 0])])
def test_popular_targets_by_hand(share, targets):
    # Items 1 and 2 have equally many ratings: both are popular where one of them is. Item 4 has none.
    assert popular_targets(MATRIX, len(targets), share=share).tolist() == targets
    assert popular_target(MATRIX, share=share) == targets[0]
    with pytest.raises(
        ValueError, match=rf"^n must be an integer from 1 to {len(targets)}, got {len(targets) + 1}; share="
    ):
        popular_targets(MATRIX, len(targets) + 1, share=share)


def test_the_share_of_popular_items_is_rounded_up_but_not_by_floating_point():
    assert 0.07 * 100 > 7
    matrix = np.where(np.arange(100) <= np.arange(100)[:, None], 3.0, N)  # item j has 100 - j ratings
    assert popular_targets(matrix, 7, share=0.07).tolist() == list(range(7))
    with pytest.raises(ValueError, match=r"^n must be an integer from 1 to 7, got 8"):
        popular_targets(matrix, 8, share=0.07)


def test_a_matrix_with_few_rated_items_has_no_target_without_a_rating():
    matrix = np.array([[N, 3.0, N, N]])
    assert popular_targets(matrix, 1, share=1).tolist() == [1]


def test_targets_of_movielens():
    for place in PLACES:
        if (place / "u.data").is_file():
            ratings = with_at_least(movielens_100k(place), item=20)
            break
    else:
        pytest.skip(
            f"needs MovieLens 100K in {PLACES[1]} or MOVIELENS_100K, which may not be passed on with the project"
        )
    matrix = np.full((ratings.n_users, ratings.n_items), N)
    matrix[ratings.user, ratings.item] = ratings.value
    best = [ratings.item_ids[column] for column in popular_targets(matrix, 5)]
    assert best == [318, 483, 64, 12, 50]  # Schindler's List, Casablanca, ..., Star Wars


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shifts": [1.0]}, r"^shifts must be 5 finite numbers, one for each item, got shape \(1,\); pass those"),
        ({"shifts": [1.0, N, 0, 0, 0]}, r"^shifts must be 5 finite numbers"),
        ({"largest_shift": 0}, r"^largest_shift must be in \(0, inf\), got 0"),
        ({"threshold": 90}, r"^threshold must be in \[0, 1\], got 90; pass a fraction"),
        ({"matrix": [[N, N]]}, r"^matrix must hold at least one rating"),
    ],
)
def test_errors_of_a_simulated_target_name_the_argument_and_the_mend(arguments, message):
    given = {"matrix": MATRIX, "shifts": [1.0, 0, 0, 0, 0], "largest_shift": 1.0} | arguments
    with pytest.raises(ValueError, match=message):
        simulated_target(**given)


@pytest.mark.parametrize("share", [0, 10, N])
def test_share_of_popular_items_is_a_share(share):
    with pytest.raises(ValueError, match=r"^share must be in \(0, 1\], got .*; pass a fraction"):
        popular_target(MATRIX, share=share)
