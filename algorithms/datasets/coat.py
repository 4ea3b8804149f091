"""Coat Shopping: ratings of chosen and of random coats, read from the user's own copy."""

import os
from pathlib import Path

import numpy as np

from algorithms.datasets.delimited import Column, read_integers
from algorithms.datasets.errors import DataError
from algorithms.ratings import Ratings, Scale

__all__ = ["coat"]

N_USERS, N_ITEMS = 290, 300
SCALE = Scale(1, 5)
COLUMNS = [Column(f"item {item}", 0, 5) for item in range(N_ITEMS)]


def coat(path: str | os.PathLike[str]) -> tuple[Ratings, Ratings]:
    """Read Coat Shopping: 290 users, 300 coats, whole stars from 1 to 5.

    Users rated coats that they chose (train, missing not at random) and coats drawn at random
    (test). Both files are matrices in which 0 means "no rating". The two sets overlap: 366 pairs of
    user and item stand in both, not always with one rating. Both are given as they are.

    Parameters
    ----------
    path : str or path-like
        The folder that holds ``train.ascii`` and ``test.ascii``.

    Returns
    -------
    train, test : Ratings
        With the same ids: row and column of the matrix, from 0. So indices line up.

    Raises
    ------
    FileNotFoundError
        When a file is missing.
    DataError
        When a file is not a matrix of 290 x 300 whole numbers from 0 to 5. Names file and line.

    References
    ----------
    T. Schnabel, A. Swaminathan, A. Singh, N. Chandak and T. Joachims, "Recommendations as
    Treatments: Debiasing Learning and Evaluation", ICML 2016.
    """
    folder = Path(path).expanduser()
    files = [folder / "train.ascii", folder / "test.ascii"]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(
            f"path must name the folder that holds train.ascii and test.ascii of Coat, got {folder}: "
            f"found no {' and no '.join(missing)}; correct it"
        )
    train, test = map(_read_matrix, files)
    return train, test


def _read_matrix(file: Path) -> Ratings:
    matrix = read_integers(file, COLUMNS, separator=" ")
    if len(matrix) != N_USERS:
        raise DataError.at(
            file,
            len(matrix),
            found=f"the end after {len(matrix)} lines",
            expected=f"{N_USERS} lines, one a user",
            mend="get a fresh copy of the file",
        )
    user, item = np.nonzero(matrix)
    return Ratings.from_arrays(
        user, item, matrix[user, item], scale=SCALE, user_ids=range(N_USERS), item_ids=range(N_ITEMS)
    )
