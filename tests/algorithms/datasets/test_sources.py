import codecs
import gzip
import io
import zipfile

import pytest

from algorithms.datasets import DataError, read_ratings

GOOD = "é,10,3\nß,10,4\n"
IDS = ("ß", "é")


@pytest.fixture
def write(tmp_path):
    def write(data, name="ratings.csv"):
        file = tmp_path / name
        file.write_bytes(data)
        return file

    return write


def test_path_string_gzip_and_open_files_read_alike(write):
    plain, packed = write(GOOD.encode()), write(gzip.compress(GOOD.encode()), "ratings.csv.gz")
    ratings = read_ratings(plain)
    assert ratings.user_ids == IDS
    assert read_ratings(str(plain)) == ratings
    assert read_ratings(packed) == ratings
    assert read_ratings(packed.rename(packed.with_name("packed"))) == ratings
    with plain.open(encoding="utf-8") as text, plain.open("rb") as binary:
        assert read_ratings(text) == ratings
        assert read_ratings(binary) == ratings
        assert not text.closed
    with gzip.open(packed.with_name("packed")) as unpacking:
        assert read_ratings(unpacking) == ratings
    assert read_ratings(io.StringIO(GOOD)) == ratings
    assert read_ratings(io.BytesIO(gzip.compress(GOOD.encode()))) == ratings


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends(end, last):
    text = GOOD.replace("\n", end)
    assert read_ratings(io.BytesIO((text if last else text.removesuffix(end)).encode())).user_ids == IDS


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding(encoding):
    assert read_ratings(io.BytesIO(GOOD.encode(encoding))).user_ids == IDS
    assert read_ratings(io.BytesIO(GOOD.encode(encoding)), encoding="latin-1").user_ids == IDS


def test_big_endian_mark():
    assert read_ratings(io.BytesIO(codecs.BOM_UTF16_BE + GOOD.encode("utf-16-be"))).user_ids == IDS


def test_a_mark_in_text_is_no_part_of_an_id():
    assert read_ratings(io.StringIO("\ufeff" + GOOD)).user_ids == IDS


def test_other_encodings_are_told(write):
    file = write(("a,b,3\n" + GOOD).encode("latin-1"))
    assert set(read_ratings(file, encoding="latin-1").user_ids) == {"a", *IDS}
    with pytest.raises(DataError, match=r"line 2: found byte b'\\xe9', which is not utf-8.*encoding=.*'latin-1'"):
        read_ratings(file)


def test_utf_16_without_a_mark(write):
    file = write(GOOD.replace("é", "e").replace("ß", "s").encode("utf-16-le"))
    with pytest.raises(DataError, match=r"line 1: found a NUL character.*'utf-16'"):
        read_ratings(file)
    assert read_ratings(file, encoding="utf-16-le").user_ids == ("e", "s")


def test_text_file_opened_with_another_encoding(write):
    file = write(GOOD.encode("latin-1"))
    with (
        file.open(encoding="utf-8") as text,
        pytest.raises(DataError, match=r"ratings\.csv: found a byte that is not utf-8.*another encoding="),
    ):
        read_ratings(text)
    with (
        file.open(encoding="utf-8", errors="surrogateescape") as text,
        pytest.raises(DataError, match="line 1: found the lone surrogate"),
    ):
        read_ratings(text)


def test_utf_16_cut_in_a_character():
    with pytest.raises(DataError, match=r"line 3: found byte .* which is not utf-16"):
        read_ratings(io.BytesIO(GOOD.encode("utf-16") + b"1"))


@pytest.mark.parametrize("encoding", ["nonsense", "base64", "a\0b"])
def test_unknown_encoding(encoding):
    with pytest.raises(ValueError, match="encoding must name a text encoding of Python, got"):
        read_ratings(io.BytesIO(b""), encoding=encoding)


@pytest.mark.parametrize("cut", [2, 9, 20, -9, -1])
def test_truncated_gzip(write, cut):
    file = write(gzip.compress(GOOD.encode() * 50)[:cut], "ratings.csv.gz")
    with pytest.raises(DataError, match=r"ratings\.csv\.gz: found a damaged gzip file .*; get a fresh copy"):
        read_ratings(file)
    with (
        gzip.open(file) as unpacking,
        pytest.raises(DataError, match=r"found a damaged gzip file|found an empty file"),
    ):
        read_ratings(unpacking)


@pytest.mark.parametrize("at", [12, -6])
def test_damaged_gzip(write, at):
    data = bytearray(gzip.compress(GOOD.encode() * 50))
    data[at] ^= 0xFF
    with pytest.raises(DataError, match="found a damaged gzip file"):
        read_ratings(write(bytes(data)))


def test_other_archives(tmp_path):
    file = tmp_path / "ml.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("ratings.csv", GOOD)
    with pytest.raises(DataError, match=r"ml\.zip: found a zip archive, expected text.*; unpack it first"):
        read_ratings(file)


@pytest.mark.parametrize(("name", "found"), [("", "a folder"), ("absent", "nothing there"), ("a\0b", "nothing there")])
def test_no_such_file(tmp_path, name, found):
    place = f"{tmp_path}/{name}"
    with pytest.raises(FileNotFoundError, match=f"source must name a file of ratings, got .*: found {found}; correct"):
        read_ratings(place)


def test_a_file_below_a_file(write):
    with pytest.raises(FileNotFoundError, match="found nothing there"):
        read_ratings(write(b"1,2,3") / "below")


def test_closed_or_writing_file(tmp_path, write):
    with write(b"1,2,3").open() as closed:
        pass
    with pytest.raises(ValueError, match=r"source must be a file open for reading, got .*ratings\.csv: .*closed"):
        read_ratings(closed)
    with (tmp_path / "new").open("w") as writing, pytest.raises(ValueError, match="open for reading"):
        read_ratings(writing)


@pytest.mark.parametrize("source", [3, None, [[1, 2, 3]], b"ratings.csv"])
def test_no_source(source):
    with pytest.raises(TypeError, match="source must be a path or a file open for reading, got"):
        read_ratings(source)
