"""Notebooks explore: what they show is written elsewhere. `make test` runs them (nbmake)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_defines_nothing_of_substance(path):
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    found = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, defined)]
    assert not found, f"{path.name} defines something in line {found[0].lineno}; move it to a package"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_with_text_and_code(path):
    jupytext = pytest.importorskip("jupytext", reason='needs the extra "notebooks"; `make test` installs it')
    cells = jupytext.read(path).cells
    assert cells[0].cell_type == "markdown"
    assert cells[0].source.startswith("# ")
    assert any(cell.cell_type == "code" for cell in cells)


def test_make_runs_every_notebook():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    test = makefile[makefile.index("\ntest:") :].split("\n\n")[0]
    assert "$(RUN_NOTEBOOKS)" in test
    assert "$(wildcard notebooks/*.py)" in makefile
