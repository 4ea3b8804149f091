import hashlib
import io
import pickle
import signal
import socket
import stat
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.datasets import download
from algorithms.datasets.download import DownloadError, Source, cache_folder, fetch

ROOT = Path(__file__).resolve().parents[3]
FILES = {"numbers": b"1\t2\t3\n" * 5000, "more": b"4\n"}
CHILD = """
import signal
import sys
from pathlib import Path
from algorithms.datasets.download import Source, fetch
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
print(fetch(Source("Numbers", sys.argv[1], "set", {sha256!r}), Path(sys.argv[2])))
"""


def sha256(files=FILES):
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def archive(files=FILES, **others):
    """A zip archive with the folder `set`, and with other members by their full name."""
    members = {f"set/{name}": content for name, content in files.items()} | others
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


class Server(ThreadingHTTPServer):
    """Gives `body` to whoever asks; `promised` is the length it announces, `respond` what it does instead."""

    daemon_threads = True
    body = b""
    promised = None
    respond = None
    n_requests = 0

    def handle_error(self, request, client_address):
        """Say nothing of a client that hung up."""

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}/set.zip"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.n_requests += 1
        if self.server.respond is not None and self.server.respond(self):
            return
        self.send_response(200)
        if self.server.promised != "nothing":
            self.send_header("Content-Length", str(self.server.promised or len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_):
        """Keep standard error for the code under test."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with Server(("127.0.0.1", 0), Handler) as made:
        made.body = archive()
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def source(server):
    return Source("Numbers", server.address, "set", sha256(), instead="bring it on a disk", timeout=20)


def contents(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


WHOLE = {f"set/{name}": content for name, content in FILES.items()}


def test_fetches_once_and_then_reads_the_cache(server, source, tmp_path, caplog):
    cache = tmp_path / "not" / "yet"
    assert fetch(source, cache) == cache / "set"
    assert contents(cache) == WHOLE
    assert [record.getMessage() for record in caplog.records] == [
        f"Numbers was fetched from {server.address} into {cache / 'set'}. "
    ]
    server.body = b""
    assert fetch(source, cache) == cache / "set"
    assert server.n_requests == 1
    assert len(caplog.records) == 1


def test_others_may_read_what_one_fetched(source, tmp_path):
    (tmp_path / "usual").mkdir()
    usual = stat.S_IMODE((tmp_path / "usual").stat().st_mode)
    assert stat.S_IMODE(fetch(source, tmp_path).stat().st_mode) == usual


def test_terms_are_said_at_the_download_alone(server, tmp_path, caplog):
    source = Source("Numbers", server.address, "set", sha256(), terms="No resale.")
    fetch(source, tmp_path)
    fetch(source, tmp_path)
    assert [record.getMessage().endswith("No resale.") for record in caplog.records] == [True]


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_bytes(b"1\t2")])
def test_a_damaged_cache_is_mended(server, source, tmp_path, damage):
    (fetch(source, tmp_path) / "mine").write_bytes(b"kept")
    damage(tmp_path / "set" / "numbers")
    assert fetch(source, tmp_path) == tmp_path / "set"
    assert contents(tmp_path) == WHOLE | {"set/mine": b"kept"}
    assert server.n_requests == 2


def test_only_the_files_of_the_source_are_unpacked_and_never_outside(server, tmp_path):
    evil = {
        "../evil": b"x",
        "set/../../evil": b"x",
        str(tmp_path / "evil"): b"x",
        "other/numbers": b"x",
        "set/big": b"x",
    }
    server.body = archive(**evil, **{"set/README": b"read me"})
    cache = tmp_path / "deep" / "cache"
    fetch(Source("Numbers", server.address, "set", sha256(), notes=("README", "LICENSE")), cache)
    assert contents(tmp_path) == {f"deep/cache/{name}": content for name, content in WHOLE.items()} | {
        "deep/cache/set/README": b"read me"
    }


@pytest.mark.parametrize("n_kept", [0, 1, 100, -1])
def test_a_truncated_download_is_refused(server, source, tmp_path, n_kept):
    whole = server.body
    server.body, server.promised = whole[:n_kept], len(whole)
    with pytest.raises(DownloadError, match=rf"found {len(server.body)} bytes, expected {len(whole)}; the connection"):
        fetch(source, tmp_path)
    assert contents(tmp_path) == {}
    server.body = whole
    assert contents(fetch(source, tmp_path).parent) == WHOLE


@pytest.mark.parametrize("n_kept", [30, 100, -1])
def test_a_truncated_download_of_unknown_length_is_refused(server, source, tmp_path, n_kept):
    server.body, server.promised = server.body[:n_kept], "nothing"
    with pytest.raises(DownloadError, match="found a damaged archive, expected a zip archive"):
        fetch(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_tampered_file_is_refused(server, source, tmp_path):
    server.body = archive(FILES | {"more": b"5\n"})
    found, expected = hashlib.sha256(b"5\n").hexdigest(), sha256()["more"]
    with pytest.raises(DownloadError, match=f"found {found} for set/more in the archive, expected SHA-256 {expected}"):
        fetch(source, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_named(server, source, tmp_path):
    server.body = archive({"more": FILES["more"]})
    with pytest.raises(DownloadError, match="found no such file for set/numbers in the archive"):
        fetch(source, tmp_path)


def test_a_page_in_place_of_the_archive_is_shown(server, source, tmp_path):
    server.body = b"<html>Please log in to the network</html>"
    with pytest.raises(
        DownloadError, match=r"found 41 bytes that begin b'<html>Please log in to.*', expected a zip archive"
    ):
        fetch(source, tmp_path)


PACKED = archive({"numbers": bytes(range(256)), "more": b"4\n"})


@settings(max_examples=200)
@given(st.dictionaries(st.integers(0, len(PACKED) - 1), st.integers(0, 255), min_size=1, max_size=4))
def test_whatever_is_tampered_the_files_are_right_or_refused(tmp_path_factory, changes):
    folder = tmp_path_factory.mktemp("tampered")
    tampered = bytearray(PACKED)
    for position, byte in changes.items():
        tampered[position] = byte
    (folder / "set.zip").write_bytes(tampered)
    files = {"numbers": bytes(range(256)), "more": b"4\n"}
    try:
        fetch(Source("Numbers", (folder / "set.zip").as_uri(), "set", sha256(files)), folder)
    except DownloadError:
        assert [file.name for file in folder.iterdir()] == ["set.zip"]
    else:
        assert contents(folder / "set") == files


def refuses(handler):
    handler.send_error(503)
    return True


def test_no_server_and_its_errors(server, source, tmp_path):
    server.respond = refuses
    with pytest.raises(DownloadError, match="the server answered 503 Service Unavailable; bring it on a disk") as error:
        fetch(source, tmp_path)
    assert str(error.value).startswith(f"Numbers could not be fetched from {server.address}: ")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    assert isinstance(error.value, OSError)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/"
    with pytest.raises(DownloadError, match=r"fetched from http.*refused"):
        fetch(Source("Numbers", address, "set", sha256()), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["set.zip", "ftp//x", "http://", "http://a b/", "http://[/", "", "gopher://x/y"])
def test_an_address_that_is_none_is_named(tmp_path, address):
    with pytest.raises(DownloadError, match="Numbers could not be fetched from"):
        fetch(Source("Numbers", address, "set", sha256()), tmp_path)


@pytest.mark.parametrize("n_sent", [None, 0, 50])
def test_a_server_that_falls_silent_is_given_up(server, tmp_path, n_sent):
    over = threading.Event()

    def silent(handler):
        if n_sent is not None:
            handler.send_response(200)
            handler.end_headers()
            handler.wfile.write(server.body[:n_sent])
        return over.wait(20)

    server.respond = silent
    try:
        with pytest.raises(DownloadError, match=r"no answer for 0\.2 seconds"):
            fetch(Source("Numbers", server.address, "set", sha256(), timeout=0.2), tmp_path)
    finally:
        over.set()
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(server, source, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(DownloadError, match=r"Numbers cannot be kept in .*file: .* NETSIM_DATA to another folder"):
        fetch(source, tmp_path / "file")
    (tmp_path / "set").write_bytes(b"mine")
    with pytest.raises(DownloadError, match=f"Numbers cannot be kept in {tmp_path}: .*; make room there"):
        fetch(source, tmp_path)
    assert contents(tmp_path) == {"file": b"mine", "set": b"mine"}


def start(server, cache):
    return subprocess.Popen(
        [sys.executable, "-c", CHILD.format(sha256=sha256()), server.address, str(cache)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_processes_at_once_both_succeed(server, tmp_path):
    both = threading.Barrier(2, timeout=60)
    server.respond = lambda handler: both.wait() < 0  # answer neither before both have asked
    children = [start(server, tmp_path) for _ in range(2)]
    for child in children:
        out, err = child.communicate(timeout=120)
        assert (child.returncode, out.splitlines()) == (0, [str(tmp_path / "set")]), err
    assert server.n_requests == 2
    assert contents(tmp_path) == WHOLE
    assert [file.name for file in tmp_path.iterdir()] == ["set"]


def test_an_interrupted_download_leaves_nothing(server, tmp_path):
    asked, over = threading.Event(), threading.Event()

    def halfway(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(server.body)))
        handler.end_headers()
        handler.wfile.write(server.body[:50])
        asked.set()
        return over.wait(60)

    server.respond = halfway
    child = start(server, tmp_path)
    try:
        assert asked.wait(60)
        assert [file.name[:5] for file in tmp_path.iterdir()] == [".set-"]
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    finally:
        over.set()
        child.kill()
        child.wait()
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_progress_is_shown_on_a_terminal_alone(source, tmp_path, monkeypatch, stream, shown):
    standard_error = stream()
    monkeypatch.setattr(sys, "stderr", standard_error)
    fetch(source, tmp_path)
    assert ("Numbers: " in standard_error.getvalue()) == shown


def test_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("NETSIM_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("NETSIM_DATA", "")
    assert cache_folder() == download.user_cache_path("netsim-recommender", appauthor=False) / "data"
    monkeypatch.setenv("NETSIM_DATA", "~/data")
    assert cache_folder() == Path.home() / "data"
