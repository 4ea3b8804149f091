import math
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from algorithms.distributions import Constant, Exponential, Normal
from netsim.loss import GilbertElliott, Reordering


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GilbertElliott(0, 3), "GilbertElliott: mean_loss must lie between loss_good and loss_bad, 0 and 1"),
        (lambda: GilbertElliott(1, 3), "GilbertElliott: mean_loss must lie between"),
        (lambda: GilbertElliott(math.nan, 3), "GilbertElliott: mean_loss must lie between"),
        (lambda: GilbertElliott("1%", 3), "both excluded, got '1%'; pass a fraction between them"),
        (lambda: GilbertElliott(0.1, 3, loss_good=0.1), "mean_loss must lie between loss_good and loss_bad, 0.1 and 1"),
        (lambda: GilbertElliott(0.6, 3, loss_bad=0.5), "mean_loss must lie between loss_good and loss_bad, 0 and 0.5"),
        (lambda: GilbertElliott(0.1, 3, loss_good=-0.1), "GilbertElliott: loss_good must be in [0, 1), got -0.1"),
        (lambda: GilbertElliott(0.1, 3, loss_good=None), "GilbertElliott: loss_good must be in [0, 1), got None"),
        (
            lambda: GilbertElliott(0.3, 3, loss_good=0.5, loss_bad=0.2),
            "GilbertElliott: loss_bad must be above loss_good, which is 0.5, and at most 1, got 0.2",
        ),
        (lambda: GilbertElliott(0.3, 3, loss_good=1), "GilbertElliott: loss_bad must be above loss_good, which is 1"),
        (lambda: GilbertElliott(0.3, 3, loss_bad=50), "GilbertElliott: loss_bad must be above loss_good"),
        (lambda: GilbertElliott(0.3, 0), "GilbertElliott: burst_length must be a finite number of seconds > 0, got 0"),
        (lambda: GilbertElliott(0.3, math.inf), "GilbertElliott: burst_length must be a finite number of seconds > 0"),
        (lambda: GilbertElliott(0.3, True), "GilbertElliott: burst_length must be a finite number of seconds > 0"),
        (lambda: GilbertElliott(5e-324, 1e300), "GilbertElliott: mean_loss is too close to loss_good"),
        (lambda: Reordering(30, 1), "Reordering: probability must be in [0, 1], got 30; pass a fraction"),
        (lambda: Reordering(-0.1, 1), "Reordering: probability must be in [0, 1], got -0.1"),
        (lambda: Reordering(None, 1), "Reordering: probability must be in [0, 1], got None"),
        (lambda: Reordering(0.5, -1), "Reordering: extra must not give values below 0, got -1"),
        (lambda: Reordering(0.5, Normal(5, 1)), "Reordering: extra must not give values below 0, got Normal"),
        (lambda: Reordering(0.5, "long"), "Reordering: extra must be a finite number or a distribution"),
    ],
)
def test_errors_name_class_argument_and_value(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()


def test_models_are_data():
    assert GilbertElliott(0.01, 3) == GilbertElliott(np.float64(0.01), 3.0, loss_good=0, loss_bad=1)
    assert Reordering(0.25, 2) == Reordering(0.25, Constant(2.0)) != Reordering(0.25, Exponential(2))
    assert Reordering(0, 0).probability == 0
    assert Reordering(1, 0).probability == 1
    assert len({GilbertElliott(0.01, 3), GilbertElliott(0.01, 3), Reordering(0.5, 1)}) == 2
    with pytest.raises(FrozenInstanceError):
        GilbertElliott(0.01, 3).burst_length = 4
    with pytest.raises(TypeError):
        GilbertElliott(0.01, 3, 0.0)


def test_the_chain_of_the_reference():
    chain = GilbertElliott(0.01, 3)  # r = 1 / L and p = r pi / (1 - pi)
    assert chain.bad_share == 0.01
    assert 1 / chain.mean_gap == pytest.approx((1 / 3) * 0.01 / 0.99)
    partial = GilbertElliott(0.2, 3, loss_good=0.1, loss_bad=0.6)
    assert partial.bad_share == pytest.approx(0.2)
    assert partial.mean_gap == pytest.approx(12)


unit = st.floats(0, 1)


@given(unit, unit, st.floats(0.01, 0.99), st.floats(1e-3, 1e6))
def test_states_and_losses_average_to_the_mean_loss(one, other, share, burst):
    good, bad = sorted([one, other])
    mean = good + share * (bad - good)
    assume(bad - good > 1e-3)
    chain = GilbertElliott(mean, burst, loss_good=good, loss_bad=bad)
    assert 0 < chain.bad_share < 1
    assert chain.bad_share * bad + (1 - chain.bad_share) * good == pytest.approx(mean)
    assert burst / (burst + chain.mean_gap) == pytest.approx(chain.bad_share)
