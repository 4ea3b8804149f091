"""Names of runs in a figure: what tells them apart."""

from collections.abc import Sequence
from dataclasses import fields

from netsim.result import Result
from netsim.topology import Underlay
from netsim.world import World

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
    world = result.world
    facts = {name: f"{name}={_text(getattr(world, name))}" for name in _arguments(World)}
    facts["ratings"] = world.ratings.digest
    assert isinstance(world.topology, Underlay)
    facts["topology"] = world.topology.description
    del facts["learning"]
    learning = world.learning
    facts |= {name: f"{name}={_text(getattr(learning, name))}" for name in _arguments(type(learning))}
    return facts | {"seed": f"seed={result.seed}", "until": f"until={result.until:g}"}


def _arguments(kind: type) -> list[str]:
    return [field.name for field in fields(kind) if field.init]


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(getattr(value, "__name__", value))
