"""How the network spoils messages beyond a fixed probability: losses that come in bursts, and messages held back."""

import math
from dataclasses import KW_ONLY, dataclass

from algorithms.distributions import Distribution, as_distribution
from netsim.topology._checks import as_number

__all__ = ["GilbertElliott", "Reordering"]


@dataclass(frozen=True)
class GilbertElliott:
    """Losses in bursts: each ordered pair of nodes has a channel that is good or bad, and changes by chance in time.

    The channel is a Markov chain in continuous time. Times in the bad state are exponential with mean `burst_length`,
    those in the good state with mean `mean_gap`. A message is dropped with the loss probability of the state that
    the channel is in when it is sent. By default all are dropped in the bad state and none in the good one.

    Parameters
    ----------
    mean_loss : float
        Share of all messages that is lost in the long run, between `loss_good` and `loss_bad`, both excluded.
    burst_length : float
        Mean time in the bad state in seconds, > 0.
    loss_good, loss_bad : float
        Loss probability in the good and in the bad state, 0 <= loss_good < loss_bad <= 1.

    Raises
    ------
    ValueError
        If an argument is out of range.

    References
    ----------
    E. N. Gilbert, "Capacity of a burst-noise channel", Bell System Technical Journal 39 (1960).
    E. O. Elliott, "Estimates of error rates for codes on burst-noise channels", Bell System Technical Journal 42
    (1963). They count in symbols; here the chain runs in seconds. With mean loss pi and burst length L, the rate from
    bad to good is r = 1 / L and that from good to bad r * pi / (1 - pi), where the bad state drops everything.
    """

    mean_loss: float
    burst_length: float
    _: KW_ONLY
    loss_good: float = 0.0
    loss_bad: float = 1.0

    def __post_init__(self) -> None:
        good, bad = as_number(self.loss_good), as_number(self.loss_bad)
        if not 0 <= good <= 1:
            raise ValueError(f"GilbertElliott: loss_good must be in [0, 1), got {self.loss_good!r}; pass a fraction")
        if not good < bad <= 1:
            raise ValueError(
                f"GilbertElliott: loss_bad must be above loss_good, which is {good:g}, and at most 1, "
                f"got {self.loss_bad!r}; pass a fraction, for instance 1.0"
            )
        mean = as_number(self.mean_loss)
        if not good < mean < bad:
            raise ValueError(
                f"GilbertElliott: mean_loss must lie between loss_good and loss_bad, {good:g} and {bad:g}, both "
                f"excluded, got {self.mean_loss!r}; pass a fraction between them, or a plain number as the loss of "
                "the world where it never changes"
            )
        burst = as_number(self.burst_length)
        if not 0 < burst < math.inf:
            raise ValueError(
                f"GilbertElliott: burst_length must be a finite number of seconds > 0, got {self.burst_length!r}; "
                "pass the mean time that a channel stays bad"
            )
        numbers = {"loss_good": good, "loss_bad": bad, "mean_loss": mean, "burst_length": burst}
        for name, value in numbers.items():
            object.__setattr__(self, name, value)
        if not 0 < self.bad_share < 1 or not 0 < self.mean_gap < math.inf:
            raise ValueError(
                f"GilbertElliott: mean_loss is too close to {'loss_good' if self.bad_share < 0.5 else 'loss_bad'} "
                f"for float64, got {mean!r}; pass a plain number as the loss of the world instead"
            )

    @property
    def bad_share(self) -> float:
        """Share of time that a channel is bad, in (0, 1)."""
        return (self.mean_loss - self.loss_good) / (self.loss_bad - self.loss_good)

    @property
    def mean_gap(self) -> float:
        """Mean time in the good state, in seconds."""
        return self.burst_length * (1 - self.bad_share) / self.bad_share


@dataclass(frozen=True)
class Reordering:
    """Some messages are held back for a while longer, so that later ones overtake them.

    Network emulators reorder in the same way, by giving a share of the messages another delay than the rest.

    Parameters
    ----------
    probability : float
        That a message is held back, in [0, 1].
    extra : float or Distribution
        Seconds by which its delay grows, >= 0.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """

    probability: float
    extra: Distribution | float

    def __post_init__(self) -> None:
        probability = as_number(self.probability)
        if not 0 <= probability <= 1:
            raise ValueError(
                f"Reordering: probability must be in [0, 1], got {self.probability!r}; "
                "pass a fraction, not a percentage"
            )
        object.__setattr__(self, "probability", probability)
        object.__setattr__(self, "extra", as_distribution(self.extra, name="Reordering: extra", least=0.0))
