"""The `kernel` decorator: numba compilation with a disk cache that notices every change of the source."""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba import types
from platformdirs import user_cache_path

__all__ = ["compiled_before", "inner_kernel", "kernel"]


def kernel(
    function: Callable[..., Any], *, inline: bool = True, nogil: bool = False, python: bool = True
) -> Callable[..., Any]:
    """Compile a function with numba in nopython mode and cache the machine code on disk.

    No `fastmath`, no parallel reductions: a kernel gives the same bits wherever it is called from. It can be called
    from Python and from other kernels.

    numba's own cache is keyed on the file of the function alone, so a change in a kernel that it calls, or in a
    constant that it reads from another module, would go unnoticed. Here the cache folder is named after a digest of
    all sources that the kernel can depend on: its module, and what that imports of its own package and `algorithms`.

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
    python : bool
        Whether Python calls it, and not other kernels alone: what unpacks its arguments takes a fifth of the time of
        compilation.
    """
    folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_cache_root() / _digest(function.__module__))
    try:
        compiled = numba.njit(
            cache=True,
            forceinline=inline,
            nogil=nogil,
            no_cpython_wrapper=not python,
            no_cfunc_wrapper=True,
            _nrt=False,
        )
        return _once(compiled(function))
    finally:
        numba.config.CACHE_DIR = folder


def _once(dispatcher: Any) -> Callable[..., Any]:
    """Let kernels that call this one share one compilation, whatever the widths of their integers.

    numba compiles a callee for each constant and each width that it is called with, which makes half of all
    compilations. Constants are known again when it is put into its callers.
    """
    found = dispatcher.get_call_template

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return found(tuple(map(_widest, args)), {name: _widest(each) for name, each in kws.items()})

    dispatcher.get_call_template = get_call_template
    made: Callable[..., Any] = dispatcher
    return made


def _widest(of: Any) -> Any:
    plain = types.unliteral(of)
    return types.int64 if isinstance(plain, types.Integer) and plain.signed else plain


#: A kernel that other kernels call, and never Python.
inner_kernel = partial(kernel, python=False)


def compiled_before(kernel_name: str) -> bool:
    """Whether a kernel of these sources is in the cache on disk.

    Parameters
    ----------
    kernel_name : str
        "package.module.function".
    """
    module, _, function = kernel_name.rpartition(".")
    stem = f"{module.rpartition('.')[2]}.{function}"
    return any((_cache_root() / _digest(module)).rglob(f"{stem}-*.nbi"))


def _cache_root() -> Path:
    """Folder of all compiled kernels: `NUMBA_CACHE_DIR` where it is set, else the user's cache folder."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("netsim-recommender", appauthor=False) / "kernels"


@cache
def _digest(module: str) -> str:
    """Digest of a module's source and of all that it imports, directly or not, of its own package and `algorithms`."""
    digest = hashlib.blake2b(digest_size=10)
    for name, path in sorted(_sources(module).items()):
        digest.update(name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(module: str) -> dict[str, Path]:
    """Files that a module's kernels can depend on, by module name."""
    packages = {package: sys.modules.get(package) for package in (__name__.partition(".")[0], module.partition(".")[0])}
    roots = {package: getattr(loaded, "__path__", []) for package, loaded in packages.items()}
    found: dict[str, Path] = {}
    wanted = [module]
    while wanted:
        name = wanted.pop()
        package, *parts = name.split(".")
        if name in found:
            continue
        for root in roots.get(package, []):
            place = Path(root, *parts)
            path = next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
            if path is not None:
                found[name] = path
                wanted += _imported(path)
    return found


def _imported(path: Path) -> Iterator[str]:
    """Names of modules, and of what may be modules, that a source imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:  # relative imports are not in this house
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
