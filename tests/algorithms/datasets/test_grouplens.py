import gzip
from pathlib import Path

import pytest

from algorithms.datasets import DataError, movielens_csv, movielens_dat
from algorithms.ratings import Scale

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"
CSV = "userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n7,1029,3.0,1260759179\n"
DAT = "1::1193::5::978300760\n2::661::3::978302109\n"


def test_csv_of_a_folder_a_file_or_gzip(tmp_path):
    (tmp_path / "ratings.csv").write_text(CSV)
    (tmp_path / "ratings.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    ratings = movielens_csv(tmp_path)
    assert ratings.user_ids == (1, 7)
    assert ratings.item_ids == (31, 1029)
    assert ratings.value.tolist() == [2.5, 3]
    assert ratings.timestamp.tolist() == [1260759144, 1260759179]
    assert ratings.scale == Scale(0.5, 5)
    assert movielens_csv(tmp_path / "ratings.csv") == ratings
    assert movielens_csv(tmp_path / "ratings.csv.gz") == ratings


@pytest.mark.parametrize(
    ("old", "new", "line", "found"),
    [
        ("2.5", "0.6", 2, "rating 0.6, expected a rating from 0.5 to 5 in steps of 0.5"),
        ("3.0", "6", 3, "rating 6, expected a rating from 0.5 to 5"),
        ("3.0", "0", 3, "rating 0, expected"),
        ("7,1029", "1,31", 3, "user 1, item 31 again"),
        ("userId,movieId,rating,timestamp\n", "", 1, "a header of '1, 31, 2.5, 1260759144'"),
        ("rating,timestamp", "title,genres", 1, "a header of 'userId, movieId, title, genres'"),
    ],
)
def test_edited_csv(tmp_path, old, new, line, found):
    (tmp_path / "ratings.csv").write_text(CSV.replace(old, new))
    with pytest.raises(DataError, match=f"line {line}: found {found}"):
        movielens_csv(tmp_path)


def test_dat_of_1m_and_of_10m(tmp_path):
    file = tmp_path / "ratings.dat"
    file.write_text(DAT)
    ratings = movielens_dat(tmp_path)
    assert ratings.item_ids == (661, 1193)
    assert ratings.value.tolist() == [5, 3]
    assert ratings.scale == Scale(1, 5)
    file.write_text(DAT.replace("::5::", "::4.5::"))
    assert movielens_dat(file, half_stars=True).value.tolist() == [4.5, 3]
    assert movielens_dat(file, half_stars=True).scale == Scale(0.5, 5)
    with pytest.raises(DataError, match=r"line 1: found rating 4\.5, expected a rating from 1 to 5 in steps of 1"):
        movielens_dat(file)


@pytest.mark.parametrize("read", [movielens_csv, movielens_dat])
def test_no_such_file(tmp_path, read):
    with pytest.raises(
        FileNotFoundError, match=r"path must name ratings\.(csv|dat) .*: found a folder without it; correct"
    ):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path must name .*absent: found nothing there; correct"):
        read(tmp_path / "absent")


def test_real_files():
    if not DATA.is_dir():
        pytest.skip(f"needs the data sets in {DATA}, which may not be passed on with the project")
    latest = movielens_csv(DATA / "ml-latest-small")
    assert (latest.n_users, latest.n_items, latest.n_ratings) == (610, 9724, 100_836)
    assert movielens_dat(DATA / "odd" / "spark-double-colon.txt").n_ratings == 1501
    with pytest.raises(DataError, match=r"new\.csv, line 48: found rating 6, expected a rating from 0.5 to 5"):
        movielens_csv(DATA / "ml-latest-small" / "new.csv")
    with pytest.raises(DataError, match=r"movies\.csv, line 1: found a header of 'Id, title, genres'"):
        movielens_csv(DATA / "ml-latest-small" / "movies.csv")
