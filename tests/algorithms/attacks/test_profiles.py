"""Section 3.3 of the second seed paper, and the push attacks of the literature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.attacks import Attack, inject, number_of_profiles
from algorithms.synthetic import missing_not_at_random, recommender

N = np.nan
STARS = range(1, 6)
KINDS = ("average", "reverse_bandwagon", "love_hate", "random", "bandwagon")
SMALL = np.array(
    [
        # target, mode 4, mode 2, modes 1 and 5, no rating, mode 3
        [5, 4, 2, 1, N, 3],
        [5, 4, 2, 5, N, 3],
        [4, 1, 2, N, N, 3],
        [N, 4, N, N, N, 5],
    ]
)


@pytest.fixture(scope="module")
def simulated():
    data = recommender(seed=1)
    return np.where(missing_not_at_random(data.shifts, 300, seed=2), N, data.complete)


def made(kind, matrix=SMALL, *, target=0, n_profiles=4, seed=1, categories=STARS, **options):
    attack = Attack(kind, **options)
    return attack.profiles(matrix, target, n_profiles=n_profiles, seed=seed, categories=categories)


def test_defaults_are_those_of_the_reference():
    attack = Attack("average")
    assert (attack.filler_share, attack.n_selected, attack.min_ratings, attack.intent) == (0.1, 10, 20, "nuke")
    assert attack == Attack("average", filler_share=0.1)
    assert hash(attack) == hash(Attack("average"))


def test_average_attack_rates_all_other_items_by_their_mode():
    fake = made("average", filler_share=1, n_profiles=200)
    assert fake.shape == (200, 6)
    assert fake.dtype == np.float64
    assert set(fake[:, 0]) == {1}
    assert [set(fake[:, item]) for item in (1, 2, 5)] == [{4}, {2}, {3}]
    # One of several modes is drawn for each cell: 100 of each expected.
    assert set(fake[:, 3]) == {1, 5}
    assert 65 < (fake[:, 3] == 1).sum() < 135


def test_average_attack_rates_an_item_without_a_rating_by_the_mode_of_all():
    # Of all ratings: 1 twice, 2 three times, 3 three times, 4 four times, 5 four times.
    fake = made("average", filler_share=1, n_profiles=200)
    assert set(fake[:, 4]) == {4, 5}


def test_love_hate_attack_loves_all_and_hates_the_target():
    assert made("love_hate", filler_share=1).tolist() == [[1, 5, 5, 5, 5, 5]] * 4


def test_reverse_bandwagon_rates_the_least_liked_items_and_the_fillers_lowest():
    # Means: item 1 3.25, item 2 2, item 3 3, item 5 3.5; item 4 has none.
    fake = made("reverse_bandwagon", filler_share=0, n_selected=2, min_ratings=2)
    np.testing.assert_array_equal(fake, [[1, N, 1, 1, N, N]] * 4)
    fake = made("reverse_bandwagon", filler_share=0, n_selected=2, min_ratings=3)
    np.testing.assert_array_equal(fake, [[1, 1, 1, N, N, N]] * 4)
    fake = made("reverse_bandwagon", filler_share=1, n_selected=2, min_ratings=2)
    assert fake.tolist() == [[1] * 6] * 4


def test_reverse_bandwagon_draws_its_fillers_from_the_items_that_are_not_selected():
    fake = made("reverse_bandwagon", filler_share=0.4, n_selected=2, min_ratings=2, n_profiles=300)  # 2 fillers of 3
    assert set(fake[~np.isnan(fake)]) == {1}
    rated = ~np.isnan(fake)
    assert rated[:, [0, 2, 3]].all()
    assert set(rated.sum(axis=1)) == {5}
    assert (rated[:, [1, 4, 5]].mean(axis=0) > 0.5).all()


def test_bandwagon_rates_the_most_rated_items_highest():
    # Ratings: item 1 four, item 5 four, items 2 three, item 3 two, item 4 none; of equals the lower index.
    for intent, target_rating in (("nuke", 1), ("push", 5)):
        fake = made("bandwagon", filler_share=0, n_selected=3, intent=intent)
        np.testing.assert_array_equal(fake, [[target_rating, 5, 5, N, N, 5]] * 4)
    np.testing.assert_array_equal(made("bandwagon", filler_share=0, n_selected=1), [[1, 5, N, N, N, N]] * 4)


@pytest.mark.parametrize("kind", ["random", "bandwagon"])
def test_fillers_of_a_random_attack_are_normal_as_all_ratings_are(kind, simulated):
    fake = made(kind, simulated, filler_share=1, n_profiles=100, n_selected=1)
    observed = simulated[~np.isnan(simulated)]
    fillers = np.delete(fake, [0, int((~np.isnan(simulated[:, 1:])).sum(axis=0).argmax()) + 1], axis=1)
    assert set(np.unique(fillers)) == set(STARS)
    draws = np.clip(np.rint(np.random.default_rng(0).normal(observed.mean(), observed.std(), 200_000)), 1, 5)
    for category in STARS:
        assert np.mean(fillers == category) == pytest.approx(np.mean(draws == category), abs=0.015)


def test_random_attack_rounds_to_the_nearest_category():
    matrix = np.array([[1.0, 10.0], [2.0, 10.0]])
    fake = made("random", matrix, filler_share=1, n_profiles=500, categories=[1, 2, 10])
    assert set(fake[:, 1]) == {1, 2, 10}
    draws = np.random.default_rng(0).normal(matrix.mean(), matrix.std(), 200_000)
    for category, (low, high) in {1: (-np.inf, 1.5), 2: (1.5, 6), 10: (6, np.inf)}.items():
        expected = np.mean((draws > low) & (draws < high))
        assert np.mean(fake[:, 1] == category) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("kind", ["average", "love_hate", "random", "bandwagon"])
def test_a_push_attack_rates_the_target_highest(kind):
    assert set(made(kind, intent="push", n_selected=2)[:, 0]) == {5}
    assert set(made(kind, n_selected=2)[:, 0]) == {1}


def test_a_love_hate_attack_pushes_with_the_ends_exchanged():
    assert made("love_hate", filler_share=1, intent="push").tolist() == [[5, 1, 1, 1, 1, 1]] * 4


def test_pushed_averages_have_the_same_fillers():
    nuke, push = (made("average", filler_share=1, intent=intent) for intent in ("nuke", "push"))
    assert np.array_equal(nuke[:, 1:], push[:, 1:])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "fillers"), [(0.1, 20), (0, 0), (0.5, 100), (1, 199)])
def test_a_share_of_the_other_items_is_filled(kind, share, fillers, simulated):
    fake = made(kind, simulated, target=7, filler_share=share)
    selected = 10 if "bandwagon" in kind else 0
    expected = min(fillers + selected, 199) + 1
    assert (~np.isnan(fake)).sum(axis=1).tolist() == [expected] * 4
    assert set(fake[:, 7]) == {1}


def test_each_profile_draws_its_own_fillers_each_item_as_likely_as_any_other(simulated):
    rated = ~np.isnan(made("love_hate", simulated, target=7, n_profiles=4000))
    assert len(np.unique(rated, axis=0)) == 4000
    shares = np.delete(rated.mean(axis=0), 7)
    assert np.abs(shares - 20 / 199).max() < 5 * np.sqrt(0.1 * 0.9 / 4000)


def test_selected_items_have_enough_ratings(simulated):
    counts = (~np.isnan(simulated)).sum(axis=0)
    fake = made("reverse_bandwagon", simulated, target=int(counts.argmax()), filler_share=0)
    selected = np.flatnonzero(~np.isnan(fake[0]))
    assert len(selected) == 11
    assert counts[selected].min() >= 20
    eligible = np.flatnonzero(counts >= 20)
    means = np.nanmean(simulated, axis=0)
    lowest = eligible[np.argsort(means[eligible])[:10]]
    assert set(lowest) == set(selected) - {int(counts.argmax())}
    assert counts[means.argmin()] < 20  # else the bound has no part in it


def test_the_target_is_not_selected_itself():
    fake = made("reverse_bandwagon", target=2, filler_share=0, n_selected=2, min_ratings=2)
    np.testing.assert_array_equal(fake, [[N, 1, 1, 1, N, N]] * 4)


def test_more_profiles_leave_the_first_ones_as_they_are(simulated):
    for kind in KINDS:
        few, more = (made(kind, simulated, n_profiles=n) for n in (3, 8))
        np.testing.assert_array_equal(few, more[:3])


def test_attacks_with_one_seed_are_pairs(simulated):
    rated = [~np.isnan(made(kind, simulated)) for kind in ("average", "love_hate", "random")]
    assert np.array_equal(rated[0], rated[1])
    assert np.array_equal(rated[1], rated[2])
    assert not np.array_equal(rated[0], ~np.isnan(made("average", simulated, seed=2)))


def test_half_stars_are_rated_with_half_stars():
    matrix = np.array([[0.5, 3.5, 4.5], [N, 3.5, 0.5]])
    fake = made("average", matrix, filler_share=1, categories=np.arange(0.5, 5.5, 0.5))
    assert set(fake[:, 0]) == {0.5}
    assert set(fake[:, 1]) == {3.5}


def test_the_matrix_is_left_as_it_is(simulated):
    before = simulated.copy()
    for kind in KINDS:
        made(kind, simulated)
    np.testing.assert_array_equal(simulated, before)


@given(
    seed=st.integers(0, 2**32),
    shape=st.tuples(st.integers(1, 6), st.integers(2, 8)),
    kind=st.sampled_from(KINDS),
    share=st.floats(0, 1),
    intent=st.sampled_from(["nuke", "push"]),
)
def test_any_matrix_gets_profiles_within_its_categories(seed, shape, kind, share, intent):
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random(shape) < 0.4, N, rng.integers(1, 6, shape))
    matrix[0] = 3
    target = int(rng.integers(shape[1]))
    intent = "nuke" if kind == "reverse_bandwagon" else intent
    options = {"filler_share": share, "intent": intent, "n_selected": 1, "min_ratings": 1}
    fake = made(kind, matrix, target=target, n_profiles=3, seed=seed, **options)
    rated = ~np.isnan(fake)
    selected = int("bandwagon" in kind)
    assert set(rated.sum(axis=1)) == {1 + selected + min(round(share * (shape[1] - 1)), shape[1] - 1 - selected)}
    assert set(fake[rated]) <= set(STARS)
    assert set(fake[:, target]) == {5 if intent == "push" else 1}


def test_number_of_profiles_is_a_share_of_the_ratings_of_the_target():
    matrix = np.full((300, 2), N)
    matrix[:178, 0], matrix[:3, 1] = 4, 2
    assert number_of_profiles(matrix, 0, 0.2) == 36  # 35.6
    assert number_of_profiles(matrix, 0, 0.10) == 18  # 17.8
    assert number_of_profiles(matrix, 0, 2) == 356
    assert number_of_profiles(matrix, 1, 0.1) == 1  # at least one
    assert number_of_profiles(matrix, 1, 0.5) == 2  # 1.5, to the even number


def test_fake_profiles_are_appended_after_the_genuine_users():
    fake = made("love_hate", n_profiles=2)
    together = inject(SMALL, fake)
    assert together.shape == (6, 6)
    np.testing.assert_array_equal(together[:4], SMALL)
    np.testing.assert_array_equal(together[4:], fake)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kind": "probe"},
            r"^kind must be one of average, reverse_bandwagon, love_hate, random, bandwagon, got 'probe'",
        ),
        ({"intent": "both"}, r"^intent must be 'nuke' or 'push', got 'both'; choose one$"),
        (
            {"kind": "reverse_bandwagon", "intent": "push"},
            r"^kind must not be 'reverse_bandwagon' with .* use 'bandwagon'",
        ),
        ({"filler_share": 10}, r"^filler_share must be in \[0, 1\], got 10; pass a fraction, not a percentage$"),
        ({"n_selected": 0}, r"^n_selected must be an integer >= 1, got 0; use kind 'average' or 'random'"),
        ({"min_ratings": 0}, r"^min_ratings must be an integer >= 1, got 0; an item without a rating has no mean"),
    ],
)
def test_errors_of_an_attack_name_the_argument_and_the_mend(arguments, message):
    with pytest.raises(ValueError, match=message):
        Attack(**{"kind": "average"} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"matrix": [1.0, 2.0]}, r"^matrix must have shape \(n_users, n_items\), got \(2,\); pass ratings"),
        ({"matrix": [[1.0, np.inf]]}, r"^matrix must hold finite ratings, got inf in row 0, column 1; a missing"),
        ({"matrix": [[N, N]]}, r"^matrix must hold at least one rating, got NaN everywhere; check"),
        ({"matrix": [[3.0, 0.0]]}, r"^matrix must hold categories 1, 2, 3, 4, 5, got 0 in row 0, column 1; correct"),
        ({"target": 6}, r"^target must be a column from 0 to 5, got 6; pass an index, not an id$"),
        ({"target": "Alien"}, r"^target must be a column from 0 to 5, got 'Alien'"),
        ({"n_profiles": 0}, r"^n_profiles must be an integer >= 1, got 0; number_of_profiles gives"),
        ({"categories": [3]}, r"^categories must be two or more different finite numbers, got \[3\]; pass range"),
        ({"categories": [1, 1, 2]}, r"^categories must be two or more different"),
        ({"kind": "reverse_bandwagon"}, r"^n_selected must be at most 0, .* 20 ratings or more, .* or min_ratings$"),
        ({"kind": "bandwagon"}, r"^n_selected must be at most 4, .* 1 ratings or more, got 10; lower n_selected$"),
    ],
)  # fmt: skip
def test_errors_of_profiles_name_the_argument_and_the_mend(arguments, message):
    with pytest.raises(ValueError, match=message):
        made(**{"kind": "average"} | arguments)


@pytest.mark.parametrize(
    ("target", "share", "message"),
    [
        (0, 0, r"^share must be in \(0, inf\), got 0; pass a fraction"),
        (0, N, r"^share must be in"),
        (-1, 0.2, r"^target must be a column from 0 to 5, got -1"),
    ],
)
def test_errors_of_the_number_name_the_argument_and_the_mend(target, share, message):
    with pytest.raises(ValueError, match=message):
        number_of_profiles(SMALL, target, share)


def test_profiles_of_another_matrix_are_refused():
    with pytest.raises(ValueError, match=r"^profiles must have the 6 items of the matrix, got 2; make them from it$"):
        inject(SMALL, [[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"^profiles must have shape"):
        inject(SMALL, [1.0, 2.0])
