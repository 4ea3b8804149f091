"""The golden values of the second seed's own implementation, which stand beside the checkout and are no part of it."""

import os
from pathlib import Path

import numpy as np
import pytest

PLACE = Path(os.environ.get("GOLDEN_DATA") or Path(__file__).resolve().parents[3] / "shared" / "golden").expanduser()


class Golden:
    """Arrays by file, case and name."""

    def __init__(self, place):
        self.place = place
        self._files = {}

    def file(self, name):
        """All arrays of ``name.npz``, by their keys."""
        if name not in self._files:
            with np.load(self.place / f"{name}.npz") as arrays:
                self._files[name] = {key: arrays[key] for key in arrays.files}
        return self._files[name]

    def case(self, file, case):
        """Arrays of one case, by their names."""
        arrays = {key.split("|")[1]: content for key, content in self.file(file).items() if key.split("|")[0] == case}
        assert arrays, f"{file}.npz has no case {case}"
        return arrays

    def data(self, name):
        """Ratings with NaN where they are missing, and their categories."""
        arrays = self.case("data", f"data__{name}")
        return arrays["X"], arrays["values"]


@pytest.fixture(scope="session")
def golden():
    if not (PLACE / "data.npz").is_file():
        pytest.skip(f"needs the golden values in {PLACE}; set GOLDEN_DATA to their folder")
    return Golden(PLACE)
