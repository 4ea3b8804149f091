"""The error for a data file whose content is not what its format promises."""

from pathlib import Path

__all__ = ["DataError"]


class DataError(ValueError):
    """A data file holds something that its format does not allow."""

    @classmethod
    def about(cls, place: object, *, found: str, expected: str, mend: str) -> "DataError":
        """Word the error for a place in the data.

        Parameters
        ----------
        place : object
            The file, or where in it; printed as it is.
        found, expected, mend : str
            What stands there, what should, and what the reader of the message can do.

        Returns
        -------
        DataError
            To be raised by the caller.
        """
        return cls(f"{place}: found {found}, expected {expected}; {mend}")

    @classmethod
    def at(cls, path: Path | str, line: int, *, found: str, expected: str, mend: str) -> "DataError":
        """Word the error for one line of a file.

        Parameters
        ----------
        path : pathlib.Path or str
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
        return cls.about(f"{path}, line {line}", found=found, expected=expected, mend=mend)
