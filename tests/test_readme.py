"""What README.md and the pages show is true: Python and commands run, links and places in the code are there."""

import importlib
import re
import shlex
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from netsim import Result
from scenarios import cli, study

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MAKEFILE = ROOT / "Makefile"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = {"sh", "bash", "shell", "console", "zsh"}


def name(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page, languages):
    """Text of the fenced blocks of a page in these languages, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start("text")), match["text"])
        for match in FENCE.finditer(text)
        if match["language"] in languages
    ]


def commands():
    """Commands in shell blocks and in `code` of the pages, and in the recipes of the Makefile."""
    lines = [line for page in PAGES for line in shell_lines(page)]
    for page in PAGES:
        lines += re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    lines += [line for line in MAKEFILE.read_text(encoding="utf-8").splitlines() if line.startswith("\t")]
    return [without_comment(line) for line in lines]


def shell_lines(page):
    return [line for _, block in blocks(page, SHELL) for line in block.replace("\\\n", " ").splitlines()]


def without_comment(line):
    return re.split(r"\s\s#", line.strip().removeprefix("$ "))[0]


def scenario_commands():
    found = [re.search(r"-m (scenarios\.[a-z][\w.]*)([^|;&>]*)", line) for line in commands()]
    return sorted({(match[1], match[2].strip()) for match in found if match})


def make_targets():
    found = [re.match(r"(?:\w+=\S+ )*make((?: [\w=./-]+)+)$", line) for line in commands()]
    return sorted({word for match in found if match for word in match[1].split() if "=" not in word and word[0] != "-"})


# own-rules.md has its test in tests/netsim/test_rules.py.
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "own-rules.md" and blocks(page, {"python", "py"})], ids=name
)
def test_python_blocks_run_in_the_order_of_the_text(page, tmp_path, monkeypatch, capsys):
    names = run_python(page, tmp_path, monkeypatch)
    printed = capsys.readouterr().out.splitlines()
    for _, code in blocks(page, {"python", "py"}):
        for told in re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE):
            pattern = re.escape(told).replace(r"\.\.\.", ".*")
            assert any(re.fullmatch(pattern, line) for line in printed), f"{name(page)} says that it prints {told!r}"
    if page == README:
        result = names["result"]
        assert isinstance(result, Result)
        assert result.time == result.until
        assert not result.interrupted


def run_python(page, folder, monkeypatch):
    """Run the Python blocks of a page, in a folder; returns their names."""
    monkeypatch.chdir(folder)
    mpl.use("Agg")
    names = {"__name__": page.stem}
    draws = False
    try:
        for line, code in blocks(page, {"python", "py"}):
            # Empty lines first, so that a traceback shows the line of the page.
            exec(compile("\n" * line + code, page, "exec"), names)
            draws |= "plots." in code.replace("import plots", "")
        assert bool(plt.get_fignums()) == draws
        assert all(plt.figure(number).axes[0].has_data() for number in plt.get_fignums())
    finally:
        plt.close("all")
    return names


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "results.md"], ids=name)
def test_console_commands_run_in_the_order_of_the_text(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = [without_comment(line) for line in shell_lines(page) if line.startswith("netsim ")]
    assert any(line.startswith("netsim compare ") for line in lines)
    for line in lines:
        assert cli.main(shlex.split(line)[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
        named = re.findall(r" --(?:out|csv) (\S+)", line)
        assert all(Path(written).exists() for written in named), line


def test_files_of_a_result_have_their_columns_in_the_page(tmp_path, monkeypatch):
    page = ROOT / "docs" / "results.md"
    text = page.read_text(encoding="utf-8")
    result = run_python(page, tmp_path, monkeypatch)["result"]
    for file in sorted(Path("out/first").iterdir()):
        row = re.search(rf"^\| `{re.escape(file.name)}` \| (.*) \|$", text, re.MULTILINE)
        assert row, f"{file.name} is not in the table of files"
        if file.suffix == ".csv" and file.stem != "probes":
            columns = list(getattr(result, file.stem).columns)
            assert re.findall(r"`(\w+)`", row[1]) == columns, file.name


def test_readme_shows_commands():
    assert any("scenarios." in line or line.startswith("make ") for line in shell_lines(README))


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


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name)
def test_links_to_files_of_the_project_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, section = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name(page)} links to {link}, which is not there"
        if section:
            heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert section in anchors, f"{name(page)} links to {link}, which has no such section"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_places_in_the_code_are_there(page):
    """Each `folder/file.py`, and each name after it, as in `folder/file.py: name, Class.method`."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for path, names in re.findall(
        r"`((?:algorithms|netsim|scenarios|tests|benchmarks)/[\w/]+\.py)(?:: ([\w., ]+))?`", text
    ):
        file = ROOT / path
        assert file.is_file(), f"{name(page)} names {path}, which is not there"
        for word in re.findall(r"\w+", names):
            assert re.search(rf"\b{word}\b", file.read_text(encoding="utf-8")), f"{name(page)}: {path} has no {word}"
