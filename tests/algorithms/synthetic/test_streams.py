import numpy as np

from algorithms.synthetic.streams import streams


def draws(seed, n=3):
    return [stream.random(4).tolist() for stream in streams(seed, n)]


def test_streams_differ_from_each_other_and_between_seeds():
    assert len({tuple(each) for seed in (1, 2) for each in draws(seed)}) == 6


def test_more_streams_leave_the_first_ones_as_they_are():
    assert draws(1, 5)[:3] == draws(1, 3)


def test_an_integer_and_a_seed_sequence_give_the_same_streams_again():
    for seed in (7, np.random.SeedSequence(7), [7, 1]):
        assert draws(seed) == draws(seed)
    assert draws(7) == draws(np.random.SeedSequence(7))


def test_a_generator_goes_on():
    generator = np.random.default_rng(7)
    assert draws(generator) == draws(7)
    assert draws(generator) != draws(7)
