"""docs/data.md: its example runs and prints what it says, and it names every loader."""

import re
from pathlib import Path

from algorithms import datasets

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "data.md").read_text(encoding="utf-8")


def test_example_prints_what_its_comments_say(capsys):
    code = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    exec(compile(code, "docs/data.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    comments = re.findall(r"print\(.*?\)  # (.*)", code)
    assert len(comments) == 2
    for comment, line in zip(comments, printed, strict=False):
        assert re.fullmatch(re.escape(comment).replace(r"\.\.\.", ".*"), line), line


def test_every_loader_is_named():
    missing = [name for name in datasets.__all__ if f"`{name}" not in PAGE and f" {name}(" not in PAGE]
    assert not missing
