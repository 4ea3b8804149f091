import numpy as np
import pytest

from algorithms.ratings import Scale
from algorithms.synthetic import LowRank, low_rank

SIZES = [(7, 5, 1), (12, 20, 3), (30, 24, 10)]


def pairs(ratings):
    return list(zip(ratings.user.tolist(), ratings.item.tolist(), strict=True))


def everything(data):
    """The whole rating matrix and how often each of its entries stands in train or test."""
    matrix, count = np.full(data.truth.shape, np.nan), np.zeros(data.truth.shape, dtype=int)
    for part in (data.train, data.test):
        matrix[part.user, part.item] = part.value
        np.add.at(count, (part.user, part.item), 1)
    return matrix, count


@pytest.mark.parametrize(("n_users", "n_items", "rank"), SIZES)
def test_truth_has_the_size_and_the_rank_asked_for(n_users, n_items, rank):
    data = low_rank(n_users, n_items, rank=rank, seed=1)
    assert isinstance(data, LowRank)
    assert data.truth.shape == (n_users, n_items)
    assert data.truth.dtype == np.float64
    singular = np.linalg.svd(data.truth, compute_uv=False)
    assert singular[rank - 1] > 1e-3
    assert np.all(singular[rank:] < 1e-12 * singular[0])


@pytest.mark.parametrize(("n_users", "n_items", "rank"), [(7, 5, 2), (12, 20, 3), (30, 24, 10)])
def test_gaussian_truth_has_the_rank_asked_for_with_the_constant_in_it(n_users, n_items, rank):
    truth = low_rank(n_users, n_items, rank=rank, seed=1, generator="gaussian").truth
    assert truth.shape == (n_users, n_items)
    for matrix, own in ((truth, rank), (truth - 3, rank - 1)):
        singular = np.linalg.svd(matrix, compute_uv=False)
        assert singular[own - 1] > 1e-3
        assert np.all(singular[own:] < 1e-12 * singular[0])


@pytest.mark.parametrize(("scale", "centre", "deviation"), [((1, 5), 3, 1), ((1, 10), 5.5, 2.25), ((-2, 2), 0, 1)])
def test_gaussian_truth_has_the_centre_of_the_scale_and_a_quarter_of_it_as_deviation(scale, centre, deviation):
    truth = low_rank(300, 300, scale=scale, seed=2, generator="gaussian").truth
    assert truth.mean() == pytest.approx(centre, abs=0.05 * deviation)
    assert truth.std() == pytest.approx(deviation, rel=0.05)


def test_gaussian_truth_is_left_where_ratings_are_clipped_to_the_scale():
    data = low_rank(100, 100, seed=2, generator="gaussian")
    matrix, _ = everything(data)
    assert np.array_equal(matrix, np.clip(np.rint(data.truth), 1, 5))
    outside = np.mean((data.truth < 1) | (data.truth > 5))
    assert 0.03 < outside < 0.07


def test_both_generators_delete_what_they_are_told():
    for generator in ("uniform", "gaussian"):
        assert len(low_rank(20, 15, missing=0.4, seed=3, generator=generator).test) == 120


def test_gaussian_truth_needs_no_positive_top():
    assert low_rank(6, 5, rank=2, scale=(-3, 0), seed=1, generator="gaussian").truth.min() < -1.5


def test_generator_is_one_of_two():
    with pytest.raises(ValueError, match=r"^generator must be one of uniform, gaussian, got 'normal'$"):
        low_rank(6, 5, rank=2, seed=1, generator="normal")


def test_gaussian_truth_has_a_direction_beside_the_constant():
    with pytest.raises(ValueError, match=r"^rank must be >= 2 with generator='gaussian'.*, got 1$"):
        low_rank(6, 5, rank=1, seed=1, generator="gaussian")


@pytest.mark.parametrize("scale", [(5, 1), (3, 3)])
def test_gaussian_scale_has_its_top_above_its_bottom(scale):
    with pytest.raises(ValueError, match=r"^scale must be \(low, high\) with low < high, got"):
        low_rank(6, 5, rank=2, scale=scale, seed=1, generator="gaussian")


@pytest.mark.parametrize("scale", [(1, 5), (1, 10), (0, 3), (-2, 2)])
def test_truth_is_positive_and_touches_the_top_of_the_scale(scale):
    data = low_rank(20, 15, scale=scale, seed=2)
    assert data.truth.min() > 0
    assert data.truth.max() == pytest.approx(scale[1], rel=1e-14)


@pytest.mark.parametrize("scale", [(1, 5), (3, 5), (0, 3)])
def test_ratings_are_the_truth_rounded_within_the_scale(scale):
    data = low_rank(20, 15, scale=scale, rank=2, seed=2)
    matrix, _ = everything(data)
    assert np.array_equal(matrix, np.clip(np.rint(data.truth), *scale))
    assert set(np.unique(matrix)) == set(range(scale[0], scale[1] + 1)) & set(np.unique(matrix))
    assert len(np.unique(matrix)) > 1
    for part in (data.train, data.test):
        assert part.scale == Scale(*scale)


def test_low_entries_are_lifted_to_the_bottom_of_the_scale():
    data = low_rank(20, 15, scale=(3, 5), rank=2, seed=2)
    matrix, _ = everything(data)
    assert np.any(data.truth < 2.5)  # else nothing is lifted and the test proves nothing
    assert matrix.min() == 3


@pytest.mark.parametrize(("missing", "deleted"), [(0.2, 60), (0.5, 150), (0.001, None), (1 / 300, 1), (0.9967, 299)])
def test_exactly_the_share_asked_for_is_missing(missing, deleted):
    if deleted is None:
        with pytest.raises(ValueError, match="leaves ratings on both sides"):
            low_rank(20, 15, missing=missing, seed=3)
        return
    data = low_rank(20, 15, missing=missing, seed=3)
    assert len(data.test) == deleted
    assert len(data.train) == 300 - deleted


def test_train_and_test_share_out_the_matrix():
    data = low_rank(13, 17, missing=0.4, seed=4)
    _, count = everything(data)
    assert np.all(count == 1)
    for part in (data.train, data.test):
        assert (part.n_users, part.n_items) == (13, 17)
        assert list(part.user_ids) == list(range(13))
        assert list(part.item_ids) == list(range(17))


def test_ratings_are_missing_completely_at_random():
    # Deleted places do not follow the value: their mean is within 5 standard errors of the mean of all.
    data = low_rank(200, 200, missing=0.3, seed=5)
    matrix, _ = everything(data)
    error = matrix.std() / np.sqrt(len(data.test))
    assert abs(data.test.value.mean() - matrix.mean()) < 5 * error
    # Nor the place: each user loses a binomial number of ratings (bounds at 6 standard deviations).
    lost = np.bincount(data.test.user, minlength=200)
    assert np.all(np.abs(lost - 60) < 6 * np.sqrt(200 * 0.3 * 0.7))
    assert len(set(lost.tolist())) > 5


def test_the_same_seed_gives_the_same_bits_and_another_seed_others():
    one, same, other = (low_rank(12, 9, seed=seed) for seed in (6, 6, 7))
    assert one.truth.tobytes() == same.truth.tobytes()
    assert pairs(one.train) == pairs(same.train)
    assert pairs(one.test) == pairs(same.test)
    assert one.truth.tobytes() != other.truth.tobytes()
    assert pairs(one.test) != pairs(other.test)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.SeedSequence, lambda seed: [seed]])
def test_seed_takes_what_default_rng_takes(make):
    assert np.array_equal(low_rank(6, 5, seed=make(8)).truth, low_rank(6, 5, seed=make(8)).truth)


def test_the_callers_generator_is_used_and_the_global_one_is_not():
    rng = np.random.default_rng(8)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = low_rank(6, 5, seed=rng), low_rank(6, 5, seed=rng)
    assert not np.array_equal(first.truth, second.truth)
    assert np.array_equal(first.truth, low_rank(6, 5, seed=8).truth)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_seed_must_be_given():
    with pytest.raises(TypeError, match="seed"):
        low_rank(6, 5)


def test_a_smaller_share_missing_does_not_change_the_truth():
    assert np.array_equal(low_rank(9, 9, seed=1, missing=0.1).truth, low_rank(9, 9, seed=1, missing=0.6).truth)


@pytest.mark.parametrize("name", ["n_users", "n_items", "rank"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "3", True, None])
def test_sizes_are_positive_integers(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be an integer >= 1, got {value!r}$"):
        low_rank(**({"n_users": 6, "n_items": 5, "rank": 2, "seed": 1} | {name: value}))


@pytest.mark.parametrize("missing", [0, 1, -0.1, 1.5, 20, float("nan"), 1e-9, 1 - 1e-9])
def test_missing_is_a_share_that_leaves_both_sides(missing):
    with pytest.raises(ValueError, match=r"^missing must be a share in \(0, 1\).*6 x 5"):
        low_rank(6, 5, missing=missing, seed=1)


@pytest.mark.parametrize("scale", [(5, 1), (3, 3), (-3, 0), (-5, -1)])
def test_scale_has_a_positive_top_above_its_bottom(scale):
    with pytest.raises(ValueError, match=r"^scale must be \(low, high\)"):
        low_rank(6, 5, scale=scale, seed=1)
