import gzip
import io
import logging
import re
from pathlib import Path

import pytest

from algorithms.datasets import DataError, rating_files, read_ratings
from algorithms.ratings import Scale

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"
GOOD = "1\t10\t3\n2\t10\t4.5\n2\t11\t1\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="ratings.txt"):
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    return write


@pytest.fixture
def real():
    if not DATA.is_dir():
        pytest.skip(f"needs the data sets in {DATA}, which may not be passed on with the project")
    return DATA


def read(text, **options):
    return read_ratings(io.StringIO(text), **options)


def triples(ratings):
    pairs = zip(ratings.user.tolist(), ratings.item.tolist(), strict=True)
    ids = [(ratings.user_ids[u], ratings.item_ids[i]) for u, i in pairs]
    return [(*pair, value) for pair, value in zip(ids, ratings.value.tolist(), strict=True)]


EXPECTED = [(1, 10, 3), (2, 10, 4.5), (2, 11, 1)]


@pytest.mark.parametrize("separator", ["\t", "::", ";", ",", "|", " ", "   ", " \t", ", ", " ; "])
def test_separator_is_found_out(separator):
    assert triples(read(GOOD.replace("\t", separator))) == EXPECTED


@pytest.mark.parametrize("separator", ["\t", " ", "::", "||", "#", "\x01", "¦"])
def test_separator_is_told(separator):
    assert triples(read(GOOD.replace("\t", separator), separator=separator)) == EXPECTED


@pytest.mark.parametrize(
    "header",
    [
        "userId,movieId,rating",
        "user_id,item_id,rating",
        "User-ID,ISBN,Book-Rating",
        "uid,Id,stars",
        '"user","item","score"',
    ],
)
def test_usual_names_make_a_header(header):
    assert triples(read(header + "\n" + GOOD.replace("\t", ","))) == EXPECTED


def test_header_orders_the_columns():
    ratings = read("rating,timestamp,item,user\n3,7,i,u\n")
    assert triples(ratings) == [("u", "i", 3)]
    assert ratings.timestamp.tolist() == [7]


def test_columns_are_chosen_by_name_or_position():
    text = "when,who,title,what,stars\n7,u,Up,i,3\n"
    columns = {"user": "who", "item": "what", "rating": "stars"}
    assert triples(read(text, columns=columns)) == [("u", "i", 3)]
    assert read(text, columns=columns).timestamp is None
    positions = {"user": 1, "item": 3, "rating": 4, "timestamp": 0}
    ratings = read(text, columns=positions, header=True)
    assert triples(ratings) == [("u", "i", 3)]
    assert ratings.timestamp.tolist() == [7]


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (["1", "20", "-3"], (-3, 1, 20)),
        (["007", "7", "1"], ("007", "1", "7")),
        (["+7", "7", "1"], ("+7", "1", "7")),
        (["7.0", "7", "1"], ("1", "7", "7.0")),
        (["1_0", "10", "1"], ("1", "10", "1_0")),
        (["9223372036854775807", "1", "2"], (1, 2, 9223372036854775807)),
        (["9223372036854775808", "1", "2"], ("1", "2", "9223372036854775808")),
        (["9223372036854775808", "7.0", "7"], ("7", "7.0", "9223372036854775808")),
        (["NA", "nan", "None"], ("NA", "None", "nan")),
        ([" a", "b ", "c"], ("a", "b", "c")),
    ],
)
def test_ids_are_integers_only_where_no_two_become_one(users, expected):
    text = "".join(f"{user},i,3\n" for user in users)
    assert read(text).user_ids == expected
    assert read(text, text_ids=True).user_ids == tuple(sorted(user.strip() for user in users))


def test_a_few_odd_ids_among_integers_are_reported(caplog):
    text = "".join(f"{user},i,3\n" for user in [*range(200), "l86"])
    with caplog.at_level(logging.WARNING):
        assert "l86" in read(text).user_ids
    assert "ids of users are kept as text, as 1 of 201 are no integers, for instance 'l86'" in caplog.text


TWICE = "1,1,2,10\n1,2,5,11\n1,1,3,12\n1,1,5,9\n"


@pytest.mark.parametrize(
    ("keep", "value", "timestamp"), [("first", 2, 10), ("last", 5, 9), ("mean", pytest.approx(10 / 3), 9)]
)
def test_duplicates_by_choice(keep, value, timestamp):
    ratings = read(TWICE, keep=keep)
    assert ratings.value.tolist() == [value, 5]
    assert ratings.timestamp.tolist() == [timestamp, 11]


def test_mean_of_large_ratings_is_finite():
    assert read("1,1,1.5e308\n1,1,1.7e308\n", keep="mean").value.tolist() == [1.6e308]


def test_mean_of_equal_ratings_stays_on_the_scale():
    text = "1,1,0.1\n" * 3
    assert read(text, keep="mean", scale=(0.1, 1)).value.tolist() == [0.1]


def test_zero_by_choice():
    text = "1,1,0\n1,1,4\n2,1,0.0\n2,2,-0\n3,3,2\n"
    assert triples(read(text, zero="missing", scale=(1, 5))) == [(1, 1, 4), (3, 3, 2)]
    assert (3, 3, 2) in triples(read(text, keep="last", scale=(0, 5)))
    assert read("1,1,-0\n1,2,3\n").value.tolist() == [0, 3]


def test_scale_is_the_range_found_or_the_one_told():
    assert read(GOOD).scale == Scale(1, 4.5)
    assert read(GOOD, scale=(0, 5)).scale == Scale(0, 5)


@pytest.mark.parametrize("number", ["3", " 3", "3.0", "+3", "3.", "0.3e1", "30E-1", "003"])
def test_numbers_in_all_usual_forms(number):
    assert read(f"1,1,{number}\n1,2,5\n").value.tolist() == [3, 5]


def test_a_control_character_is_neither_space_nor_separator():
    assert read("1\x1f2::3::4\n5::6::7\n").user_ids == ("1\x1f2", "5")
    with pytest.raises(DataError, match=r"line 2: found timestamp '\\x0b7'"):
        read("1,2,3,6\n1,3,3,\x0b7\n")


def test_every_digit_of_a_number_counts():
    assert read("1,1,0.1234567890123456789,1.0000000000000002\n").value.tolist() == [0.12345678901234568]
    assert read("1,1,2,1.0000000000000002\n").timestamp.tolist() == [1.0000000000000002]


def test_quoted_fields():
    text = 'user,item,rating\n"a, b","say ""hi""",3\n"two\nlines",x,"4"\n'
    assert triples(read(text)) == [("a, b", 'say "hi"', 3), ("two\nlines", "x", 4)]


def test_line_numbers_count_lines_within_quotes():
    with pytest.raises(DataError, match="line 5: found rating 'x'"):
        read('\nuser,item,rating\n"two\nlines",x,4\n1,2,x\n')


@pytest.mark.parametrize(
    ("text", "line", "found", "expected"),
    [
        ("1,2,3\n1,3,4,5\n", 2, "4 columns in '1,3,4,5'", r"3 columns \(user, item, rating\) separated by ','"),
        ("1\t2\t3\t4\n46 43 4 xxxxxx\n", 2, "timestamp 'xxxxxx'", "a finite decimal number"),
        ("1\t2\t3\t4\n5\t6\t3\t4\n46 43 4\n", 3, "1 columns in '46 43 4'", "4 columns .* separated by tabs"),
        ("943\t1\t3\t888\n943\t2\t3\t8889447\t1\t3\t999\n", 2, "7 columns", "4 columns .*; break the line in two"),
        ("943\t1\t3\t8889447\t1\t3\t999\n", 1, "7 columns", "3 or 4 .* break the line where two are joined"),
        ("1,2\n", 1, "'1,2'", "user, item and rating"),
        ("1,2,3\n1,2\n", 2, "2 columns", "3 columns .*; complete the line"),
        ("junk\n1,2,3\n", 1, "1 columns in 'junk'", "3 or 4"),
        ("1,2,3\n\n1,3,x\n", 3, "rating 'x'", "a finite decimal number"),
        ("1,2,3\n1,3,\n", 2, "rating ''", "a finite decimal number"),
        ("1,2,3\n1,3,nan\n", 2, "rating 'nan'", "a finite decimal number"),
        ("1,2,3\n1,3,inf\n", 2, "rating 'inf'", "a finite decimal number"),
        ("1,2,3\n1,3,1e999\n", 2, "rating '1e999'", "a finite decimal number"),
        ("1,2,3\n1,3,0x10\n", 2, "rating '0x10'", "a finite decimal number"),
        ("1,2,3\n1,3,1_000\n", 2, "rating '1_000'", "a finite decimal number"),
        ("1,2,3\n1,3,٣\n", 2, "rating '٣'", "a finite decimal number"),
        ("1;2;3\n1;3;4,5\n", 2, "rating '4,5'", ".*; write the decimal comma as a point"),
        ("1,2,3,7\n1,3,4,2020-01-01\n", 2, "timestamp '2020-01-01'", ".*; correct the line, or leave"),
        ("1,2,3\n,3,4\n", 2, "an empty user id", "3 columns"),
        ("1,2,3\n1, ,4\n", 2, "an empty item id", "3 columns"),
        ("1,2,x3\n1,3,4\n", 1, "rating 'x3'", ".* or a header line with the usual names .* pass header=True"),
        ("uid,mid,points\n1,3,4\n", 1, "rating 'points'", ".* or a header line with the usual names"),
        ("userId,movieId,rating,tag\n1,3,4,x\n", 1, "a header of 'userId, movieId, rating, tag'", ".* no other column"),
        ("user,item,userId,rating\n1,3,4,5\n", 1, "rating 'userId'", "a finite decimal number"),
        ("\n\n", 1, "an empty file", "lines of user"),
        ("", 1, "an empty file", "lines of user"),
        ("1,2,3\n1,2,4\n", 2, "user 1, item 2 again, after .*, line 1", "each pair .* once; .* pass keep="),
        ('1,2,3\n"1,3,4\n', 2, "a field that cannot be read", "quotes only around a whole field"),
        ('1,2,3\n1,"a"b,4\n', 2, "a field that cannot be read", "quotes only around a whole field"),
        ('1,2,3\n1,5,3\n1,"a"b,4\n', 3, "a field that cannot be read", "quotes only around a whole field"),
        ('1 2 3\n1 "3" 4\n', 2, "item id '\"3\"'", "no quotes .* pass a separator= of one character"),
        ("1,2,3\n1,3,4\r1,4,4\n", 2, "a carriage return inside the line", "lines of text"),
        ("1,2,3\n1,3\0,4\n", 2, "a NUL character", ".*encoding="),
        (f"1,2,{'x' * 500}\n", 1, r"rating 'x{60}\.\.\.'", "a finite"),
    ],
)  # fmt: skip
def test_malformed_line_is_named(write, text, line, found, expected):
    file = write(text)
    with pytest.raises(DataError, match=f"line {line}: found {found}.*, expected {expected}") as error:
        read_ratings(file)
    assert str(error.value).startswith(f"{file}, line {line}: ")
    assert "; " in str(error.value)


def test_rating_off_the_scale_is_named():
    with pytest.raises(DataError, match=r"line 3: found rating 6, expected a rating from 1 to 5; correct it"):
        read("user,item,rating\n1,1,5\n1,2,6\n", scale=(1, 5))


def test_nothing_but_zeros():
    with pytest.raises(DataError, match='found no rating but 0, expected others, as zero="missing"'):
        read("1,1,0\n1,2,0\n", zero="missing")


def test_header_without_lines():
    with pytest.raises(DataError, match="found a header and nothing else, expected lines of 3 columns"):
        read("user,item,rating\n")


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"user": "who", "item": "item", "rating": "rating"}, "a header of 'user, item, rating'"),
        ({"user": 0, "item": 1, "rating": 3}, "3 columns, expected the rating at position 3"),
    ],
)
def test_columns_that_the_file_lacks(columns, found):
    with pytest.raises(DataError, match=f"line 1: found {found}.*; correct columns="):
        read("user,item,rating\n1,2,3\n", columns=columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ""}, "separator must be text that no number"),
        ({"separator": "1"}, "separator must be"),
        ({"separator": "\n"}, "separator must be"),
        ({"separator": 3}, "separator must be"),
        ({"header": 0.5}, "header must be True, False or None, got 0.5"),
        ({"columns": ["user", "item", "rating"]}, "columns must map user, item, rating"),
        ({"columns": {"user": 0, "item": 1}}, "columns must map user, item, rating"),
        ({"columns": {"user": 0, "item": 1, "rating": -1}}, "columns must map"),
        ({"columns": {"user": 0, "item": 1, "rating": True}}, "columns must map"),
        ({"columns": {"user": 0, "item": 1, "rating": 2, "time": 3}}, "columns must map"),
        ({"columns": {"user": 0, "item": 0, "rating": 2}}, "columns must name each column once"),
        ({"columns": {"user": "a", "item": "b", "rating": "c"}, "header": False}, "columns must be positions"),
        ({"keep": "newest"}, "keep must be one of 'error', 'first', 'last', 'mean', got 'newest'"),
        ({"zero": 0}, "zero must be one of 'rating', 'missing', got 0"),
        ({"scale": (5, 1)}, "scale must be two finite numbers"),
        ({"scale": 5}, r"scale must be \(low, high\), got 5"),
        ({"scale": ("a", "b")}, r"scale must be \(low, high\), got \('a', 'b'\)"),
        ({"scale": (1, 2, 3)}, r"scale must be \(low, high\), got \(1, 2, 3\)"),
    ],
)  # fmt: skip
def test_arguments_are_checked_before_the_file_is_read(options, message):
    with pytest.raises(ValueError, match=message):
        read_ratings("nowhere", **options)


def test_slow_pass_reads_what_the_fast_one_reads(monkeypatch):
    ratings = read(GOOD)
    monkeypatch.setattr(rating_files, "_read_fast", lambda *_: None)
    assert read(GOOD) == ratings


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "\n\n" + GOOD + "\n\n",
        GOOD.replace("\t", "::"),
        GOOD.replace("\t", "  "),
        re.sub(r"\w+", r'"\g<0>"', GOOD.replace("4.5", "4")),
        "user\titem\trating\ttimestamp\n" + GOOD.replace("\n", "\t881250949\n"),
    ],
)
def test_sound_files_need_no_slow_pass(monkeypatch, text):
    def fail(*_):
        raise AssertionError("slow")

    monkeypatch.setattr(rating_files, "_read_strictly", fail)
    assert len(read(text)) == 3


@pytest.mark.parametrize(
    ("file", "options", "shape", "scale"),
    [
        ("ml-latest-small/ratings.csv", {}, (610, 9724, 100_836), Scale(0.5, 5)),
        ("ml-latest-small/new.csv", {}, (1, 59, 59), Scale(1, 6)),
        ("ml-100k/u.data", {}, (943, 1682, 100_000), Scale(1, 5)),
        ("ml-100k/u1.test", {}, (459, 1410, 20_000), Scale(1, 5)),
        ("filmtrust/ratings.txt", {"keep": "last"}, (1508, 2071, 35_494), Scale(0.5, 4)),
        ("odd/spark-double-colon.txt", {}, (30, 100, 1501), Scale(1, 5)),
        ("odd/jester5k.csv", {"scale": (-10, 10)}, (5000, 100, 363_209), Scale(-10, 10)),
        ("odd/ciao-ratings.txt", {"keep": "mean"}, (7375, 105_114, 282_650), Scale(0, 5)),
        ("odd/ciao-ratings.txt", {"keep": "mean", "zero": "missing"}, (7375, 105_096, 282_619), Scale(1, 5)),
    ],
)
def test_real_files(real, monkeypatch, file, options, shape, scale):
    def fail(*_):
        raise AssertionError("slow")

    monkeypatch.setattr(rating_files, "_read_strictly", fail)
    ratings = read_ratings(real / file, **options)
    assert (ratings.n_users, ratings.n_items, ratings.n_ratings) == shape
    assert ratings.scale == scale


def test_real_ids_and_duplicates(real):
    latest = read_ratings(real / "ml-latest-small" / "ratings.csv")
    assert latest.item_ids[-1] == 193_609
    assert latest.timestamp is not None
    assert read_ratings(real / "odd" / "spark-double-colon.txt").user_ids[0] == 0
    jester = read_ratings(real / "odd" / "jester5k.csv")
    assert "u7452" in jester.user_ids
    assert {(u, i): value for u, i, value in triples(jester)}["u7452", "j2"] == -3.54
    filmtrust = real / "filmtrust" / "ratings.txt"
    with pytest.raises(DataError, match=r"line 7437: found user 308, item 207 again, after .*, line 7411"):
        read_ratings(filmtrust)
    conflicting = {
        keep: {(u, i): value for u, i, value in triples(read_ratings(filmtrust, keep=keep))}
        for keep in ("first", "last", "mean")
    }
    assert [conflicting[keep][308, 207] for keep in ("first", "last", "mean")] == [3.5, 3, 3.25]
    assert [conflicting[keep][308, 12] for keep in ("first", "last", "mean")] == [4, 4, 4]


@pytest.mark.parametrize("file", ["ml-latest-small/movies.csv", "ml-100k/u.user", "ml-100k/u.info", "coat/train.ascii"])
def test_real_files_that_hold_no_ratings(real, file):
    with pytest.raises(DataError, match=r", line 1: found "):
        read_ratings(real / file)


def test_gzip_and_leading_blank_lines_of_a_real_file(real, write):
    data = (real / "filmtrust" / "ratings.txt").read_bytes()
    packed = write(gzip.compress(b"\r\n\r\n" + data.replace(b"\n", b"\r\n")))
    assert read_ratings(packed, keep="first") == read_ratings(real / "filmtrust" / "ratings.txt", keep="first")
    with pytest.raises(DataError, match=r"line 7439: .* after .*, line 7413"):
        read_ratings(packed)


def test_a_mark_of_byte_order_is_one_only_at_the_very_start(write):
    # Elsewhere it is part of a text, after blank lines too.
    assert read_ratings(write(b"\xef\xbb\xbf1\t1\t3\n2\t1\t4\n"), header=False).user_ids == (1, 2)
    assert set(read_ratings(write(b"\n\xef\xbb\xbf1\t1\t3\n2\t1\t4\n"), header=False).user_ids) == {"\ufeff1", "2"}
