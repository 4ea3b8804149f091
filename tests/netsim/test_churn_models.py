import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from algorithms.distributions import (
    Constant,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    Normal,
    Pareto,
    Uniform,
    Weibull,
)
from netsim.churn import Checkpoint, Diurnal, Sessions


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Diurnal(1, 0), "Diurnal: amplitude must be in [0, 1), got 1; pass a fraction"),
        (lambda: Diurnal(-0.1, 0), "Diurnal: amplitude must be in [0, 1), got -0.1"),
        (lambda: Diurnal("0.5", 0), "Diurnal: amplitude must be in [0, 1), got '0.5'"),
        (lambda: Diurnal(0.5, 86400), "Diurnal: peak must be a second of the day, in [0, 86400), got 86400"),
        (lambda: Diurnal(0.5, -1), "Diurnal: peak must be a second of the day, in [0, 86400), got -1"),
        (lambda: Diurnal(0.5, 60, 60.0), "Diurnal: peak must be a second of the day, in [0, 60), got 60"),
        (lambda: Diurnal(0.5, 0, 0), "Diurnal: day must be a finite number of seconds > 0, got 0"),
        (lambda: Diurnal(0.5, 0, math.inf), "Diurnal: day must be a finite number of seconds > 0, got inf"),
        (lambda: Checkpoint(0), "Checkpoint: interval must be a finite number of seconds > 0, got 0"),
        (lambda: Checkpoint(math.inf), "Checkpoint: interval must be a finite number of seconds > 0, got inf"),
        (lambda: Checkpoint(True), "Checkpoint: interval must be a finite number of seconds > 0, got True"),
        (lambda: Checkpoint("600"), "Checkpoint: interval must be a finite number of seconds > 0, got '600'"),
        (lambda: Sessions(-1, 5), "Sessions: online must not give negative lengths, got -1, which reaches -1"),
        (lambda: Sessions(5, Uniform(-1, 5)), "Sessions: offline must not give negative lengths, got Uniform"),
        (
            lambda: Sessions(Normal(100, 1), 5),
            "Sessions: online must not give negative lengths, got Normal(mean=100.0, standard_deviation=1.0), which "
            "reaches -inf; use for instance LogNormal or Weibull",
        ),
        (lambda: Sessions(0, 5), "Sessions: online must give lengths > 0 seconds, got 0, which is always 0"),
        (lambda: Sessions(5, Constant(0)), "Sessions: offline must give lengths > 0 seconds, got Constant(value=0.0)"),
        (lambda: Sessions(5, Uniform(0, 0)), "Sessions: offline must give lengths > 0 seconds"),
        (lambda: Sessions(Empirical([0, 0]), 5), "Sessions: online must give lengths > 0 seconds"),
        (lambda: Sessions("long", 5), "Sessions: online must be a finite number or a distribution"),
        (lambda: Sessions(5, None), "Sessions: offline must be a finite number or a distribution"),
        (lambda: Sessions(5, 5, correlation=1), "Sessions: correlation must be in [0, 1), got 1; pass for instance"),
        (lambda: Sessions(5, 5, correlation=-0.2), "Sessions: correlation must be in [0, 1), got -0.2"),
        (
            lambda: Sessions(Gamma(2, 3), 5, correlation=0.5),
            "Sessions: online must be sampled by inversion where correlation > 0, got Gamma(shape=2.0, scale=3.0); use "
            "Weibull, LogNormal or Empirical, or pass correlation=0",
        ),
        (
            lambda: Sessions(5, Gamma(2, 3), correlation=0.5),
            "Sessions: offline must be sampled by inversion where correlation > 0",
        ),
        (lambda: Sessions(5, 5, diurnal=0.5), "Sessions: diurnal must be Diurnal or None, got 0.5"),
        (
            lambda: Sessions(5, 5, start="on"),
            "Sessions: start must be one of 'stationary', 'online', 'offline', got 'on'",
        ),
        (
            lambda: Sessions(Pareto(2, 1), 5),
            "Sessions: online must have a finite mean for start='stationary', got Pareto(minimum=2.0, shape=1.0); use "
            "another distribution (Pareto with shape > 1), or pass start='online' or start='offline'",
        ),
        (lambda: Sessions(5, Pareto(2, 0.5)), "Sessions: offline must have a finite mean for start='stationary'"),
    ],
)
def test_errors_name_class_argument_value_and_mend(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_numbers_of_seconds_become_distributions():
    sessions = Sessions(60, np.float64(30))
    assert sessions.online == Constant(60)
    assert sessions.offline == Constant(30)
    assert (sessions.correlation, sessions.diurnal, sessions.start) == (0, None, "stationary")


def test_models_are_data():
    sessions = Sessions(Weibull(246, 0.67), LogNormal(60, 1), correlation=0.5, diurnal=Diurnal(0.5, 72000))
    same = Sessions(
        online=Weibull(246, 0.67), offline=LogNormal(60, 1), correlation=0.5, diurnal=Diurnal(0.5, 72000.0, 86400)
    )
    assert sessions == same != Sessions(Weibull(246, 0.67), LogNormal(60, 1))
    assert len({sessions, same, Checkpoint(600), Checkpoint(600.0), Diurnal(0.5, 1)}) == 3
    for each, name in ((sessions, "start"), (Checkpoint(1), "interval"), (Diurnal(0, 0), "day")):
        with pytest.raises(FrozenInstanceError):
            setattr(each, name, 1)
    with pytest.raises(TypeError):
        Sessions(1, 1, 0.5)


@pytest.mark.parametrize(
    ("online", "offline", "availability"),
    [
        (30, 10, 0.75),
        (Exponential(20), Uniform(0, 20), 2 / 3),
        (Gamma(2, 5), Empirical([10, 20, 60]), 0.25),
        (Weibull(1, 0.5), Pareto(2, 2), 1 / 3),
        (LogNormal(1, math.sqrt(2 * math.log(3))), Normal(1, 0), 0.75),
        (1e-300, 1e300, 0),
    ],
)
def test_availability_is_the_share_of_the_mean_lengths(online, offline, availability):
    assert Sessions(online, offline).availability == pytest.approx(availability)


def test_availability_where_means_are_infinite():
    endless = Pareto(1, 0.9)
    assert Sessions(endless, 5, start="online").availability == 1
    assert Sessions(5, endless, start="offline").availability == 0
    assert math.isnan(Sessions(endless, endless, start="online").availability)


def test_inversion_is_asked_only_where_sessions_correlate():
    assert Sessions(Gamma(2, 3), Gamma(2, 3)).correlation == 0
    for lengths in (Exponential(3), Weibull(3, 0.5), Pareto(1, 2), Empirical([1, 2]), Uniform(0, 1), Constant(1)):
        assert Sessions(lengths, LogNormal(1, 1), correlation=0.9).correlation == 0.9
