import numpy as np
import pytest

from algorithms.objective import objective
from algorithms.ratings import Ratings


@pytest.mark.parametrize("n", [1, 50, 4096, 9001])
def test_objective_1_against_numpy(n):
    rng = np.random.default_rng(n)
    cells = rng.choice(120 * 100, n, replace=False)
    X = rng.uniform(1, 5, n)
    ratings = Ratings.from_arrays(cells // 100, cells % 100, X, scale=(1, 5), user_ids=range(120), item_ids=range(100))
    U, V = rng.normal(size=(120, 3)), rng.normal(size=(100, 3))
    error = (U @ V.T)[cells // 100, cells % 100] - X
    expected = np.sum(error**2) + 0.7 * (np.linalg.norm(U) ** 2 + np.linalg.norm(V) ** 2)
    assert objective(U, V, ratings, 0.7) == pytest.approx(expected, rel=1e-12)


def test_objective_1_by_hand():
    ratings = Ratings.from_arrays([0, 0], [0, 1], [1.0, 5.0])
    U, V = np.array([[1.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 1.0]])
    assert objective(U, V, ratings, 0.0) == 2**2 + 3**2
    assert objective(U, V, ratings, 0.5) == 13 + 0.5 * (5 + 3)
