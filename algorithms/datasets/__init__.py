"""Data sets of ratings, read from the user's own copy."""

from algorithms.datasets.errors import DataError
from algorithms.datasets.movielens import movielens_100k

__all__ = ["DataError", "movielens_100k"]
