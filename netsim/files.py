"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path

__all__ = ["write_bytes", "write_text"]


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, with the permissions that a new file would have.

    Raises
    ------
    OSError
        If it cannot be written; what stood there before stays.
    """
    mask = os.umask(0)
    os.umask(mask)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=path.suffix, delete=False) as temporary:
        made = Path(temporary.name)
        try:
            temporary.write(content)
            temporary.flush()
            made.chmod(0o666 & ~mask)
            made.replace(path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
