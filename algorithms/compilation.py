"""The `kernel` decorator: numba compilation with a disk cache that notices every change of the source."""

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from platformdirs import user_cache_path

__all__ = ["compiled_before", "kernel"]


def kernel(function: Callable[..., Any], *, inline: bool = True, nogil: bool = False) -> Callable[..., Any]:
    """Compile a function with numba in nopython mode and cache the machine code on disk.

    No `fastmath`, no parallel reductions: a kernel gives the same bits wherever it is called from. It can be called
    from Python and from other kernels.

    numba's own cache is keyed on the file of the function alone, so a change in a kernel that it calls, or in a
    constant that it reads from another module, would go unnoticed. Here the cache folder is named after a digest of
    all sources that a kernel of that package can depend on: the package's own and those of `algorithms`.

    A kernel works on its caller's arrays and makes none of its own: numba's reference counting is off, which costs
    several times the work itself where small rows are taken out of large arrays, and would make threads contend.

    Parameters
    ----------
    function : function
    inline : bool
        Whether to put the kernel into the kernels that call it: a call that hands over a dozen arrays costs more than
        most of them do.
    nogil : bool
        Whether other Python threads may run while the kernel does.
    """
    folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_cache_root() / _digest(function.__module__.partition(".")[0]))
    try:
        return numba.njit(cache=True, forceinline=inline, nogil=nogil, _nrt=False)(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = folder


def compiled_before(package: str, kernel_name: str) -> bool:
    """Whether a kernel of these sources is in the cache on disk.

    Parameters
    ----------
    package : str
        Package that the kernel is in.
    kernel_name : str
        "module.function", without the packages.
    """
    return any((_cache_root() / _digest(package)).rglob(f"{kernel_name}-*.nbi"))


def _cache_root() -> Path:
    """Folder of all compiled kernels: `NUMBA_CACHE_DIR` where it is set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("netsim-recommender", appauthor=False) / "kernels"


@cache
def _digest(package: str) -> str:
    """Digest of the sources of `algorithms` and of `package`."""
    digest = hashlib.blake2b(digest_size=10)
    for name in dict.fromkeys([__name__.partition(".")[0], package]):
        module = sys.modules.get(name)
        for folder in getattr(module, "__path__", ()):
            for path in sorted(Path(folder).rglob("*.py")):
                if "plots" in path.relative_to(folder).parts:  # no kernel depends on a figure
                    continue
                digest.update(str(path.relative_to(folder)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()
