"""The error for a data file whose content is not what its format promises."""

from pathlib import Path

__all__ = ["DataError"]


class DataError(ValueError):
    """A data file holds something that its format does not allow."""

    @classmethod
    def at(cls, path: Path, line: int, *, found: str, expected: str, mend: str) -> "DataError":
        """Word the error for one line of a file.

        Parameters
        ----------
        path : pathlib.Path
            The file.
        line : int
            Number of the line, from 1.
        found, expected, mend : str
            What stands there, what should, and what the reader of the message can do.

        Returns
        -------
        DataError
            To be raised by the caller.
        """
        return cls(f"{path}, line {line}: found {found}, expected {expected}; {mend}")
