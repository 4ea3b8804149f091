"""What README.md shows runs: its Python as it stands, its commands with their arguments, its links."""

import importlib
import os
import re
import shlex
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from netsim import Result
from scenarios import study

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MAKEFILE = ROOT / "Makefile"
DATA = ROOT.parent / "shared" / "data" / "ml-100k"
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "shell", "console", "zsh"}


def blocks(languages):
    """Text of the fenced blocks of README.md in these languages, each with the number of its first line."""
    text = README.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start("text")), match["text"])
        for match in FENCE.finditer(text)
        if match["language"] in languages
    ]


def commands():
    """Commands in shell blocks and in `code` of README.md, and in the recipes of the Makefile."""
    text = README.read_text(encoding="utf-8")
    lines = [line for _, block in blocks(SHELL) for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    lines += [line for line in MAKEFILE.read_text(encoding="utf-8").splitlines() if line.startswith("\t")]
    return [line.strip().removeprefix("$ ").split("  #")[0] for line in lines]


def scenario_commands():
    found = [re.search(r"-m (scenarios\.[a-z][\w.]*)([^|;&>]*)", line) for line in commands()]
    return sorted({(match[1], match[2].strip()) for match in found if match})


def make_targets():
    found = [re.match(r"(?:\w+=\S+ )*make((?: [\w=./-]+)+)$", line) for line in commands()]
    return sorted({word for match in found if match for word in match[1].split() if "=" not in word and word[0] != "-"})


def test_python_blocks_run_in_the_order_of_the_text(tmp_path, monkeypatch):
    found = blocks({"python", "py"})
    assert found, "README.md shows no Python"
    if any("movielens_100k" in code for _, code in found) and "MOVIELENS_100K" not in os.environ:
        if not (DATA / "u.data").is_file():
            pytest.skip(
                f"needs MovieLens 100K in {DATA} or MOVIELENS_100K, which may not be passed on with the project"
            )
        monkeypatch.setenv("MOVIELENS_100K", str(DATA))
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    names = {"__name__": "readme"}
    try:
        for line, code in found:
            # Empty lines first, so that a traceback shows the line of README.md.
            exec(compile("\n" * line + code, README, "exec"), names)
        assert any("plots.convergence(" in code for _, code in found)
        assert plt.get_fignums(), "plots.convergence drew no figure"
        assert all(plt.figure(number).axes[0].lines for number in plt.get_fignums())
    finally:
        plt.close("all")
    result = names["result"]
    assert isinstance(result, Result)
    assert result.time == result.until
    assert not result.interrupted


def test_readme_shows_commands():
    assert any(
        "scenarios." in line or line.startswith("make ") for _, block in blocks(SHELL) for line in block.splitlines()
    )


@pytest.mark.parametrize(("module", "arguments"), scenario_commands())
def test_scenario_commands_exist_and_take_their_arguments(module, arguments, monkeypatch, capsys):
    parsed = []
    monkeypatch.setattr(study, "main", lambda made, run, argv=None: parsed.append(made.parse_args(argv)) or 0)
    status = None
    try:
        status = importlib.import_module(module).main(shlex.split(arguments))
    except SystemExit as end:  # --help, or arguments that it does not take
        status = end.code
    assert status == 0, capsys.readouterr().err
    assert parsed or "--help" in arguments


@pytest.mark.parametrize("target", make_targets())
def test_make_targets_exist_and_say_what_they_do(target):
    assert re.search(rf"^{target}:.*## \S", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)


def test_files_that_the_makefile_copies_to_have_a_folder():
    for line in MAKEFILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("\tcp "):
            folder = (ROOT / line.split()[-1]).parent
            assert folder.is_dir(), f"`{line.strip()}` fails: there is no {folder.relative_to(ROOT)}"


def test_links_to_files_of_the_project_lead_somewhere():
    text = FENCE.sub("", README.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s#]+)[^)]*\)", text) + re.findall(r'(?:src|href)="([^"#]+)"', text)
    for link in links:
        if not re.match(r"[a-z]+:", link):
            assert (ROOT / link).exists(), f"README.md links to {link}, which is not there"
