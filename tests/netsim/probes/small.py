"""A world of one user and one router of which every message can be followed by hand."""

from algorithms.ratings import Ratings
from netsim import Learning, Periodic, World

__all__ = ["EACH_SECOND", "RANK", "at", "one_user"]

EACH_SECOND = Periodic(1.0, phase=0.0)
RANK = 2


def one_user(**changes):
    """User "a" rated items 0 and 1 of three that one router hosts; 0.25 s a message.

    He broadcasts at 0, 1, ...; the first request arrives at 0.5, the reply to it at 0.75. The router broadcasts its
    three items at 0.125, 1.125, ...
    """
    ratings = Ratings.from_arrays(["a", "a"], [0, 1], [2.0, 4.0], item_ids=[0, 1, 2], scale=(1, 5))
    plain = World(
        ratings,
        routers=1,
        user_broadcast=EACH_SECOND,
        router_broadcast=Periodic(1.0, phase=0.125),
        delay=0.25,
        minimum_delay=0.0,
        learning=Learning(rank=RANK),
    )
    return plain.replace(**changes)


def at(time, method, *arguments, **keywords):
    """A script that calls a method of the simulation at a time in seconds."""

    def script(simulation):
        yield simulation.env.timeout(time)
        getattr(simulation, method)(*arguments, **keywords)

    return script
