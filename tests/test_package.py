"""Public names, their docstrings, the layer rule, and what the package says of itself."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import algorithms
import netsim
import scenarios

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = sorted(
    ".".join(file.parent.relative_to(ROOT).parts)
    for top in ("algorithms", "netsim", "scenarios")
    for file in (ROOT / top).rglob("__init__.py")
)
# What a package must not import, by the layer rule.
FORBIDDEN = {
    "algorithms": {"netsim", "scenarios", "simpy", "networkx"},
    "netsim": {"scenarios"},
    "scenarios": set(),
}
SECTION = re.compile(r"^(?P<name>[A-Z][A-Za-z ]+)\n-{3,}$", re.MULTILINE)


def modules(package):
    below = pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    return [package.__name__, *(module.name for module in below)]


def public(names):
    """Functions and classes that the modules name in `__all__`, once each, as (module, name, object)."""
    seen = {}
    for module_name in names:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            kernel = hasattr(value, "py_func")
            own = getattr(value, "py_func", value)
            if inspect.isfunction(own) or (inspect.isclass(own) and own.__module__.split(".")[0] in FORBIDDEN):
                seen.setdefault(id(own), (module_name, name, own, kernel))
    return list(seen.values())


def parameters(of):
    """Names of the parameters that a caller passes; none for errors, protocols and views, which nobody makes."""
    made_here = of is netsim.View or getattr(of, "_is_protocol", False)
    if made_here or (inspect.isclass(of) and issubclass(of, BaseException)):
        return []
    return [name for name in inspect.signature(of).parameters if name not in ("args", "kwargs") and name[0] != "_"]


def documented(docstring):
    """Names under Parameters and Attributes; None without such a section."""
    found = list(SECTION.finditer(docstring))
    if not any(match["name"] in ("Parameters", "Attributes") for match in found):
        return None
    names = []
    for match, following in zip(found, [*found[1:], None], strict=True):
        if match["name"] not in ("Parameters", "Attributes"):
            continue
        body = docstring[match.end() : following.start() if following else None]
        for line in body.splitlines():
            if line and not line[0].isspace():
                names += [name.strip(" *") for name in line.split(" : ")[0].split(",")]
    return names


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_exists_and_has_a_docstring(name):
    package = importlib.import_module(name)
    assert (package.__doc__ or "").strip()
    exported = getattr(package, "__all__", [])
    assert len(set(exported)) == len(exported), "a name stands twice"
    for exported_name in exported:
        value = getattr(package, exported_name)
        if inspect.isfunction(value) or inspect.isclass(value) or inspect.ismodule(value):
            assert (value.__doc__ or "").strip(), f"{name}.{exported_name} has no docstring"
            # A dataclass without a docstring is given its signature as one.
            assert not value.__doc__.startswith(f"{exported_name}("), f"{name}.{exported_name} has no docstring"


@pytest.mark.parametrize("name", [module for top in (algorithms, netsim, scenarios) for module in modules(top)])
def test_every_module_says_what_it_is_and_exports_what_it_has(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    for exported in getattr(module, "__all__", ()):
        assert hasattr(module, exported), f"{name}.__all__ names {exported}, which is not there"


def undocumented(found):
    """What is wrong with the docstrings of functions and classes, one line each."""
    offenders = []
    for module, name, value, kernel in found:
        docstring = inspect.getdoc(value) or ""
        taken, told = parameters(value), documented(docstring)
        if not docstring:
            offenders.append(f"{module}.{name}: no docstring")
        elif re.search(r"\bas in `", docstring, re.IGNORECASE):
            continue  # "Parameters as in `simulate`"
        elif told is None and taken and not kernel:
            offenders.append(f"{module}.{name}({', '.join(taken)}): no Parameters")
        elif told is not None and set(taken) - set(told):
            offenders.append(f"{module}.{name}: Parameters leave out {', '.join(sorted(set(taken) - set(told)))}")
    return offenders


def test_everything_in_netsim_documents_its_parameters():
    assert undocumented(public(["netsim"])) == []


def test_everything_in_algorithms_documents_its_parameters():
    # Kernels, which only other kernels call, may say it in a sentence.
    assert undocumented(public(modules(algorithms))) == []


def test_no_docstring_documents_a_parameter_that_is_not_there():
    offenders = []
    for module, name, value, _ in public(["netsim", *modules(algorithms)]):
        docstring = inspect.getdoc(value) or ""
        told = documented(docstring)
        if told is None or inspect.isclass(value):  # a class documents attributes as well
            continue
        gone = set(told) - set(inspect.signature(value).parameters)
        offenders += [f"{module}.{name}: {parameter}" for parameter in sorted(gone)]
    assert offenders == []


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_layers_import_only_what_stands_below_them(layer):
    for file in sorted((ROOT / layer).rglob("*.py")):
        imported = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file} imports relatively"
                imported.add(str(node.module).split(".")[0])
        assert not imported & FORBIDDEN[layer], f"{file.relative_to(ROOT)} imports what it must not know"
        assert "tests" not in imported


def test_contracts_of_import_linter_are_kept():
    pytest.importorskip("importlinter", reason="import-linter is not installed; `make lint` runs it")
    done = subprocess.run(
        [sys.executable, "-c", "import importlinter.cli as c, sys; sys.exit(c.lint_imports(no_cache=True))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    assert f"{len(contracts)} kept, 0 broken" in done.stdout


def test_pyproject_lists_the_packages_on_disk():
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == PACKAGES


def test_no_module_stands_in_a_folder_that_is_not_a_package():
    for top in FORBIDDEN:
        for file in (ROOT / top).rglob("*.py"):
            assert (file.parent / "__init__.py").is_file(), f"{file.parent} has no __init__.py"


def test_typed_packages_carry_their_marker():
    for package, files in PROJECT["tool"]["setuptools"]["package-data"].items():
        for file in files:
            assert (ROOT / package / file).is_file()


def test_changelog_and_installed_package_have_the_version_of_pyproject():
    own = PROJECT["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(own)}\]", changelog, re.MULTILINE)
    assert version(PROJECT["project"]["name"]) == own


def test_every_imported_package_is_a_declared_dependency():
    declared = {re.split(r"[<>=~! ;\[]", line)[0] for line in PROJECT["project"]["dependencies"]}
    imported = set()
    for top in FORBIDDEN:
        for file in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add(str(node.module).split(".")[0])
    assert imported - set(FORBIDDEN) - sys.stdlib_module_names <= declared
