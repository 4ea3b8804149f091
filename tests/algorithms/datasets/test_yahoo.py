import pytest

from algorithms.datasets import DataError, yahoo_r3
from algorithms.ratings import Scale

TRAIN, TEST = "ydata-ymusic-rating-study-v1_0-train.txt", "ydata-ymusic-rating-study-v1_0-test.txt"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / TRAIN).write_text("1\t14\t5\n1\t35\t1\n15400\t1000\t3\n")
    (tmp_path / TEST).write_text("1\t49\t1\n2\t14\t2\n")
    return tmp_path


def test_train_and_test_share_their_ids(folder):
    train, test = yahoo_r3(folder)
    assert train.user_ids == test.user_ids == (1, 2, 15400)
    assert train.item_ids == test.item_ids == (14, 35, 49, 1000)
    assert train.value.tolist() == [5, 1, 3]
    assert train.item.tolist() == [0, 1, 3]
    assert test.user.tolist() == [0, 1]
    assert test.value.tolist() == [1, 2]
    assert train.scale == test.scale == Scale(1, 5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3\t1001\t4", "line 3: found song id '1001', expected an integer from 1 to 1000"),
        ("15401\t1\t4", "line 3: found user id '15401', expected an integer from 1 to 15400"),
        ("3\t1\t6", "line 3: found rating '6', expected an integer from 1 to 5"),
        ("3\t1\t4\t9", "line 3: found 4 columns"),
        ("2\t14\t3", "line 3: found user 2, item 14 again, after .*, line 2"),
    ],
)
def test_malformed_line_is_named(folder, line, message):
    file = folder / TEST
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(DataError, match=message):
        yahoo_r3(folder)


def test_missing_file(folder):
    (folder / TRAIN).unlink()
    with pytest.raises(FileNotFoundError, match=f"found no {TRAIN}; correct it"):
        yahoo_r3(folder)
