import pytest

from algorithms.synthetic import low_rank
from netsim import Learning, LogNormal, World, complete, ring, simulate, star
from netsim.plots.labels import labels

DATA = low_rank(6, 5, rank=2, missing=0.4, seed=1)
WORLD = World(DATA.train, complete(3), learning=Learning(rank=2))


def run(seed=1, until=1.0, **changes):
    return simulate(WORLD.replace(**changes), until=until, seed=seed, engine="events")


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"loss": 0.1}, {}, ["loss=0.1", "loss=0"]),
        ({"seed": 1}, {"seed": 2}, ["seed=1", "seed=2"]),
        ({"until": 1.5}, {}, ["until=1.5", "until=1"]),
        ({"topology": ring(4)}, {"topology": star(4)}, ["ring(n=4, latency=0.01)", "star(n=4, latency=0.01)"]),
        ({"learning": Learning(rank=3)}, {}, ["rank=3", "rank=2"]),
        ({"loss": 0.5, "seed": 3}, {}, ["loss=0.5, seed=3", "loss=0, seed=1"]),
    ],
)
def test_runs_are_called_by_what_differs(one, other, expected):
    assert labels([run(**one), run(**other)]) == expected


def test_a_distribution_says_its_parameters():
    told = labels([run(delay=LogNormal(median=0.07, sigma=0.8)), run(delay=LogNormal(median=0.2, sigma=0.8))])
    assert all(part in each for part, each in zip(("0.07", "0.2"), told, strict=True))


def test_runs_that_are_the_same_are_numbered():
    assert labels([run(), run(), run(loss=0.1)]) == ["run 1", "run 2", "run 3"]


def test_runs_of_other_ratings_are_numbered():
    other = low_rank(6, 5, rank=2, missing=0.4, seed=2)
    assert labels([run(), run(ratings=other.train)]) == ["run 1", "run 2"]


def test_runs_that_would_need_a_long_label_are_numbered():
    changes = {"loss": 0.1, "user_broadcast": 3.0, "router_broadcast": 4.0, "access": 0.5, "request_timeout": 7.0}
    assert labels([run(**changes), run()]) == ["run 1", "run 2"]
