"""Places on the globe: distances, and how long light in a fibre takes for them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from netsim.topology._checks import as_number

__all__ = ["EARTH_RADIUS", "FIBRE_SPEED", "checked_stretch", "fibre_latency", "great_circle", "mean_location"]

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the earth in metres (IUGG, R1 of GRS 80; H. Moritz, "Geodetic Reference System 1980", 2000)."""

FIBRE_SPEED = 299_792_458 / 1.4682
"""Speed of light in fibre, metres per second: 204.2e6, about two thirds of that in vacuum.

The group index 1.4682 is that of standard single-mode fibre at 1550 nm (Corning, "SMF-28e+ Optical Fiber", product
information; ITU-T G.652).
"""


def great_circle(lat1: ArrayLike, lon1: ArrayLike, lat2: ArrayLike, lon2: ArrayLike) -> NDArray[np.float64]:
    """Distance between two points along the surface of a spherical earth.

    The earth is flatter at the poles: the distance on the ellipsoid differs by up to about 0.5%. The formula is good
    for near and for opposite points.

    Parameters
    ----------
    lat1, lon1, lat2, lon2 : float or array
        Degrees; latitudes in [-90, 90], longitudes in [-360, 360]. Arrays are broadcast.

    Returns
    -------
    float64
        Metres, in the broadcast shape.

    Raises
    ------
    ValueError
        If a coordinate is not a number in its range.

    References
    ----------
    T. Vincenty, "Direct and inverse solutions of geodesics on the ellipsoid", Survey Review 23, 1975: the case of the
    sphere.
    """
    phi1, phi2 = _radians("lat1", lat1, 90), _radians("lat2", lat2, 90)
    turn = _radians("lon2", lon2, 360) - _radians("lon1", lon1, 360)
    across = np.hypot(
        np.cos(phi2) * np.sin(turn),
        np.cos(phi1) * np.sin(phi2) - np.sin(phi1) * np.cos(phi2) * np.cos(turn),
    )
    along = np.sin(phi1) * np.sin(phi2) + np.cos(phi1) * np.cos(phi2) * np.cos(turn)
    distance: NDArray[np.float64] = EARTH_RADIUS * np.arctan2(across, along)
    return distance


def fibre_latency(lat1: float, lon1: float, lat2: float, lon2: float, *, stretch: float = 1.0) -> float:
    """One-way latency of a fibre between two points, in seconds, rounded to nanoseconds.

    Rounding hides the last bits, in which the trigonometry of machines differs. Nothing is added for equipment.

    Parameters
    ----------
    lat1, lon1, lat2, lon2 : float
        Degrees.
    stretch : float
        Length of the fibre over that of the great circle, >= 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
    metres = float(great_circle(lat1, lon1, lat2, lon2)) * checked_stretch(stretch)
    return round(metres / FIBRE_SPEED, 9)


def mean_location(points: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """Point in the middle of others: the direction of the sum of their unit vectors.

    Parameters
    ----------
    points : iterable of (latitude, longitude)
        Degrees.

    Returns
    -------
    (float, float) or None
        Latitude and longitude in degrees, rounded to 1e-9; None where there is no point, or they cancel out.
    """
    angles = np.radians(np.array(list(points), dtype=np.float64).reshape(-1, 2))
    phi, turn = angles[:, 0], angles[:, 1]
    x, y, z = (np.cos(phi) * np.cos(turn)).sum(), (np.cos(phi) * np.sin(turn)).sum(), np.sin(phi).sum()
    if math.sqrt(x * x + y * y + z * z) < 1e-9 * max(1, len(angles)):
        return None
    latitude, longitude = math.atan2(z, math.hypot(x, y)), math.atan2(y, x)
    return round(math.degrees(latitude), 9), round(math.degrees(longitude), 9)


def checked_stretch(stretch: float) -> float:
    """Return the stretch, a finite number >= 1."""
    number = as_number(stretch)
    if not (math.isfinite(number) and number >= 1):
        raise ValueError(
            f"stretch must be a finite number >= 1, got {stretch!r}; pass the length of a fibre over that of the "
            "great circle, e.g. 1.5"
        )
    return number


def _radians(name: str, degrees: ArrayLike, limit: float) -> NDArray[np.float64]:
    try:
        array = np.asarray(degrees, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a number of degrees, got {degrees!r} ({error}); pass decimal degrees"
        ) from error
    bad = ~(np.abs(array) <= limit)
    if bad.any():
        raise ValueError(
            f"{name} must be in [-{limit}, {limit}] degrees, got {array[bad].flat[0]}; pass decimal degrees"
        )
    return np.radians(array)
