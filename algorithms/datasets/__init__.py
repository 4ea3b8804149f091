"""Data sets of ratings, read from the user's own copy or fetched from their publisher."""

from algorithms.datasets.coat import coat
from algorithms.datasets.download import DownloadError
from algorithms.datasets.errors import DataError
from algorithms.datasets.grouplens import movielens_csv, movielens_dat
from algorithms.datasets.in_memory import ratings_from_dense, ratings_from_frame, ratings_from_sparse
from algorithms.datasets.movielens import movielens_100k
from algorithms.datasets.rating_files import read_ratings
from algorithms.datasets.yahoo import yahoo_r3

__all__ = [
    "DataError",
    "DownloadError",
    "coat",
    "movielens_100k",
    "movielens_csv",
    "movielens_dat",
    "ratings_from_dense",
    "ratings_from_frame",
    "ratings_from_sparse",
    "read_ratings",
    "yahoo_r3",
]
