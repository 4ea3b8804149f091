import hashlib
import io
import pickle
import threading
import time
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from algorithms.datasets import DataError, delimited, movielens, movielens_100k
from algorithms.datasets.download import DownloadError
from algorithms.ratings import Scale

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data" / "ml-100k"
GOOD = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n"


@pytest.fixture
def official():
    if not (DATA / "u.data").is_file():
        pytest.skip(f"needs MovieLens 100K in {DATA}, which may not be passed on with the project")
    return DATA


@pytest.fixture
def write(tmp_path):
    def write(content, name="u.data"):
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write


@pytest.fixture
def with_folds(write):
    """Write u.data of five ratings, one in each test file, and give a way to change a test file."""
    lines = [f"1\t{item}\t{item}\t{item}\n" for item in range(1, 6)]
    for fold, line in enumerate(lines, start=1):
        write(line, f"u{fold}.test")
    write("".join(lines))
    return write


def warnings_of(caplog, logger="algorithms.datasets.movielens"):
    return [record.getMessage() for record in caplog.records if record.name == logger]


@pytest.mark.parametrize(
    "content", [GOOD, GOOD.removesuffix("\n"), GOOD.replace("\n", "\r\n")], ids=["lf", "cut", "crlf"]
)
def test_reads_a_small_file(write, content):
    ratings = movielens_100k(write(content))
    assert ratings.user_ids == (22, 186, 196)
    assert ratings.item_ids == (242, 302, 377)
    assert ratings.item.tolist() == [2, 1, 0]
    assert ratings.value.tolist() == [1, 3, 3]
    assert ratings.timestamp.tolist() == [878887116, 891717742, 881250949]
    assert ratings.scale == Scale(1, 5)
    assert ratings.folds is None


def test_path_is_a_folder_a_file_or_the_environment(write, tmp_path, monkeypatch):
    file = write(GOOD)
    ratings = movielens_100k(file)
    assert movielens_100k(tmp_path) == ratings
    assert movielens_100k(str(tmp_path)) == ratings
    monkeypatch.setenv("MOVIELENS_100K", str(tmp_path))
    assert movielens_100k() == ratings


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (
            GOOD + "46\t43\t4\t5\txxxxxx\n",
            4,
            r"found 5 columns in '46\\t43\\t4\\t5\\txxxxxx', expected 4 columns",
        ),
        (GOOD + "46\t43\t4\txxxxxx\n", 4, "found timestamp 'xxxxxx', expected an integer from 0 to"),
        (GOOD.replace("\t3\t881250949", "\t3\t881250949\t1"), 1, "found 5 columns"),
        ("1\t2\t3\t4\t5\n" * 2, 1, "found 5 columns"),
        (GOOD + "46\t43\t4\n", 4, "found 3 columns"),
        (GOOD + "46 43 4 1\n", 4, "found 1 columns"),
        (GOOD + "46\t43\t4.5\t1\n", 4, "found rating '4.5', expected an integer from 1 to 5"),
        (GOOD + "46\t43\t\t1\n", 4, "found rating '', expected an integer"),
        (GOOD + "46\t43\t 4\t1\n", 4, "found rating ' 4', expected an integer"),
        (GOOD + "46\t43\t+4\t1\n", 4, r"found rating '\+4', expected an integer"),
        (GOOD + "46\t43\t٤\t1\n", 4, "found rating '٤', expected an integer"),
        (GOOD + "46\t43\t6\t1\n", 4, "found rating '6', expected an integer from 1 to 5"),
        (GOOD + "46\t43\t0\t1\n", 4, "found rating '0', expected an integer from 1 to 5"),
        (GOOD + "46\t43\t-1\t1\n", 4, "found rating '-1', expected an integer from 1 to 5"),
        (GOOD + "944\t43\t4\t1\n", 4, "found user id '944', expected an integer from 1 to 943"),
        (GOOD + "0\t43\t4\t1\n", 4, "found user id '0', expected an integer from 1 to 943"),
        (GOOD + "46\t1683\t4\t1\n", 4, "found item id '1683', expected an integer from 1 to 1682"),
        (GOOD + "46\t43\t4\t99999999999999999999\n", 4, "found timestamp '99999999999999999999'"),
        (GOOD.replace("891717742", "891717742a"), 2, "found timestamp '891717742a'"),
        (GOOD.replace("\t302", "\t302b"), 2, "found item id '302b', expected an integer from 1 to 1682"),
        (
            "user_id\titem_id\trating\ttimestamp\n" + GOOD,
            1,
            r"found the text 'user_id.*; delete a header line",
        ),
        ("", 1, "found an empty file, expected 4 columns"),
        ("\n" + GOOD, 1, "found the text ''"),
        (GOOD + "\n", 4, "found 1 columns in ''"),
        (GOOD + "\n" + GOOD, 4, "found 1 columns in ''"),
        (
            GOOD[:-1] + "944\t1\t5\t888888888\n" + GOOD,
            3,
            "found 7 columns .* expected 4 columns .*; break the line in two",
        ),
        (GOOD[:-1] + "1\t1\t5\t888888888\n", 3, "found 7 columns"),
        ("1\t1\t0.6\t1\n1\t2\t1\t1\n", 1, "found rating '0.6', expected an integer from 1 to 5"),
        ("1\t1\t1\t1\n1\t2\t0\t1\n", 2, "found rating '0', expected an integer from 1 to 5"),
        (GOOD.replace("\n", "\r"), 1, "found a carriage return inside the line"),
        (GOOD + "1\t1\t1\t1\r1\t2\t1\t1\n", 4, "found a carriage return inside the line"),
        (b"\xef\xbb\xbf" + GOOD.encode(), 1, "found a byte order mark"),
        (GOOD.encode("utf-16"), 1, "found a byte order mark"),
        (GOOD + '46\t"43"\t4\t1\n', 4, "found item id '\"43\"'"),
        (
            GOOD + "186\t302\t3\t891717742\n",
            4,
            "found user 186, item 302 again, after line 2, expected each pair",
        ),
        (GOOD + GOOD, 4, "found user 196, item 242 again, after line 1"),
        (GOOD + "186\t302\t4\t1\n" + "186\t302\t5\t1\n", 4, "found user 186, item 302 again, after line 2"),
        (GOOD + "x" * 500 + "\t1\t1\t1\n", 4, r"found user id 'x{60}\.\.\.'"),
    ],
)
def test_malformed_line_is_named(write, content, line, message):
    file = write(content)
    with pytest.raises(DataError, match=message) as error:
        movielens_100k(file)
    assert str(error.value).startswith(f"{file}, line {line}: found ")
    assert ", expected " in str(error.value)
    assert "; " in str(error.value)


def test_the_first_of_many_offenders_is_named(write):
    with pytest.raises(DataError, match="line 2: found rating '9'"):
        movielens_100k(write("1\t1\t1\t1\n1\t2\t9\t1\n1\t2\tx\t1\n\n"))


def test_error_survives_pickling(write):
    with pytest.raises(DataError) as error:
        movielens_100k(write(""))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    assert isinstance(error.value, ValueError)


def packed(folder, **changed):
    """Zip archive of the official files, as GroupLens gives them out, some of them changed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in sorted(folder.iterdir()):
            archive.writestr(f"ml-100k/{file.name}", changed.get(file.name, file.read_bytes()))
    return content.getvalue()


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """Serve a folder in place of GroupLens, with an empty cache and no path set; gives folder and cache."""
    served, cache = tmp_path / "served", tmp_path / "cache"
    served.mkdir()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("no_proxy", "*")
        monkeypatch.setenv("MOVIELENS_100K", "")
        monkeypatch.setenv("MOVIELENS_100K_URL", f"http://127.0.0.1:{server.server_port}/ml-100k.zip")
        monkeypatch.setenv("NETSIM_DATA", str(cache))
        yield served, cache
        server.shutdown()
        thread.join()


def test_without_a_path_it_is_fetched_and_kept(official, publisher, caplog):
    served, cache = publisher
    (served / "ml-100k.zip").write_bytes(packed(official))
    fetched = movielens_100k()
    assert fetched == movielens_100k(official)
    (message,) = warnings_of(caplog, "algorithms.datasets.download")
    assert message.startswith("MovieLens 100K was fetched from http://127.0.0.1:")
    assert "no redistribution" in message
    assert not warnings_of(caplog)
    kept = sorted(file.name for file in (cache / "ml-100k").iterdir())
    assert kept == ["README", "u.data", *(f"u{fold}.test" for fold in range(1, 6))]
    (served / "ml-100k.zip").unlink()
    assert movielens_100k() == fetched


def test_a_path_and_the_environment_come_before_the_cache(official, publisher, write, monkeypatch):
    served, _ = publisher
    (served / "ml-100k.zip").write_bytes(packed(official))
    assert movielens_100k().n_ratings == 100_000
    file = write(GOOD)
    assert movielens_100k(file).n_ratings == 3
    monkeypatch.setenv("MOVIELENS_100K", str(file))
    assert movielens_100k().n_ratings == 3


@pytest.mark.parametrize("name", ["u.data", "u3.test"])
def test_a_tampered_download_is_refused(official, publisher, name):
    served, cache = publisher
    changed = (official / name).read_bytes().replace(b"\t5\t", b"\t4\t", 1)
    (served / "ml-100k.zip").write_bytes(packed(official, **{name: changed}))
    with pytest.raises(DownloadError, match=rf"for ml-100k/{name} in the archive, expected SHA-256"):
        movielens_100k()
    assert list(cache.iterdir()) == []


def test_a_truncated_download_is_refused(official, publisher):
    served, cache = publisher
    (served / "ml-100k.zip").write_bytes(packed(official)[:-1000])
    with pytest.raises(DownloadError, match="found a damaged archive, expected a zip archive"):
        movielens_100k()
    assert list(cache.iterdir()) == []


def test_without_a_network_the_error_says_what_to_do(publisher):
    with pytest.raises(
        DownloadError,
        match=r"MovieLens 100K could not be fetched .*: the server answered 404 .*; without a network, get "
        r"https://files\.grouplens\.org/datasets/movielens/ml-100k\.zip on another machine, unpack it, and set "
        r"MOVIELENS_100K to its folder or give that folder as the path$",
    ):
        movielens_100k()


def test_checksums_are_those_of_the_official_files(official):
    assert hashlib.md5((official / "u.data").read_bytes()).hexdigest() == "6e47046882bad158b0efbb84cd5cb987"
    for name, digest in movielens.FILES.items():
        assert hashlib.sha256((official / name).read_bytes()).hexdigest() == digest
    assert movielens.ADDRESS == "https://files.grouplens.org/datasets/movielens/ml-100k.zip"


def test_missing_files(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"path must name u\.data .*: found a folder without it"):
        movielens_100k(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path must name u\.data .*/absent: found nothing there"):
        movielens_100k(tmp_path / "absent")
    monkeypatch.setenv("MOVIELENS_100K", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"environment variable MOVIELENS_100K must name u\.data"):
        movielens_100k()


def test_folds_come_from_the_test_files(with_folds, tmp_path):
    with_folds("1\t3\t3\t3\n", "u1.test")
    with_folds("1\t1\t1\t1\n", "u3.test")
    assert movielens_100k(tmp_path).folds.tolist() == [3, 2, 1, 4, 5]


@pytest.mark.parametrize(
    ("name", "content", "where", "message"),
    [
        (
            "u2.test",
            "1\t2\t2\t2\n2\t2\t2\t2\n",
            "u2.test, line 2",
            r"user 2, item 2, which u\.data does not hold",
        ),
        ("u2.test", "1\t2\t3\t2\n", "u2.test, line 1", r"rating 3, expected rating 2 as in u\.data, line 2"),
        ("u2.test", "1\t2\t2\t2\n1\t1\t1\t1\n", "u2.test, line 2", r"item 1, which u1\.test holds too"),
        ("u2.test", "1\t2\t2\t2\n1\t2\t2\t2\n", "u2.test, line 2", "again, after line 1"),
        ("u4.test", "1\t5\t5\t5\n", "u5.test, line 1", r"item 5, which u4\.test holds too"),
        ("u4.test", "", "u4.test, line 1", "an empty file"),
        ("u4.test", "1\t4\tfour\t4\n", "u4.test, line 1", "rating 'four'"),
        (
            "u.data",
            "1\t6\t5\t5\n" + "".join(f"1\t{i}\t{i}\t{i}\n" for i in range(1, 6)),
            "u.data, line 1",
            "no test file",
        ),
    ],
)
def test_test_files_that_do_not_share_out_the_ratings(with_folds, tmp_path, name, content, where, message):
    with_folds(content, name)
    with pytest.raises(DataError, match=message) as error:
        movielens_100k(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / where}: found ")


def test_some_test_files_are_missing(with_folds, tmp_path):
    (tmp_path / "u3.test").unlink()
    with pytest.raises(FileNotFoundError, match=r"all of u1\.test to u5\.test or none, got no u3\.test"):
        movielens_100k(tmp_path)


def test_slow_pass_reads_what_the_fast_one_reads(write, monkeypatch):
    file = write(GOOD)
    ratings = movielens_100k(file)
    monkeypatch.setattr(delimited, "_read_fast", lambda *_: None)
    assert movielens_100k(file) == ratings


def test_edited_data_are_reported(write, caplog):
    movielens_100k(write(GOOD))
    assert "is not the official MovieLens 100K: found 3 lines" in warnings_of(caplog)[0]


def test_official_data(official, caplog):
    ratings = movielens_100k(official)
    assert (ratings.n_ratings, ratings.n_users, ratings.n_items) == (100_000, 943, 1682)
    assert ratings.user_ids == tuple(range(1, 944))
    assert ratings.item_ids == tuple(range(1, 1683))
    assert set(ratings.value.tolist()) == {1, 2, 3, 4, 5}
    assert ratings.scale == Scale(1, 5)
    assert ratings.mean == pytest.approx(3.52986)
    first = (ratings.user == 195) & (ratings.item == 241)
    assert ratings.value[first].tolist() == [3]
    assert ratings.timestamp[first].tolist() == [881250949]
    assert not warnings_of(caplog)


def test_official_folds(official):
    ratings = movielens_100k(official)
    never_in_base = []
    for fold in range(1, 6):
        train, test = ratings.split(fold=fold)
        assert (len(train), len(test)) == (80_000, 20_000)
        never_in_base.append(len(np.setdiff1d(test.item, train.item)))
    assert never_in_base == [32, 34, 32, 22, 32]


def test_folds_by_rule_are_those_of_the_files(official, write, caplog):
    alone = write((official / "u.data").read_bytes())
    assert movielens_100k(alone) == movielens_100k(official)
    assert movielens_100k(write((official / "u.data").read_bytes().replace(b"\n", b"\r\n"))).folds is not None
    assert not warnings_of(caplog)


def test_lines_in_another_order_get_no_false_folds(official, write, caplog):
    lines = (official / "u.data").read_bytes().splitlines(keepends=True)
    assert movielens_100k(write(b"".join(sorted(lines)))).folds is None
    assert len(warnings_of(caplog)) == 1


def test_one_changed_rating(official, write, caplog):
    changed = (official / "u.data").read_bytes().replace(b"196\t242\t3\t", b"196\t242\t4\t", 1)
    ratings = movielens_100k(write(changed))
    assert np.array_equal(ratings.folds, movielens_100k(official).folds)
    assert len(warnings_of(caplog)) == 1
    for fold in range(1, 6):
        write((official / f"u{fold}.test").read_bytes(), f"u{fold}.test")
    with pytest.raises(DataError, match=r"u1\.test, line \d+: found user 196, item 242, rating 3, expected rating 4"):
        movielens_100k(write(changed))


def test_loads_fast(official):
    started = time.perf_counter()
    movielens_100k(official)
    assert time.perf_counter() - started < 1.0
