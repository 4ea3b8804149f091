"""The rating files of MovieLens as GroupLens publishes them today: ratings.csv and ratings.dat."""

import os
from pathlib import Path

from algorithms.datasets.layouts import Form
from algorithms.datasets.rating_files import read_table
from algorithms.datasets.sources import read_text
from algorithms.datasets.tables import Policy
from algorithms.ratings import Ratings

__all__ = ["movielens_csv", "movielens_dat"]

HALF_STARS = Policy(scale=(0.5, 5), step=0.5)
WHOLE_STARS = Policy(scale=(1, 5), step=1)


def movielens_csv(path: str | os.PathLike[str]) -> Ratings:
    """Read ``ratings.csv`` of MovieLens 20M, 25M, 32M, latest or latest-small.

    Parameters
    ----------
    path : str or path-like
        The file, plain or packed by gzip, or the folder that holds ``ratings.csv``.

    Returns
    -------
    Ratings
        Half stars, with scale (0.5, 5) and timestamps in seconds since 1970.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DataError
        When a line breaks the format, a rating is no half star from 0.5 to 5, or a pair of user and
        item stands twice. Names file and line.

    References
    ----------
    F. M. Harper and J. A. Konstan, "The MovieLens Datasets: History and Context", ACM Transactions
    on Interactive Intelligent Systems 5(4), 2015.
    """
    form = Form(separator=",", header=True)
    return read_table(read_text(_file(path, "ratings.csv")), form).ratings(HALF_STARS)


def movielens_dat(path: str | os.PathLike[str], *, half_stars: bool = False) -> Ratings:
    """Read ``ratings.dat`` of MovieLens 1M or 10M: ``user::item::rating::timestamp``.

    Parameters
    ----------
    path : str or path-like
        The file, plain or packed by gzip, or the folder that holds ``ratings.dat``.
    half_stars : bool, optional
        Whether ratings go from 0.5 to 5 in half stars, as in 10M, and not from 1 to 5 in whole
        stars, as in 1M.

    Returns
    -------
    Ratings
        With this scale, and timestamps in seconds since 1970.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DataError
        When a line breaks the format, a rating is off the scale, or a pair of user and item stands
        twice. Names file and line.

    References
    ----------
    As `movielens_csv`.
    """
    form = Form(separator="::", header=False, columns={"user": 0, "item": 1, "rating": 2, "timestamp": 3})
    return read_table(read_text(_file(path, "ratings.dat")), form).ratings(HALF_STARS if half_stars else WHOLE_STARS)


def _file(path: str | os.PathLike[str], name: str) -> Path:
    place = Path(path).expanduser()
    file = place / name if place.is_dir() else place
    if not file.is_file():
        found = "a folder without it" if place.is_dir() else "nothing there"
        raise FileNotFoundError(
            f"path must name {name} or the folder that holds it, got {place}: found {found}; correct it, or unpack "
            "the data set there"
        )
    return file
