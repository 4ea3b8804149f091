from pathlib import Path

import numpy as np
import pytest

from algorithms.datasets import DataError, coat
from algorithms.ratings import Scale

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "coat"


@pytest.fixture
def matrices(tmp_path):
    """Write a small part of a matrix into both files, the rest being 0, and give the folder."""
    rng = np.random.default_rng(1)
    for name in ("train.ascii", "test.ascii"):
        matrix = np.where(rng.random((290, 300)) < 0.1, rng.integers(1, 6, (290, 300)), 0)
        np.savetxt(tmp_path / name, matrix, fmt="%d", newline="\r\n")
    return tmp_path


def test_both_matrices_share_their_ids(matrices):
    for name, ratings in zip(("train.ascii", "test.ascii"), coat(matrices), strict=True):
        matrix = np.loadtxt(matrices / name)
        found = np.zeros((290, 300))
        found[ratings.user, ratings.item] = ratings.value
        assert np.array_equal(found, matrix)
        assert ratings.user_ids == tuple(range(290))
        assert ratings.item_ids == tuple(range(300))
        assert ratings.scale == Scale(1, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:-1], r"test\.ascii, line 289: found the end after 289 lines, expected 290 lines"),
        (lambda lines: [lines[0][:-2], *lines[1:]], r"found 299 columns .* \(item 0, item 1, \.\.\., item 299\)"),
        (lambda lines: [lines[0], "6" + lines[1][1:], *lines[2:]], "line 2: found item 0 '6', expected an integer"),
        (lambda lines: [], "line 1: found an empty file"),
    ],
)  # fmt: skip
def test_malformed_matrix(matrices, change, message):
    file = matrices / "test.ascii"
    file.write_text("\n".join(change(file.read_text().splitlines())))
    with pytest.raises(DataError, match=message):
        coat(matrices)


def test_missing_file(matrices):
    (matrices / "test.ascii").unlink()
    with pytest.raises(FileNotFoundError, match=r"found no test\.ascii; correct it"):
        coat(matrices)


def test_official_data():
    if not DATA.is_dir():
        pytest.skip(f"needs Coat in {DATA}, which may not be passed on with the project")
    train, test = coat(DATA)
    assert (len(train), len(test)) == (6960, 4640)
    assert set(np.bincount(train.user).tolist()) == {24}
    assert set(np.bincount(test.user).tolist()) == {16}
    pairs = [set(zip(part.user.tolist(), part.item.tolist(), strict=True)) for part in (train, test)]
    assert len(pairs[0] & pairs[1]) == 366
