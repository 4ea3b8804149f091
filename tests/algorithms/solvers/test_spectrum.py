import numpy as np
import pytest

from algorithms.solvers.spectrum import Spectrum


def symmetric(values, seed=0):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))
    matrix = (Q * np.asarray(values)) @ Q.T
    return (matrix + matrix.T) / 2


def spectrum(matrix):
    return Spectrum(np.asfortranarray(np.tril(matrix)))


CASES = {
    "random": symmetric(np.random.default_rng(1).standard_normal(60) ** 2),
    "gram": (lambda X: X.T @ X)(np.random.default_rng(2).standard_normal((80, 70))),
    "close": symmetric([*(10 + 1e-7 * np.arange(8)), *np.linspace(5, 0, 40)]),
    "closest": symmetric([*(10 + 1e-13 * np.arange(8)), *np.linspace(5, 0, 40)]),
    "repeated": symmetric([7.0] * 10 + [3.0] * 10 + [0.0] * 30),
    "low rank": symmetric([9.0, 4.0, 1.0] + [0.0] * 40),
    "diagonal": np.diag(np.arange(30.0)),
    "identity": np.eye(25),
    "zero": np.zeros((20, 20)),
    "blocks": np.kron(np.diag([1.0, 2.0, 5.0]), symmetric(np.linspace(3, 1, 12))),
    "large and small": symmetric(np.geomspace(1e8, 1e-8, 50)),
    "two": np.array([[2.0, 1.0], [1.0, 3.0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_leading_vectors(name):
    matrix = CASES[name]
    found, scale = spectrum(matrix), max(np.abs(matrix).max(), 1e-300)
    np.testing.assert_allclose(found.values, np.linalg.eigvalsh(matrix)[::-1], atol=1e-13 * len(matrix) * scale)
    for count in {0, 1, 3, len(matrix) // 2, len(matrix), len(matrix) + 5}:
        vectors, kept = found.leading(count), min(count, len(matrix))
        assert vectors.shape == (len(matrix), kept)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(kept), atol=1e-13)
        np.testing.assert_allclose(matrix @ vectors, vectors * found.values[:kept], atol=1e-12 * scale)


@pytest.mark.parametrize(("name", "enough"), [("random", True), ("gram", True), ("close", True), ("repeated", False)])
def test_divide_and_conquer_only_where_it_is_needed(name, enough):
    """Vectors of close eigenvalues are made orthogonal; those of equal ones are left to LAPACK."""
    assert (spectrum(CASES[name])._twisted(12) is not None) == enough


@pytest.mark.parametrize("name", CASES)
def test_vectors_of_the_eigenvalues_above_a_number(name):
    """Fewer, as many, and more vectors than eigenvalues that were asked for."""
    matrix = CASES[name]
    found, scale = spectrum(matrix), max(np.abs(matrix).max(), 1e-300)
    ascending = np.linalg.eigvalsh(matrix)
    values = found.above(ascending[-min(8, len(matrix) - 1) - 1] + 1e-9)
    for count in {min(3, len(values)), len(values), min(len(values) + 3, len(matrix))}:
        vectors = found.leading(count)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-13)
        np.testing.assert_allclose(matrix @ vectors, vectors * ascending[::-1][:count], atol=1e-12 * scale)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite(value):
    matrix = CASES["random"].copy()
    matrix[7, 3] = matrix[3, 7] = value
    with pytest.raises(np.linalg.LinAlgError, match="entries that are not finite or too large"):
        spectrum(matrix)
