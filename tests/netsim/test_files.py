"""Files are written whole or not at all."""

import os
from pathlib import Path

import pytest

from netsim.files import write_bytes, write_text


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=[OSError("disk full"), KeyboardInterrupt()], ids=["disk full", "Ctrl-C"])
def failing_replace(monkeypatch, request):
    """The file cannot be put into its place, after all of it has been written."""

    def replace(self, target):
        raise request.param

    monkeypatch.setattr(Path, "replace", replace)
    return type(request.param)


def test_text_is_utf_8_with_its_line_ends_as_they_are(tmp_path):
    write_text(tmp_path / "a.csv", "é,\u2028\na\r\n")
    assert (tmp_path / "a.csv").read_bytes() == b"\xc3\xa9,\xe2\x80\xa8\na\r\n"


def test_bytes_replace_a_longer_file_and_leave_nothing_beside(tmp_path):
    path = tmp_path / "a.bin"
    write_bytes(path, bytes(1000))
    write_bytes(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_permissions_are_those_of_a_new_file(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a", "text")
        assert os.umask(mask) == mask  # it was put back
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == mode


def test_a_failure_leaves_the_earlier_file_and_no_litter(tmp_path, failing_replace):
    path = tmp_path / "a.txt"
    path.write_text("earlier", encoding="utf-8")
    with pytest.raises(failing_replace):
        write_text(path, "later")
    assert path.read_text(encoding="utf-8") == "earlier"
    assert names(tmp_path) == ["a.txt"]


def test_text_that_cannot_be_encoded_leaves_the_earlier_file(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "earlier")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "earlier"


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match=r"a'?$"):
        write_text(tmp_path / "a", "text")
    assert names(tmp_path) == ["a"]


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_text(tmp_path / "nowhere" / "a", "text")
    assert names(tmp_path) == []
