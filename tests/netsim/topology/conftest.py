import pytest


@pytest.fixture
def write(tmp_path):
    """Write text or bytes to a file of its own; returns its path."""

    def write(content, name="net.txt"):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write
