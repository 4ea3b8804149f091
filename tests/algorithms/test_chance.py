import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from algorithms.chance import (
    ITEM,
    ROUTER,
    USER,
    combine,
    draw,
    entity_keys,
    further,
    seed_word,
    stable_hash,
    standard_normal,
    uniform,
)

unhurried = settings(deadline=None)  # the first example may compile
ROOT = Path(__file__).resolve().parents[2]
GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1
WORDS = st.integers(0, MASK)


def combined(state, value):
    """Output number `value` of SplitMix64 from `state`, in Python integers."""
    x = (state + (value + 1) * GOLDEN) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


@pytest.mark.parametrize(("value", "word"), [(0, 0xE220A8397B1DCDAF), (1, 0x6E789E6AA1B965F4), (2, 0x06C45D188009454F)])
def test_combine_gives_the_published_outputs_of_splitmix64(value, word):
    assert int(combine(np.uint64(0), np.uint64(value))) == word


@unhurried
@given(WORDS, WORDS)
def test_the_order_of_a_pair_counts(a, b):
    assert (combine(np.uint64(a), np.uint64(b)) == combine(np.uint64(b), np.uint64(a))) == (a == b)


@unhurried
@given(WORDS, WORDS, WORDS, WORDS)
def test_draw_chains_splitmix64_over_its_arguments(seed, purpose, entity, counter):
    expected = 0xBF58476D1CE4E5B9
    for value in (seed, purpose, entity, counter):
        expected = combined(expected, value)
    assert int(draw(np.uint64(seed), np.uint64(purpose), np.uint64(entity), np.uint64(counter))) == expected


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((0, 0, 0, 0), 6083611928593092675),
        ((1, 2, 3, 4), 11140966471937710395),
        ((2**64 - 1, 1, 2**63, 7), 16118739323795509837),
        ((12345, 17, 0, 10**9), 15459688617219077468),
    ],
)
def test_draw_keeps_its_values(arguments, word):
    assert int(draw(*(np.uint64(argument) for argument in arguments))) == word


def test_draw_does_not_depend_on_the_integer_type():
    assert draw(np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)) == draw(1, 2, 3, np.int32(4))


def test_further_words_keep_their_values_and_differ():
    assert int(further(np.uint64(1), 1)) == combined(1, 1)
    words = {int(further(np.uint64(1), number)) for number in range(1, 101)}
    assert len(words | {1}) == 101


HASHES = {
    3: 13635300086896362328,
    -1: 12061929287756718838,
    10**30: 15119164303167695798,
    "3": 7360064012792961853,
    "é": 3480560207816370650,
    ("a", 1): 5823659519991733000,
    1.5: 12482179639052409532,
    None: 9792676723757118520,
}


@pytest.mark.parametrize("name", HASHES, ids=repr)
def test_stable_hash_keeps_its_values(name):
    assert int(stable_hash(name)) == HASHES[name]


def test_numpy_and_python_ids_of_equal_value_hash_alike():
    assert stable_hash(np.int64(3)) == stable_hash(np.uint8(3)) == stable_hash(3)
    assert stable_hash(np.str_("3")) == stable_hash("3")
    assert stable_hash(np.float64(1.5)) == stable_hash(1.5)
    assert stable_hash((np.int64(3), "a")) == stable_hash((3, "a"))


def test_different_ids_hash_differently():
    names = [3, "3", "i3", (3,), ("3",), 3.5, "3.5", b"3", (1, 2), ("1,i2",), ((1,), 2), (1, (2,)), "", ()]
    assert len({int(stable_hash(name)) for name in names}) == len(names)


def test_an_id_without_stable_text_is_refused():
    with pytest.raises(TypeError, match="no stable text"):
        stable_hash(object())


def in_another_process(expression, hash_seed):
    """Hash of an id as another process finds it, or the name of its error."""
    code = (
        "from algorithms.chance import stable_hash\n"
        f"try: print(int(stable_hash({expression})))\n"
        "except TypeError as error: print(type(error).__name__)"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    return done.stdout.strip()


def test_stable_hash_is_the_same_in_another_process():
    expected = str(int(stable_hash(("eve", 3, (1.5, None)))))
    assert in_another_process("('eve', 3, (1.5, None))", "17") == expected


def test_a_frozenset_hashes_alike_in_every_process():
    hashes = {in_another_process("frozenset(('abc', 7, ('d',)))", seed) for seed in ("1", "2", "3")}
    assert hashes == {str(int(stable_hash(frozenset(["abc", 7, ("d",)]))))}


def test_entities_are_keyed_by_role_and_id_alone():
    keys = entity_keys(USER, ["eve", "bob"])
    assert keys.dtype == np.uint64
    assert keys.tolist() == entity_keys(USER, ["bob", "ann", "eve"])[[2, 0]].tolist()
    assert len({int(entity_keys(role, ["eve"])[0]) for role in (USER, ITEM, ROUTER)}) == 3
    assert entity_keys(USER, []).shape == (0,)


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1, np.int64(7), np.uint64(2**64 - 1)])
def test_an_integer_is_its_own_seed_word(seed):
    word = seed_word(seed)
    assert isinstance(word, np.uint64)
    assert int(word) == int(seed)


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.SeedSequence, np.random.PCG64])
def test_seed_word_reduces_what_default_rng_takes(kind):
    assert int(seed_word(kind(3))) == 1579948266424812280
    assert seed_word(kind(3)) != seed_word(kind(4))


def test_a_seed_of_more_than_64_bits_is_reduced():
    assert int(seed_word(2**64)) == 8286993518594409552
    assert seed_word(2**64) != seed_word(2**65)


@pytest.mark.parametrize(("seed", "message"), [(None, "got None"), (-1, "got -1"), (np.int64(-5), "got -5")])
def test_bad_seeds_are_named(seed, message):
    with pytest.raises(ValueError, match=f"seed must be .*{message}"):
        seed_word(seed)


@pytest.mark.parametrize("seed", ["1", 1.5])
def test_a_seed_of_another_kind_is_refused(seed):
    with pytest.raises(TypeError):
        seed_word(seed)


def test_uniform_misses_both_ends():
    assert uniform(np.uint64(0)) == 2.0**-53
    assert uniform(np.uint64(MASK)) == 1 - 2.0**-53
    assert uniform(np.uint64(1 << 12)) == 3 * 2.0**-53


@unhurried
@given(WORDS)
def test_uniform_is_the_word_as_a_fraction(word):
    assert uniform(np.uint64(word)) == pytest.approx((word + 0.5) / 2**64, abs=2.0**-52)


@pytest.mark.parametrize(
    ("word", "number"),
    [
        (0, "-0x1.06b48528cea51p+3"),
        (2**40, "-0x1.52dc6e853f1cap+2"),
        (2**64 // 3, "-0x1.b91093bfdfa27p-2"),
        (2**63, "0x1.40d931ff62707p-52"),
        (2**64 - 1, "0x1.06b48528cea51p+3"),
    ],
)
def test_standard_normal_keeps_its_values(word, number):
    assert standard_normal(np.uint64(word)) == pytest.approx(float.fromhex(number), rel=1e-15)


@unhurried
@given(WORDS | st.integers(0, 2**20) | st.integers(0, 2**40) | st.integers(MASK - 2**20, MASK))
def test_standard_normal_inverts_the_normal_distribution(word):
    number = uniform(np.uint64(word))
    assert standard_normal(np.uint64(word)) == pytest.approx(ndtri(number), rel=4e-15, abs=1e-15)


@unhurried
@given(WORDS, WORDS)
def test_standard_normal_grows_with_the_word(one, other):
    low, high = sorted([one, other])
    assert standard_normal(np.uint64(low)) <= standard_normal(np.uint64(high))
