"""Names of runs in a figure: what tells them apart."""

from collections.abc import Sequence
from typing import Any

from netsim.result import Result

__all__ = ["labels"]

_LONGEST = 60


def labels(results: Sequence[Result]) -> list[str]:
    """Label of each run: the arguments in which runs differ, as in "loss=0.1, seed=2".

    Where that would take more than 60 characters, or does not tell all runs apart, runs are numbered: "run 1".

    Parameters
    ----------
    results : sequence of Result

    Returns
    -------
    list of str
    """
    facts = [_facts(result) for result in results]
    differing = [name for name in facts[0] if len({each[name] for each in facts}) > 1]
    made = [", ".join(each[name] for name in differing) for each in facts]
    if "ratings" in differing or len(set(made)) < len(made) or max(map(len, made)) > _LONGEST:
        return [f"run {number}" for number in range(1, len(results) + 1)]
    return made


def _facts(result: Result) -> dict[str, str]:
    """What a run was made from, as short text by name of the argument."""
    plain = dict(result.configuration)
    ratings, topology, learning = plain.pop("ratings"), plain.pop("topology"), plain.pop("learning")
    facts = {name: f"{name}={_text(value)}" for name, value in (plain | learning).items()}
    facts |= {"ratings": ratings["sha256"], "topology": topology["description"]}
    return facts | {"seed": f"seed={result.seed}", "until": f"until={result.until:g}"}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        fields = dict(value)
        name = fields.pop("type", None) or fields.pop("distribution", "")
        return f"{name}({', '.join(f'{field}={_text(each)}' for field, each in fields.items())})"
    return str(value)
