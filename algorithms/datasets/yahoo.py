"""Yahoo! Music R3: ratings of chosen and of random songs, read from the user's own copy."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from algorithms.datasets.delimited import Column, read_integers
from algorithms.datasets.tables import Ids, Policy, Table
from algorithms.ratings import Ratings

__all__ = ["yahoo_r3"]

TRAIN, TEST = (f"ydata-ymusic-rating-study-v1_0-{part}.txt" for part in ("train", "test"))
COLUMNS = (Column("user id", 1, 15_400), Column("song id", 1, 1_000), Column("rating", 1, 5))


def yahoo_r3(path: str | os.PathLike[str]) -> tuple[Ratings, Ratings]:
    """Read Yahoo! Music R3 (Webscope): 15,400 users, 1,000 songs, whole stars from 1 to 5.

    Users rated songs that they chose (train, missing not at random), and 5,400 of them ten songs
    drawn at random (test). A line holds user id, song id and rating with tabs between them.

    Parameters
    ----------
    path : str or path-like
        The folder that holds ``ydata-ymusic-rating-study-v1_0-train.txt`` and ``...-test.txt``.

    Returns
    -------
    train, test : Ratings
        With scale (1, 5) and the same ids: all that stand in either file. So indices line up.

    Raises
    ------
    FileNotFoundError
        When a file is missing.
    DataError
        When a line breaks the format, or a pair of user and song stands twice in one file. Names file
        and line.

    References
    ----------
    B. M. Marlin and R. S. Zemel, "Collaborative Prediction and Ranking with Non-Random Missing
    Data", RecSys 2009.
    """
    folder = Path(path).expanduser()
    missing = [name for name in (TRAIN, TEST) if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"path must name the folder that holds {TRAIN} and {TEST}, got {folder}: "
            f"found no {' and no '.join(missing)}; correct it, or unpack the data set there"
        )
    tables = [read_integers(folder / name, COLUMNS) for name in (TRAIN, TEST)]
    users, songs, _ = (np.unique(column).tolist() for column in np.concatenate(tables).T)
    train, test = (
        _table(folder / name, table).ratings(Policy(scale=(1, 5)), user_ids=users, item_ids=songs)
        for name, table in zip((TRAIN, TEST), tables, strict=True)
    )
    return train, test


def _table(file: Path, rows: NDArray[np.int64]) -> Table:
    user, song, value = rows.T
    return Table(
        name=str(file),
        user=Ids(user, range(COLUMNS[0].high + 1)),
        item=Ids(song, range(COLUMNS[1].high + 1)),
        value=value.astype(np.float64),
        timestamp=None,
        place=np.arange(1, len(rows) + 1),
        at=lambda line: f"{file}, line {line}",
    )
