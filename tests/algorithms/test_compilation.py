import importlib
import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from algorithms import compilation
from algorithms.compilation import inner_kernel, kernel

ROOT = Path(__file__).resolve().parents[2]
digest = compilation._digest.__wrapped__  # without its memory of sources already read


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package on disk, imported: `a` imports `b` and a subpackage; nothing imports `apart`."""
    folder = tmp_path / "tmp_kernels"
    (folder / "inner").mkdir(parents=True)
    sources = {
        "__init__.py": "",
        "a.py": "from algorithms import purposes\nfrom tmp_kernels.b import x\n",
        "b.py": "def f():\n    import tmp_kernels.inner\nx = 1\n",
        "inner/__init__.py": "from tmp_kernels.inner import c\n",
        "inner/c.py": "from tmp_kernels import a\n",
        "apart.py": "x = 1\n",
    }
    for name, source in sources.items():
        (folder / name).write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tmp_kernels", raising=False)
    __import__("tmp_kernels")
    yield folder
    del sys.modules["tmp_kernels"]


@pytest.mark.parametrize("name", ["a.py", "b.py", "inner/__init__.py", "inner/c.py"])
def test_the_digest_changes_with_each_source_that_the_module_imports(package, name):
    before = digest("tmp_kernels.a")
    assert digest("tmp_kernels.a") == before
    source = (package / name).read_text()
    (package / name).write_text(source + "y = 2\n")
    assert digest("tmp_kernels.a") != before
    (package / name).write_text(source)
    assert digest("tmp_kernels.a") == before


def test_the_digest_does_not_change_with_what_the_module_does_not_import(package):
    before = digest("tmp_kernels.a")
    (package / "apart.py").write_text("x = 2\n")
    assert digest("tmp_kernels.a") == before


def test_the_digest_changes_with_the_name_of_a_source(package):
    before = digest("tmp_kernels.a")
    (package / "inner" / "c.py").rename(package / "inner" / "a.py")
    assert digest("tmp_kernels.a") != before


def test_the_digest_reaches_into_algorithms(package):
    assert {"algorithms.purposes", "tmp_kernels.inner.c"} <= set(compilation._sources("tmp_kernels.a"))


def test_the_node_behaviour_depends_on_its_parts_and_not_on_what_it_runs_in():
    importlib.import_module("netsim.engines.compiled.loop")
    sources = set(compilation._sources("netsim.engines.compiled.loop"))
    assert {
        "netsim.behaviour",
        "netsim.state",
        "netsim.messages",
        "algorithms.updates",
        "algorithms.purposes",
    } <= sources
    assert not {"netsim.world", "netsim.simulation", "netsim.probes", "algorithms.ratings"} & sources


def test_the_setting_of_numba_is_restored(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "before")

    @kernel
    def double(x):
        return 2 * x

    assert numba.config.CACHE_DIR == "before"
    assert compilation._digest("algorithms") != "before"


def test_the_setting_of_numba_is_restored_after_an_error(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "before")
    with pytest.raises(Exception):  # noqa: B017, PT011 -- whatever numba raises
        kernel(abs)
    assert numba.config.CACHE_DIR == "before"


def test_numba_cache_dir_is_respected(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compilation._cache_root() == tmp_path
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert compilation._cache_root().parts[-2:] == ("netsim-recommender", "kernels")


def test_machine_code_is_kept_under_the_digest_and_renewed_when_a_called_kernel_changes(tmp_path):
    folder = tmp_path / "sources" / "tmp_kernels"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    head = "from algorithms.compilation import kernel\n"
    (folder / "outer.py").write_text(head + "from tmp_kernels.called import f\n@kernel\ndef g(x):\n    return f(x)\n")
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "sources")]),
    }
    for n, result in enumerate(("11", "12"), start=1):
        (folder / "called.py").write_text(f"{head}@kernel\ndef f(x):\n    return x + {result}\n")
        code = "from tmp_kernels.outer import g; print(g(0))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == result
        assert len(list((tmp_path / "cache").iterdir())) == 2 * n  # one folder a module


def test_a_kernel_is_compiled_once_for_all_constants_and_widths_of_integers():
    @inner_kernel
    def called(a, b, flag):
        return a * b if flag else a

    @kernel
    def caller(small, large, out):
        out[0] = called(small[0], 2, True)
        out[1] = called(large[0], large[1], False)
        out[2] = called(3, small[1], out[0] > 5)

    out = np.zeros(3, dtype=np.int64)
    caller(np.array([2**30, 7], dtype=np.int32), np.array([2**40, 2**41]), out)
    assert out.tolist() == [2**31, 2**40, 21]
    assert len(called.signatures) == 1
