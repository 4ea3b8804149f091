"""Data files fetched from their publisher, verified, and kept in a cache that several processes can share.

A folder of the cache appears whole or not at all: everything is made in a temporary folder beside it, verified there,
and put in its place by one rename. So there is no lock that a stopped process could leave behind; two processes that
start together both fetch, and the second finds the folder of the first.
"""

import hashlib
import http.client
import logging
import os
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from platformdirs import user_cache_path
from tqdm import tqdm

__all__ = ["CACHE_VARIABLE", "DownloadError", "Source", "cache_folder", "fetch"]

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "NETSIM_DATA"
BLOCK = 64 * 1024


class DownloadError(OSError):
    """Data could not be fetched from their publisher, or what came is not what the publisher gives out."""


@dataclass(frozen=True)
class Source:
    """A zip archive in which a publisher gives out data files.

    Parameters
    ----------
    name : str
        The data set, as messages say it.
    address : str
        Where the archive is: a URL.
    folder : str
        Folder of the files within the archive, and within the cache.
    sha256 : mapping of str to str
        The files that are taken out of the archive, each with the hex SHA-256 that it must have. The names are plain:
        they hold no folder.
    notes : tuple of str
        Further files, of no use to a program (licence, description): kept too where the archive has them, whatever
        they say.
    terms : str
        What the publisher asks of those who use the data, as a sentence. Reported at the download.
    instead : str
        What a person can do who has no network; the end of error messages.
    timeout : float
        Seconds without an answer after which to give up.
    """

    name: str
    address: str
    folder: str
    sha256: Mapping[str, str]
    notes: tuple[str, ...] = ()
    terms: str = ""
    instead: str = ""
    timeout: float = field(default=30.0, kw_only=True)

    def failure(self, what: str) -> DownloadError:
        """Word the error for a download that failed; `what` says what was found and expected."""
        message = f"{self.name} could not be fetched from {self.address}: {what}"
        return DownloadError(f"{message}; {self.instead}" if self.instead else message)


def cache_folder() -> Path:
    """Folder of all fetched data: `NETSIM_DATA` where it is set, else below the user's cache folder.

    Returns
    -------
    pathlib.Path
        It need not exist yet.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    return user_cache_path("netsim-recommender", appauthor=False) / "data"


def fetch(source: Source, cache: Path) -> Path:
    """Give the folder of a source's files; fetch them where the cache does not hold them whole.

    Files of the cache that are missing or damaged are put right by a new download. One that fails or is interrupted
    leaves nothing behind.

    Parameters
    ----------
    source : Source
        What to fetch.
    cache : pathlib.Path
        Folder that holds one folder for each source; made if need be.

    Returns
    -------
    pathlib.Path
        Folder with all files of `source.sha256`, each verified in this call.

    Raises
    ------
    DownloadError
        When the network, the archive or the cache folder fails. Says which, and what to do instead.
    """
    place = cache / source.folder
    if not _unsound(place, source):
        logger.info("%s: read from %s", source.name, place)
        return place
    with _workplace(source, cache) as temporary:
        archive = temporary / "archive.zip"
        _download(source, archive)
        made = temporary / source.folder
        made.mkdir()
        for name, content in _unpacked(source, archive).items():
            (made / name).write_bytes(content)
        _put(made, place, source)
    # A warning, so that whoever fetches the data sees once under which terms, however logging is set up.
    logger.warning("%s was fetched from %s into %s. %s", source.name, source.address, place, source.terms)
    return place


def _unsound(folder: Path, source: Source) -> list[str]:
    """Names of the files that a folder lacks or holds with other content."""
    return [name for name, digest in source.sha256.items() if _digest(folder / name) != digest]


def _digest(file: Path) -> str | None:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError:
        return None


@contextmanager
def _workplace(source: Source, cache: Path) -> Iterator[Path]:
    """Temporary folder on the disk of the cache, so that a rename can move what is made there."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        prefix = f".{source.folder}-"
        with tempfile.TemporaryDirectory(prefix=prefix, dir=cache, ignore_cleanup_errors=True) as temporary:
            yield Path(temporary)
    except DownloadError:
        raise
    except OSError as error:  # of the disk: those of the network are DownloadErrors by now
        raise DownloadError(
            f"{source.name} cannot be kept in {cache}: {error}; make room there, or set the environment variable "
            f"{CACHE_VARIABLE} to another folder"
        ) from error


def _download(source: Source, archive: Path) -> None:
    with _network(source):
        request = urllib.request.Request(source.address, headers={"User-Agent": "netsim-recommender"})
        response = urllib.request.urlopen(request, timeout=source.timeout)
    with response:
        promised = response.headers.get("Content-Length", "")
        total = int(promised) if promised.isdecimal() else None
        received = _receive(source, response, archive, total)
    if total is not None and received != total:  # urllib takes a cut connection for the end
        raise source.failure(f"found {received} bytes, expected {total}; the connection was cut, so try again")


def _receive(source: Source, response: IO[bytes], archive: Path, total: int | None) -> int:
    """Write a response to a file behind a progress bar; returns the number of bytes."""
    received = 0
    bar = tqdm(total=total, desc=source.name, unit="B", unit_scale=True, unit_divisor=1024, disable=None, leave=False)
    with bar, archive.open("wb") as file:
        while True:
            with _network(source):
                block = response.read(BLOCK)
            if not block:
                return received
            file.write(block)
            received += len(block)
            bar.update(len(block))


@contextmanager
def _network(source: Source) -> Iterator[None]:
    """Tell what the network raises in the source's words."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()
        raise source.failure(f"the server answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise source.failure(f"{error.reason}") from error
    except TimeoutError as error:
        raise source.failure(f"no answer for {source.timeout:g} seconds") from error
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: not a URL
        raise source.failure(f"{str(error) or type(error).__name__}") from error


def _unpacked(source: Source, archive: Path) -> dict[str, bytes]:
    """Content of the source's own files in an archive, verified.

    No name that stands in the archive becomes a path: the names are those of the source.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            held = set(opened.namelist())
            paths = {name: f"{source.folder}/{name}" for name in (*source.sha256, *source.notes)}
            contents = {name: opened.read(path) for name, path in paths.items() if path in held}
    except Exception as error:  # a damaged archive makes zipfile and what it calls raise errors of all kinds
        raise source.failure(f"found {_shown(archive)}, expected a zip archive ({error})") from error
    for name, expected in source.sha256.items():
        found = hashlib.sha256(contents[name]).hexdigest() if name in contents else "no such file"
        if found != expected:
            raise source.failure(f"found {found} for {paths[name]} in the archive, expected SHA-256 {expected}")
    return contents


def _shown(archive: Path) -> str:
    with archive.open("rb") as file:
        start = file.read(40)
    return "a damaged archive" if start.startswith(b"PK") else f"{archive.stat().st_size} bytes that begin {start!r}"


def _put(made: Path, place: Path, source: Source) -> None:
    """Put a verified folder in its place; where one stands there already, mend what is not sound in it."""
    try:
        made.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        for name in _unsound(place, source):
            (made / name).replace(place / name)
