import numpy as np
import pytest

from algorithms.ratings import Ratings
from algorithms.synthetic import low_rank


@pytest.fixture(scope="module")
def data():
    return low_rank(30, 24, rank=3, missing=0.3, seed=1)


@pytest.fixture(scope="module")
def sparse():
    """Ratings with users and items that have few or none."""
    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((12, 9)) < 0.3)
    return Ratings.from_arrays(
        user, item, rng.integers(1, 6, len(user)), scale=(1, 5), user_ids=range(14), item_ids=range(10)
    )
