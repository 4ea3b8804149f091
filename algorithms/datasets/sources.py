"""What a rating file says, as clean text: from a path, a gzip file or an open file, in any encoding."""

import codecs
import gzip
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from algorithms.datasets.errors import DataError

__all__ = ["Source", "Text", "read_text"]

Source = str | os.PathLike[str] | IO[str] | IO[bytes]

GZIP = b"\x1f\x8b"
ARCHIVES = {
    b"PK\x03\x04": "zip archive",
    b"BZh91AY&SY": "bzip2 file",
    b"\xfd7zXZ\x00": "xz file",
    b"\x28\xb5\x2f\xfd": "zstd file",
}
# UTF-32 goes first: its little-endian mark begins with that of UTF-16.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}


@dataclass(frozen=True)
class Text:
    r"""The text of a file.

    Attributes
    ----------
    name : str
        The file, as error messages call it.
    data : bytes
        Its text in UTF-8, without a byte order mark, lines joined by ``\n`` only.
    """

    name: str
    data: bytes


def read_text(source: Source, *, encoding: str = "utf-8") -> Text:
    r"""Read a whole text file.

    Lines may end in ``\n``, ``\r\n`` or, all of them, in ``\r``. Gzip is known by its first bytes.
    A byte order mark tells the encoding, whatever `encoding` says.

    Parameters
    ----------
    source : str, path-like, or file open for reading
        The file, in text or binary mode where it is open. An open file is read from where it stands
        and not closed.
    encoding : str, optional
        Encoding of a file without a byte order mark; without meaning for one open in text mode.

    Returns
    -------
    Text
        Name and content.

    Raises
    ------
    FileNotFoundError
        When there is no such file, or a folder.
    DataError
        When it is compressed in another way than by gzip, is damaged, is not text in this encoding,
        or holds a carriage return or a NUL character inside a line.
    ValueError
        When there is no such encoding, or the open file cannot be read.
    TypeError
        When `source` is neither a path nor an open file.
    """
    _check_encoding(encoding)
    content: str | bytes
    if isinstance(source, str | os.PathLike):
        name, content = _from_path(source)
    elif hasattr(source, "read"):
        name, content = _from_open_file(source)
    else:
        raise TypeError(
            f"source must be a path or a file open for reading, got {type(source).__name__}; "
            "pass a DataFrame to ratings_from_frame, a matrix to ratings_from_sparse or ratings_from_dense"
        )
    data = _encoded(name, content) if isinstance(content, str) else _as_utf8(name, _unpacked(name, content), encoding)
    return Text(name, _with_plain_line_ends(name, data))


def _check_encoding(encoding: str) -> None:
    try:
        " ".encode(encoding)
    except UnicodeError:
        return  # an encoding, though one without a space
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        raise ValueError(
            f"encoding must name a text encoding of Python, got {encoding!r}; pass for instance 'latin-1'"
        ) from None


def _from_path(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    place = os.path.expanduser(os.fspath(source))  # noqa: PTH111  Path.expanduser raises for an unknown user
    try:
        return place, Path(place).read_bytes()
    except IsADirectoryError:
        found = "a folder"
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a NUL in the path
        found = "nothing there"
    raise FileNotFoundError(f"source must name a file of ratings, got {place!r}: found {found}; correct the path")


def _from_open_file(source: Any) -> tuple[str, str | bytes]:
    given = getattr(source, "name", None)
    name = given if isinstance(given, str) else f"<{type(source).__name__}>"
    try:
        content = source.read()
    except UnicodeDecodeError as error:
        raise DataError.about(
            name,
            found=f"a byte that is not {error.encoding}",
            expected=f"text in {error.encoding}",
            mend="open the file with another encoding=, for instance 'latin-1'",
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(name, error) from None
    except (OSError, ValueError) as error:  # closed, or open for writing
        raise ValueError(f"source must be a file open for reading, got {name}: {error}; open it anew") from None
    if not isinstance(content, str | bytes):
        raise TypeError(
            f"source must read as str or bytes, got {type(content).__name__} from {name}; open the file in another way"
        )
    return name, content


def _damaged(name: str, error: Exception) -> DataError:
    return DataError.about(
        name, found=f"a damaged gzip file ({error})", expected="a whole one", mend="get a fresh copy of the file"
    )


def _unpacked(name: str, data: bytes) -> bytes:
    for magic, kind in ARCHIVES.items():
        if data.startswith(magic):
            raise DataError.about(
                name, found=f"a {kind}", expected="text, or text packed by gzip", mend="unpack it first"
            )
    if not data.startswith(GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise _damaged(name, error) from None


def _as_utf8(name: str, data: bytes, encoding: str) -> bytes:
    marked = next((each for mark, each in BYTE_ORDER_MARKS.items() if data.startswith(mark)), encoding)
    if marked == "utf-8-sig":
        data, marked = data.removeprefix(codecs.BOM_UTF8), "utf-8"
    if codecs.lookup(marked).name in ("utf-8", "ascii") and data.isascii():
        return data
    try:
        text = data.decode(marked)
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(marked, errors="ignore").count("\n") + 1
        raise DataError.at(
            name,
            line,
            found=f"byte {data[error.start : error.start + 1]!r}, which is not {marked}",
            expected=f"text in {marked}",
            mend="pass the encoding= of the file, for instance 'latin-1', or save it as UTF-8",
        ) from None
    except UnicodeError as error:
        raise DataError.about(
            name, found=f"what is not {marked} ({error})", expected=f"text in {marked}", mend="pass another encoding="
        ) from None
    return _encoded(name, text)


def _encoded(name: str, text: str) -> bytes:
    try:
        return text.removeprefix("\ufeff").encode()
    except UnicodeEncodeError as error:
        raise DataError.at(
            name,
            text.count("\n", 0, error.start) + 1,
            found=f"the lone surrogate {text[error.start]!r}",
            expected="characters",
            mend="open the file with its own encoding= and without errors=",
        ) from None


def _with_plain_line_ends(name: str, data: bytes) -> bytes:
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")
    data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    for stray, what, mend in (
        (b"\r", "a carriage return inside the line", "convert the line ends to those of Unix"),
        (b"\0", "a NUL character", "pass the encoding= of the file, for instance 'utf-16', or get a fresh copy"),
    ):
        position = data.find(stray)
        if position >= 0:
            line = data.count(b"\n", 0, position) + 1
            raise DataError.at(name, line, found=what, expected="lines of text that end in a newline", mend=mend)
    return data
