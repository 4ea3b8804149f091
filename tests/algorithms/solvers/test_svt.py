import numpy as np
import pytest

from algorithms.solvers.svt import Thresholder, largest_singular_value

SHAPES = [(150, 120), (120, 150), (130, 130)]


def matrix(shape, values, seed=0):
    """A matrix with these singular values, padded with 0."""
    rng = np.random.default_rng(seed)
    size = min(shape)
    U, V = (np.linalg.qr(rng.standard_normal((n, size)))[0] for n in shape)
    d = np.zeros(size)
    d[: len(values)] = values
    return np.ascontiguousarray((U * d) @ V.T)


def plain(A, threshold, keep_above=0.0, max_rank=None):
    U, d, Vt = np.linalg.svd(A, full_matrices=False)
    kept = (d - threshold > keep_above) & (np.arange(len(d)) < (max_rank or len(d)))
    return (U[:, kept] * (d[kept] - threshold)) @ Vt[kept], d[kept]


def slow_decay(size):
    return 60 * np.exp(-np.arange(size) / 25)


@pytest.mark.parametrize("method", ["full", "gram", "subspace", "auto"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("threshold", [0.5, 5.0, 30.0])
def test_it_is_the_thresholded_svd_within_its_bound(shape, threshold, method):
    A = matrix(shape, slow_decay(120))
    expected, values = plain(A, threshold)
    found = Thresholder(method=method)(A, threshold)
    assert np.linalg.norm(found.matrix() - expected) <= found.error + 1e-12
    assert found.error < 1e-9
    np.testing.assert_allclose(found.values, values, rtol=1e-11)
    np.testing.assert_allclose(found.nuclear_norm, (values - threshold).sum(), rtol=1e-11)
    np.testing.assert_allclose(found.left.T @ found.left, np.eye(found.rank), atol=1e-12)
    np.testing.assert_allclose(found.right.T @ found.right, np.eye(found.rank), atol=1e-12)
    assert found.left.shape == (shape[0], found.rank)
    assert not found.close


def test_auto_takes_the_full_svd_where_squaring_loses_the_digits():
    A = matrix((150, 120), slow_decay(120))
    small, large = (Thresholder()(A, threshold) for threshold in (1e-6, 5.0))
    assert (small.method, large.method) == ("full", "gram")
    np.testing.assert_allclose(small.matrix(), plain(A, 1e-6)[0], atol=1e-10)
    assert Thresholder()(A, 0.0).method == "full"
    np.testing.assert_allclose(Thresholder(method="gram")(A, 0.0).matrix(), A, atol=1e-10)
    assert Thresholder()(A[:50, :40].copy(), 5.0).method == "full"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_subspace_is_used_while_few_values_pass(shape):
    """A sequence of matrices that change little, as in a fit: the first by Gram, the others from the last vectors."""
    threshold = Thresholder()
    values = np.concatenate([[50, 40, 30, 22, 21.5], np.linspace(8, 1, 80)])
    for step in range(6):
        A = matrix(shape, values) + 0.02 * step * matrix(shape, np.linspace(10, 1, 100), seed=1)
        found = threshold(A, 20.0)
        expected, passed = plain(A, 20.0)
        assert found.method == ("gram" if step == 0 else "subspace")
        assert found.rank == len(passed) == 5
        assert np.linalg.norm(found.matrix() - expected) <= found.error + 1e-12


def test_what_comes_to_pass_is_not_missed():
    """Directions that the last subspace knows nothing of, one of them or all."""
    threshold = Thresholder()
    A = matrix((150, 120), [50, 40, *np.linspace(8, 1, 80)])
    for n_new in (1, 3, 40):
        assert threshold(A, 20.0).rank == 2
        changed = A + matrix(A.shape, np.linspace(35, 30, n_new), seed=n_new)
        found = threshold(changed, 20.0)
        expected, passed = plain(changed, 20.0)
        assert found.rank == len(passed) > 2
        np.testing.assert_allclose(found.matrix(), expected, atol=1e-10)


def test_nothing_passes():
    threshold = Thresholder()
    A = matrix((150, 120), slow_decay(120))
    assert [threshold(A, 70.0).method for _ in range(2)] == ["gram", "subspace"]
    found = threshold(A, 70.0)
    assert (found.rank, found.nuclear_norm, found.error) == (0, 0.0, 0.0)
    np.testing.assert_array_equal(found.matrix(), np.zeros(A.shape))
    assert threshold(A, 59.0).rank == 1
    for method in ("full", "auto"):
        np.testing.assert_array_equal(Thresholder(method=method)(np.zeros((120, 130)), 1.0).matrix(), 0)


@pytest.mark.parametrize("method", ["full", "gram", "auto"])
def test_rank_limit_and_cut(method):
    A = matrix((130, 110), [10, 8, 5.05, 4.9, *np.linspace(3, 1, 50)])
    assert Thresholder(method=method, max_rank=2)(A, 4.0).rank == 2
    assert Thresholder(method=method)(A, 5.0).rank == 3
    assert Thresholder(method=method, keep_above=0.1)(A, 5.0).rank == 2
    expected, _ = plain(A, 4.0, max_rank=2)
    np.testing.assert_allclose(Thresholder(method=method, max_rank=2)(A, 4.0).matrix(), expected, atol=1e-10)


@pytest.mark.parametrize("method", ["full", "gram"])
def test_a_value_at_the_cut_is_reported(method):
    A = matrix((130, 110), [10, 8, 5, 3])
    assert Thresholder(method=method)(A, 5.0).close
    assert not Thresholder(method=method)(A, 4.9).close


def test_repeated_values():
    A = matrix((130, 110), [9.0] * 30 + [6.0] * 30 + [1.0] * 50)
    for method in ("gram", "subspace"):
        threshold = Thresholder(method=method)
        for _ in range(2):
            found = threshold(A, 5.0)
            assert np.linalg.norm(found.matrix() - plain(A, 5.0)[0]) <= found.error + 1e-12


def test_out_is_filled():
    A = matrix((130, 110), slow_decay(60))
    out = np.full(A.shape, np.nan)
    found = Thresholder()(A, 5.0)
    assert found.matrix(out=out) is out
    np.testing.assert_array_equal(out, found.matrix())
    strided = np.full((130, 220), np.nan)[:, ::2]
    np.testing.assert_array_equal(found.matrix(out=strided), out)
    np.testing.assert_array_equal(strided, out)


@pytest.mark.parametrize("shape", [(5, 4), (150, 120), (120, 150)])
def test_largest_singular_value(shape):
    A = np.random.default_rng(3).standard_normal(shape)
    np.testing.assert_allclose(largest_singular_value(A), np.linalg.norm(A, 2), rtol=1e-13)
    assert largest_singular_value(np.zeros(shape)) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "fast"}, "svd must be 'auto', 'full', 'gram' or 'subspace', got 'fast'"),
        ({"keep_above": -1.0}, "keep_above must be >= 0"),
        ({"max_rank": 0}, "max_rank must be an integer >= 1 or None, got 0"),
        ({"max_rank": True}, "max_rank must be an integer >= 1 or None, got True"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    with pytest.raises(ValueError, match=message):
        Thresholder(**arguments)


def test_threshold_out_of_range():
    with pytest.raises(ValueError, match="threshold must be >= 0, got -1"):
        Thresholder()(np.ones((2, 2)), -1.0)
