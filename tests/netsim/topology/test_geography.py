import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.topology import great_circle
from netsim.topology.geography import EARTH_RADIUS, FIBRE_SPEED, fibre_latency, mean_location

points = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@pytest.mark.parametrize(
    ("one", "other", "kilometres"),
    [
        ((0, 0), (0, 0), 0),
        ((0, 0), (0, 1), 2 * math.pi * EARTH_RADIUS / 360_000),
        ((90, 0), (-90, 77), math.pi * EARTH_RADIUS / 1000),  # pole to pole
        ((0, 0), (0, 180), math.pi * EARTH_RADIUS / 1000),
        ((51.4700, -0.4543), (40.6413, -73.7781), 5540),  # Heathrow to Kennedy
        ((-33.9461, 151.1772), (1.3644, 103.9915), 6300),  # Sydney to Singapore Changi
        ((35.5494, 139.7798), (37.6213, -122.3790), 8270),  # Haneda to San Francisco, over the date line
    ],
)
def test_known_distances(one, other, kilometres):
    assert great_circle(*one, *other) / 1000 == pytest.approx(kilometres, rel=0.005, abs=1e-9)


@given(points, points)
def test_a_distance_is_that_of_the_chord(one, other):
    def vector(latitude, longitude):
        phi, turn = math.radians(latitude), math.radians(longitude)
        return np.array([math.cos(phi) * math.cos(turn), math.cos(phi) * math.sin(turn), math.sin(phi)])

    half = min(1.0, float(np.linalg.norm(vector(*one) - vector(*other))) / 2)
    # The arc sine is steep at 1, where the points are opposite.
    assert great_circle(*one, *other) == pytest.approx(2 * EARTH_RADIUS * math.asin(half), rel=1e-6, abs=1)
    assert great_circle(*one, *other) == pytest.approx(float(great_circle(*other, *one)), abs=1e-6)


def test_arrays_are_broadcast():
    distance = great_circle(np.array([[0.0], [10.0]]), 0, [0.0, 10.0, 20.0], 0)
    assert distance.shape == (2, 3)
    assert distance[1, 1] == 0
    assert distance[0, 2] == pytest.approx(2 * distance[1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((91, 0, 0, 0), r"lat1 must be in \[-90, 90\] degrees, got 91"),
        ((0, -361, 0, 0), r"lon1 must be in \[-360, 360\] degrees, got -361"),
        ((0, 0, [0, math.nan], 0), r"lat2 must be in \[-90, 90\] degrees, got nan"),
        ((0, 0, 0, math.inf), "lon2 must be in"),
        ((0, 0, 0, "east"), "lon2 must be a number of degrees, got 'east'"),
    ],
)
def test_a_coordinate_out_of_range_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        great_circle(*arguments)


def test_a_thousand_kilometres_of_fibre_take_five_milliseconds():
    assert pytest.approx(2 / 3, rel=0.03) == FIBRE_SPEED / 299_792_458
    degrees = math.degrees(1e6 / EARTH_RADIUS)
    assert fibre_latency(0, 0, 0, degrees) == pytest.approx(0.0049, abs=1e-5)
    assert fibre_latency(0, 0, 0, degrees, stretch=2) == pytest.approx(0.0098, abs=2e-5)
    assert fibre_latency(0, 0, 0, degrees) == round(fibre_latency(0, 0, 0, degrees), 9)
    with pytest.raises(ValueError, match=r"stretch must be a finite number >= 1, got 0\.5"):
        fibre_latency(0, 0, 0, 1, stretch=0.5)


def test_the_middle_of_points():
    assert mean_location([(10, 20)]) == (10, 20)
    assert mean_location([(0, 179), (0, -179)]) == pytest.approx((0, 180))  # not (0, 0)
    assert mean_location([(80, 0), (80, 180)])[0] == pytest.approx(90)
    assert mean_location([(0, 0), (0, 180)]) is None
    assert mean_location([]) is None
