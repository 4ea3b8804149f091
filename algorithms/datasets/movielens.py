"""MovieLens 100K, read from the user's own copy or fetched from GroupLens (its licence forbids passing it on)."""

import hashlib
import logging
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from algorithms.datasets.delimited import Column, read_integers
from algorithms.datasets.download import Source, cache_folder, fetch
from algorithms.datasets.errors import DataError
from algorithms.ratings import Ratings, Scale

__all__ = ["movielens_100k"]

logger = logging.getLogger(__name__)

IntArray = NDArray[np.int64]

ENVIRONMENT_VARIABLE = "MOVIELENS_100K"
ADDRESS_VARIABLE = "MOVIELENS_100K_URL"
ADDRESS = "https://files.grouplens.org/datasets/movielens/ml-100k.zip"
N_USERS, N_ITEMS, N_RATINGS, N_FOLDS = 943, 1682, 100_000, 5
SCALE = Scale(1, 5)
COLUMNS = (
    Column("user id", 1, N_USERS),
    Column("item id", 1, N_ITEMS),
    Column("rating", 1, 5),
    Column("timestamp", 0, 2**31 - 1),
)
# SHA-256 of what u.data says, as rows of little-endian int64: its first two columns, and all four.
OFFICIAL_PAIRS = "1eebf1a730ecc6080aee3be599bf0113f321e571c4e0ceab2f308653be093c52"
OFFICIAL_TABLE = "d0366dc73dcd6c6620782fc3436fc07a4a003fe17c863aee0829c53db6a8f574"
# SHA-256 of the files themselves, as GroupLens gives them out.
FILES = {
    "u.data": "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    "u1.test": "18c6014a4b2c7324f250a63f8904a7b16b2b19f911129e346141507b0cbac950",
    "u2.test": "4de658d1e04ed9104629509a2e2528fce833ac8e048280183f1df167632038c3",
    "u3.test": "0f548b51c78327de4c156461d3e430b7e5579fe2b5681586a59416e48fd35f6d",
    "u4.test": "7c02ad0a1e7ab1083c8b9d4b627203a051dd7b5eab46d99fa44de33470de8db9",
    "u5.test": "351cc52e0d15b6c721466276fc24671d40936899e3d01fadeaf312915b8c5634",
}
TERMS = (
    "Its licence: for research; no redistribution, no commercial use without permission, and publications "
    "acknowledge it (Harper and Konstan, 2015); the README there has it in full."
)
INSTEAD = (
    f"without a network, get {ADDRESS} on another machine, unpack it, and set {ENVIRONMENT_VARIABLE} to its folder "
    "or give that folder as the path"
)
FRESH_COPY = "get a fresh copy of MovieLens 100K from grouplens.org"


def movielens_100k(path: str | os.PathLike[str] | None = None) -> Ratings:
    """Read MovieLens 100K: 100,000 ratings, 943 users, 1682 items, whole stars from 1 to 5.

    The official folds come from the files u1.test to u5.test where they stand beside u.data. Else
    they follow from the order of u.data (by the data set's own script mku.sh): its first 20,000 lines
    are fold 1, the next 20,000 fold 2, and so on. Where the lines do not hold the official pairs of
    user and item in the official order, there are no folds.

    Parameters
    ----------
    path : str or path-like, optional
        The folder that holds ``u.data``, or the file itself. By default what the environment
        variable ``MOVIELENS_100K`` names; where that is not set, the copy in the cache; where there
        is none, it is fetched from GroupLens (5 MB), verified, and kept in the cache.

    Returns
    -------
    Ratings
        With scale (1, 5), timestamps in seconds since 1970, and folds as above.

    Raises
    ------
    FileNotFoundError
        When there is no u.data where the path or the environment variable says, or when some of the
        five test files are there and others are not.
    DownloadError
        When it had to be fetched and that failed. Says why, and what to do instead.
    DataError
        When a line breaks the format, a pair of user and item stands twice, or the test files do
        not share out the ratings of u.data among them. Names file and line.

    Notes
    -----
    Data that read well but are not the official ones are reported through `logging` as a warning,
    and so is a download, with the licence's conditions.

    The environment variable ``NETSIM_DATA`` moves the cache from the user's cache folder, and
    ``MOVIELENS_100K_URL`` names another address of ``ml-100k.zip``, such as a mirror's.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM Transactions
    on Interactive Intelligent Systems 5(4), 2015.
    """
    file = _data_file(path)
    table = read_integers(file, COLUMNS)
    _check_pairs(file, table)
    _warn_if_edited(file, table)
    user, item, value, timestamp = table.T
    return Ratings.from_arrays(user, item, value, timestamps=timestamp, scale=SCALE, folds=_official_folds(file, table))


def _data_file(path: str | os.PathLike[str] | None) -> Path:
    given = path if path is not None else os.environ.get(ENVIRONMENT_VARIABLE) or None
    if given is None:
        return fetch(_source(), cache_folder()) / "u.data"
    source = "path" if path is not None else f"environment variable {ENVIRONMENT_VARIABLE}"
    place = Path(given).expanduser()
    file = place / "u.data" if place.is_dir() else place
    if not file.is_file():
        found = "a folder without it" if place.is_dir() else "nothing there"
        raise FileNotFoundError(
            f"{source} must name u.data or the folder that holds it, got {place}: found {found}; "
            f"correct it, or leave it out to have MovieLens 100K downloaded"
        )
    return file


def _source() -> Source:
    return Source(
        "MovieLens 100K",
        os.environ.get(ADDRESS_VARIABLE) or ADDRESS,
        "ml-100k",
        FILES,
        notes=("README",),
        terms=TERMS,
        instead=INSTEAD,
    )


def _check_pairs(file: Path, table: IntArray) -> None:
    pairs = table[:, 0] * (N_ITEMS + 1) + table[:, 1]
    _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
    repeated = np.flatnonzero(first[pair] != np.arange(len(table)))
    if len(repeated):
        row = int(repeated[0])
        raise DataError.at(
            file,
            row + 1,
            found=f"user {table[row, 0]}, item {table[row, 1]} again, after line {first[pair[row]] + 1}",
            expected="each pair of user and item once",
            mend=f"delete one of the two lines or {FRESH_COPY}",
        )


def _warn_if_edited(file: Path, table: IntArray) -> None:
    if _fingerprint(table) != OFFICIAL_TABLE:
        logger.warning(
            "%s is not the official MovieLens 100K: found %d lines of which some differ or are displaced, "
            "expected the official %d in their order; for results that can be compared, %s",
            file,
            len(table),
            N_RATINGS,
            FRESH_COPY,
        )


def _fingerprint(table: IntArray) -> str:
    return hashlib.sha256(table.astype("<i8").tobytes()).hexdigest()


def _official_folds(file: Path, table: IntArray) -> IntArray | None:
    """Give the fold of each line of u.data, from the test files or by the rule they follow."""
    tests = [file.with_name(f"u{fold}.test") for fold in range(1, N_FOLDS + 1)]
    missing = [test.name for test in tests if not test.exists()]
    if not missing:
        return _folds_from_files(file, table, tests)
    if len(missing) < N_FOLDS:
        raise FileNotFoundError(
            f"{file.parent} must hold all of u1.test to u5.test or none, got no {', '.join(missing)}; "
            "put back what is missing, or remove the others to have the folds computed"
        )
    if _fingerprint(table[:, :2]) != OFFICIAL_PAIRS:
        return None  # the rule goes by the order of the lines, so any other order would give false folds
    return np.arange(N_RATINGS) // (N_RATINGS // N_FOLDS) + 1


def _folds_from_files(file: Path, table: IntArray, tests: list[Path]) -> IntArray:
    row_of = np.full((N_USERS + 1, N_ITEMS + 1), -1, dtype=np.int64)
    row_of[table[:, 0], table[:, 1]] = np.arange(len(table))
    folds = np.zeros(len(table), dtype=np.int64)
    for fold, test in enumerate(tests, start=1):
        held_out = read_integers(test, COLUMNS)
        _check_pairs(test, held_out)
        row = row_of[held_out[:, 0], held_out[:, 1]]
        _check_test_lines(test, held_out, file, table, row, folds)
        folds[row] = fold
    if not folds.all():
        row_left = int(folds.argmin())
        raise DataError.at(
            file,
            row_left + 1,
            found=f"user {table[row_left, 0]}, item {table[row_left, 1]}, which no test file holds",
            expected="each rating in one of u1.test to u5.test",
            mend=f"{FRESH_COPY}, or remove the test files to have the folds computed",
        )
    return folds


def _check_test_lines(
    test: Path, held_out: IntArray, file: Path, table: IntArray, row: IntArray, folds: IntArray
) -> None:
    """Check each line of a test file against the line of u.data with its pair (row -1: there is none)."""
    unknown = row < 0
    changed = ~unknown & (table[row, 2] != held_out[:, 2])
    taken = ~unknown & (folds[row] > 0)
    bad = unknown | changed | taken
    if not bad.any():
        return
    k = int(bad.argmax())
    found = f"user {held_out[k, 0]}, item {held_out[k, 1]}"
    expected = f"a rating of {file.name}"
    if unknown[k]:
        found += f", which {file.name} does not hold"
    elif changed[k]:
        found += f", rating {held_out[k, 2]}"
        expected = f"rating {table[row[k], 2]} as in {file.name}, line {row[k] + 1}"
    else:
        found += f", which u{folds[row[k]]}.test holds too"
        expected = "each rating in one test file"
    mend = f"{FRESH_COPY}, or remove the test files to have the folds computed"
    raise DataError.at(test, k + 1, found=found, expected=expected, mend=mend)
