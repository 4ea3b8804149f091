import numpy as np
import pytest

from algorithms import purposes
from algorithms.chance import ITEM, ROUTER, USER, entity_keys
from algorithms.distributions import Uniform, sample_each
from algorithms.learning import Learning, Schedule, initial_profiles
from algorithms.metrics import rmse
from algorithms.objective import objective
from algorithms.prediction import Predictor
from algorithms.ratings import Ratings
from algorithms.sequential import Sequential, random_order


def low_rank(n_users=30, n_items=25, rank=2, known=0.8, seed=0):
    """Ratings around 3 with a factor structure, and the mask of those known."""
    rng = np.random.default_rng(seed)
    X = 3 + rng.normal(size=(n_users, rank)) @ rng.normal(size=(rank, n_items)) / 2
    user, item = np.nonzero(rng.uniform(size=X.shape) < known)
    return Ratings.from_arrays(user, item, X[user, item], user_ids=range(n_users), item_ids=range(n_items))


def bits(sequential):
    return sequential.user_profiles.tobytes(), sequential.item_profiles.tobytes()


def test_replay_applies_exactly_the_given_order():
    # One user, two items, rank 1; every number is exact in binary.
    ratings = Ratings.from_arrays([0, 0], [0, 1], [3.0, 1.0])
    sequential = Sequential(ratings, Learning(rank=1, lam=0.5, rate=0.5), seed=1)
    sequential.user_profiles[:], sequential.item_profiles[:] = [[1.0]], [[2.0], [4.0]]
    returned = sequential.replay(np.array([0, 1, 0]), np.array([True, False, False]))
    assert returned is sequential
    # u: 1 - 0.5*2*(2 - 3) - 0.25*1 = 1.75; v1: 4 - 0.5*1.75*(7 - 1) - 0.25*4 = -2.25;
    # v0: 2 - 0.5*1.75*(3.5 - 3) - 0.25*2 = 1.0625.
    assert sequential.user_profiles.tolist() == [[1.75]]
    assert sequential.item_profiles.tolist() == [[1.0625], [-2.25]]
    assert sequential.user_updates.tolist() == [1]
    assert sequential.item_updates.tolist() == [1, 1]


def test_replay_divides_lambda_and_counts_passes_by_the_profiles_own_ratings():
    # The user has two ratings, each item one. One pass halves the rate: a user's second update has age 1/2.
    ratings = Ratings.from_arrays([0, 0], [0, 1], [3.0, 1.0])
    learning = Learning(rank=1, lam=0.5, rate=0.75, regularization="uniform", schedule=Schedule("inverse", 1.0))
    sequential = Sequential(ratings, learning, seed=1)
    sequential.user_profiles[:], sequential.item_profiles[:] = [[0.0]], [[0.0], [0.0]]
    sequential.replay(np.array([0]), np.array([True]))  # u and v stay 0, but age
    sequential.replay(np.array([0]), np.array([False]))
    sequential.user_profiles[:], sequential.item_profiles[:] = [[2.0]], [[1.0], [1.0]]
    sequential.replay(np.array([1]), np.array([True]))
    assert sequential.user_profiles[0, 0] == 2 - 0.5 * 1 * (2 - 1) - 0.5 * 0.25 * 2
    sequential.user_profiles[:] = 2.0
    sequential.replay(np.array([0]), np.array([False]))
    assert sequential.item_profiles[0, 0] == 1 - 0.375 * 2 * (2 - 3) - 0.375 * 0.5 * 1


def test_profiles_and_rates_start_from_the_draws_of_their_entities():
    ratings, learning, seed = low_rank(5, 4), Learning(rank=3, rate=Uniform(0.01, 0.1)), np.uint64(9)
    sequential = Sequential(ratings, learning, seed=9)
    scale = (ratings.scale.low, ratings.scale.high)
    for profiles, role, n in ((sequential.user_profiles, USER, 5), (sequential.item_profiles, ITEM, 4)):
        expected = initial_profiles(entity_keys(role, range(n)), learning, scale, seed=seed)
        assert np.array_equal(profiles, expected)
    # One update of each with a large rating shows the rate: lambda and profiles as they are, error known.
    user_rate = sample_each(learning.rate, seed, purposes.LEARNING_RATE, entity_keys(USER, range(5)))
    item_rate = sample_each(learning.rate, seed, purposes.LEARNING_RATE, entity_keys(ROUTER, range(4)))
    i, j, x = ratings.user[0], ratings.item[0], ratings.value[0]
    u, v = sequential.user_profiles[i].copy(), sequential.item_profiles[j].copy()
    sequential.replay(np.array([0]), np.array([True]))
    assert sequential.user_profiles[i] == pytest.approx(u - user_rate[i] * (v * (u @ v - x) + 0.05 * u))
    u = sequential.user_profiles[i].copy()
    sequential.replay(np.array([0]), np.array([False]))
    assert sequential.item_profiles[j] == pytest.approx(v - item_rate[j] * (u * (u @ v - x) + 0.05 * v))


def test_run_is_one_function_of_the_seed():
    ratings, learning = low_rank(), Learning(rank=3)
    assert bits(Sequential(ratings, learning, 1).run(500)) == bits(Sequential(ratings, learning, 1).run(500))
    assert bits(Sequential(ratings, learning, 1).run(500)) != bits(Sequential(ratings, learning, 2).run(500))


@pytest.mark.parametrize("parts", [(1, 999), (400, 600), (0, 1000)])
def test_two_runs_are_one_longer_run(parts):
    learning = Learning(rank=3, schedule=Schedule("inverse", 5), rate=Uniform(0.01, 0.05))
    whole = Sequential(low_rank(), learning, 1).run(1000)
    split = Sequential(low_rank(), learning, 1).run(parts[0]).run(parts[1])
    assert bits(split) == bits(whole)
    assert np.array_equal(split.user_updates, whole.user_updates)
    assert whole.user_updates.sum() + whole.item_updates.sum() == 1000


def test_the_order_can_be_drawn_in_parts():
    rating, user_side = random_order(7, 100, seed=3)
    later = random_order(7, 60, seed=3, first=40)
    assert np.array_equal(rating[40:], later[0])
    assert np.array_equal(user_side[40:], later[1])
    assert set(rating.tolist()) == set(range(7))
    assert 25 < user_side.sum() < 75


def test_rmse_falls_on_a_low_rank_problem():
    ratings = low_rank()
    train = ratings.select(np.arange(len(ratings)) % 5 != 0)
    test = ratings.select(np.arange(len(ratings)) % 5 == 0)
    sequential, predict = Sequential(train, Learning(rank=3, lam=0.01, rate=0.05), seed=1), Predictor(train)

    def errors():
        pairs = (sequential.user_profiles, sequential.item_profiles)
        return [rmse(predict(*pairs, some.user, some.item), some.value) for some in (train, test)]

    start = errors()
    sequential.run(200 * len(train))
    assert errors()[0] < 0.2 * start[0]
    assert errors()[1] < 0.3 * start[1]


def alternating_least_squares(ratings, rank, lam, sweeps=2000):
    """Minimum of objective (1): each profile in turn is the ridge solution given the others."""
    rng = np.random.default_rng(5)
    U, V = rng.uniform(size=(ratings.n_users, rank)), rng.uniform(size=(ratings.n_items, rank))
    for _ in range(sweeps):
        for own, other, rows in ((U, V, ratings.by_user), (V, U, ratings.by_item)):
            for n in range(len(own)):
                index, value = rows.row(n)
                A = other[index]
                own[n] = np.linalg.solve(A.T @ A + lam * np.eye(rank), A.T @ value)
    return U, V


def gradient(U, V, ratings, lam):
    """Gradient of objective (1), users' then items'."""
    error = np.zeros((ratings.n_users, ratings.n_items))
    error[ratings.user, ratings.item] = (U @ V.T)[ratings.user, ratings.item] - ratings.value
    return 2 * np.concatenate([error @ V + lam * U, error.T @ U + lam * V])


@pytest.fixture(scope="module")
def solved():
    """A problem with uneven rows, lambda, and the minimum of objective (1)."""
    ratings = low_rank(18, 12)
    ratings = ratings.select((ratings.user > 5) | (ratings.item < 4))
    return ratings, 1.0, objective(*alternating_least_squares(ratings, 3, 1.0, 200), ratings, 1.0)


def settled(ratings, lam, regularization):
    learning = Learning(rank=3, lam=lam, rate=0.05, regularization=regularization, schedule=Schedule("inverse", 50))
    return Sequential(ratings, learning, seed=1).run(20_000 * len(ratings))


def test_uniform_settles_at_the_minimum_of_objective_1(solved):
    ratings, lam, best = solved
    sequential = settled(ratings, lam, "uniform")
    pair = (sequential.user_profiles, sequential.item_profiles)
    assert best * 0.9999 < objective(*pair, ratings, lam) < 1.01 * best
    # The gradient vanishes: small beside either of its two parts.
    parts = np.linalg.norm(2 * lam * np.concatenate(pair))
    assert np.linalg.norm(gradient(*pair, ratings, lam)) < 0.05 * parts


def test_per_message_settles_elsewhere(solved):
    ratings, lam, best = solved
    sequential = settled(ratings, lam, "per_message")
    assert objective(sequential.user_profiles, sequential.item_profiles, ratings, lam) > 1.1 * best
