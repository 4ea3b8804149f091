"""A result on disk comes back the same, is written whole or not at all, and damage is seen."""

import json
import os
import re
import tempfile
from dataclasses import fields
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from algorithms.ratings import Ratings
from algorithms.synthetic import low_rank
from netsim import (
    Empirical,
    GivenContacts,
    GivenPlacement,
    LogNormal,
    OnOff,
    Periodic,
    Plateau,
    Poisson,
    Result,
    Simulation,
    Target,
    Uniform,
    World,
    disclosure,
    rmse,
    simulate,
    truth_rmse,
)
from tests.worlds import runs

DATA = low_rank(6, 5, rank=2, seed=1)
WORLD = World(DATA.train, loss=0.1, user_broadcast=1.0, router_broadcast=1.0)
TABLES = ("probes", "accounts", "users", "routers", "items", "prequential", "recommendations")
ARRAYS = ("user_profiles", "item_profiles", "disclosed")
FILES = sorted(["result.json", "arrays.npz", *(f"{name}.csv" for name in TABLES)])
few = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def result():
    return simulate(WORLD, until=8.0, seed=1, every=1.0, probes=[rmse(DATA.train), disclosure()])


@pytest.fixture
def folder(tmp_path, result):
    """A folder that holds a saved result."""
    return result.save(tmp_path / "run")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_same(first, second):
    """Two results are equal in all but the world, to the bit."""
    for field in (each.name for each in fields(Result) if each.name != "world"):
        one, other = getattr(first, field), getattr(second, field)
        if field in TABLES:
            pd.testing.assert_frame_equal(one, other, check_exact=True)
            for name in one:
                if one[name].dtype == "float64":
                    assert one[name].to_numpy().tobytes() == other[name].to_numpy().tobytes(), name
        elif field in ARRAYS:
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()), field
        else:
            assert one == other, field
            assert type(one) is type(other), field


# -- there and back ----------------------------------------------------------------------------------------------------


@few
@given(runs())
def test_what_is_loaded_is_what_was_saved(run):
    saved = simulate(**run.arguments, probes=[rmse(run.world.ratings), disclosure()])
    with tempfile.TemporaryDirectory() as place:
        assert saved.save(Path(place) / "run") == Path(place) / "run"
        loaded = Result.load(Path(place) / "run")
    assert loaded.world is None
    assert_same(saved, loaded)
    assert loaded.final == saved.final or saved.probes.iloc[-1].isna().any()
    assert loaded.measured == saved.measured


def test_a_loaded_result_answers_as_the_first(folder, result):
    loaded = Result.load(str(folder))
    for rule in (Target("test_rmse", at_most=3.0), Plateau("test_rmse", window=3.0, tolerance=10.0)):
        assert loaded.find(rule) == result.find(rule)
        assert result.find(rule).reached
    assert (repr(loaded), loaded._repr_html_()) == (repr(result), result._repr_html_())
    assert loaded.user_updates.tolist() == result.user_updates.tolist()
    assert loaded.item_updates.tolist() == result.item_updates.tolist()
    pd.testing.assert_frame_equal(loaded.disclosures(DATA.train), result.disclosures())


def test_a_loaded_result_can_be_saved_again(folder, tmp_path):
    Result.load(folder).save(tmp_path / "again")
    for name in FILES[1:]:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name
    assert_same(Result.load(tmp_path / "again"), Result.load(folder))


def test_the_seed_and_the_configuration_name_the_run(folder):
    loaded = Result.load(folder)
    repeated = simulate(WORLD, until=loaded.until, seed=loaded.seed, every=1.0, probes=[rmse(DATA.train), disclosure()])
    pd.testing.assert_frame_equal(loaded.probes, repeated.probes, check_exact=True)
    assert loaded.configuration == WORLD.describe()


def test_a_world_with_everything_comes_back(tmp_path):
    ratings = Ratings.from_arrays(["a", "a", "b"], [(1, 2), "x", "x"], [1.0, 2.0, 3.0], scale=(1, 5))
    graph = nx.Graph()
    graph.add_edge("here", ("there", 1), latency=0.1)
    world = World(
        ratings,
        topology=graph,
        routers=("y", 3),
        hosting={(1, 2): "y", "x": 3},
        placement=GivenPlacement({"a": "here", "b": ("there", 1)}, {"y": "here", 3: ("there", 1)}),
        user_contacts=GivenContacts({"a": ["y", 3], "b": [3]}),
        user_broadcast=Periodic(Uniform(0.5, 1.0), phase=0.0),
        router_broadcast=Poisson(1.0),
        delay=LogNormal(0.1, 0.8),
        access=Empirical([0.0, 0.1]),
        request_timeout=float("inf"),
        user_churn=OnOff(5.0, 1.0),
    )
    saved = simulate(world, until=5.0, seed=2**64 - 1)
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert loaded.configuration == saved.configuration == world.describe()
    assert loaded.seed == 2**64 - 1
    assert loaded.routers["router"].tolist() == ["y", "3"]
    assert loaded.items["item"].tolist() == ["(1, 2)", "x"]


class Numbers:
    """A probe of numbers that are hard to write down, another at each time."""

    columns = ("float", "count", "flag", "large")
    hard = (float("inf"), float("-inf"), float("nan"), -0.0, 0.1 + 0.2, 5e-324, 1.7976931348623157e308, 1e22, 1 / 3)

    def __call__(self, view):
        n = int(view.time)
        return {"float": self.hard[n], "count": -n, "flag": n % 2 == 0, "large": 2**53 + 1 + n}


def test_numbers_come_back_to_the_bit(tmp_path):
    saved = simulate(WORLD, until=float(len(Numbers.hard) - 1), seed=1, every=1.0, probes=[Numbers()])
    assert saved.probes.dtypes[[*Numbers.columns]].tolist() == ["float64", "int64", "bool", "int64"]
    assert saved.probes["float"].tolist()[:2] == [float("inf"), float("-inf")]
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert_same(saved, loaded)
    assert np.signbit(loaded.probes["float"][3])


class NeverKnown:
    columns = ("nothing",)

    def __call__(self, view):
        return {"nothing": float("nan")}


def test_a_metric_that_was_never_known_comes_back(tmp_path):
    saved = simulate(WORLD, until=2.0, seed=1, probes=[NeverKnown()])
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert_same(saved, loaded)
    assert loaded.probes["nothing"].isna().all()


alike = [
    [3, 1, 2],
    ["3", "1", "02"],
    ["NA", "", "nan"],
    ["True", "1e5", "inf"],
    [" a ", "b,c", 'd"e'],
    ["two\nlines", "é", "\u2028"],
    [2**70, -(2**70), 5],
    [2**63 - 1, -(2**63), 0],
    ["a\rb", "\r", "c"],
]


@pytest.mark.parametrize("ids", alike, ids=repr)
def test_ids_of_integers_and_of_strings_come_back(tmp_path, ids):
    saved = simulate(with_ids(ids), until=3.0, seed=1)
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert_same(saved, loaded)
    for table, name in (("users", "user"), ("routers", "router"), ("items", "item"), ("items", "router")):
        assert getattr(loaded, table)[name].tolist() == ids


@pytest.mark.parametrize("ids", [[1, "a", 2], [(1, 2), (3, 4), (5, 6)], [True, 2, 3], [1.5, 2.0, -1.0]], ids=repr)
def test_other_ids_come_back_as_their_text(tmp_path, ids):
    saved = simulate(with_ids(ids), until=3.0, seed=1)
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert saved.users["user"].tolist() == ids
    assert loaded.users["user"].tolist() == [str(each) for each in ids]
    assert loaded.items["router"].tolist() == [str(each) for each in ids]
    assert_same(Result.load(loaded.save(tmp_path / "again")), loaded)


def with_ids(ids):
    return World(Ratings.from_arrays(ids, ids, [1.0, 2.0, 3.0], scale=(1, 5), user_ids=ids, item_ids=ids))


def interrupted_at(time):
    class Impatient:
        columns = ()

        def __call__(self, view):
            if view.time >= time:
                raise KeyboardInterrupt
            return {}

    return simulate(WORLD, until=8.0, seed=1, every=1.0, probes=[Impatient()])


def test_an_interrupted_run_comes_back_as_one(tmp_path):
    saved = interrupted_at(3.0)
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert loaded.interrupted
    assert (loaded.time, loaded.until, len(loaded.probes)) == (3.0, 8.0, 3)
    assert_same(saved, loaded)


def test_a_run_interrupted_before_the_first_probe_comes_back(tmp_path):
    saved = interrupted_at(0.0)
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert loaded.probes.empty
    assert_same(saved, loaded)


def test_a_stopped_run_comes_back_as_one(tmp_path):
    saved = simulate(WORLD, until=8.0, seed=1, every=1.0, stop=Target("sent", at_least=1))
    loaded = Result.load(saved.save(tmp_path / "run"))
    assert loaded.stopped == "sent >= 1"
    assert loaded.time < loaded.until == 8.0
    assert_same(saved, loaded)


# -- what is written ---------------------------------------------------------------------------------------------------


def test_the_files_are_plain(folder, result):
    assert names(folder) == FILES
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        assert sorted(arrays) == sorted(ARRAYS)
        np.testing.assert_array_equal(arrays["user_profiles"], result.user_profiles)
    head = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert (head["layout"], head["seed"], head["until"], head["stopped"]) == (1, result.seed, 8.0, None)
    assert head["versions"] == result.versions
    table = pd.read_csv(folder / "probes.csv")
    assert list(table) == list(result.probes)
    assert table["sent"].tolist() == result.probes["sent"].tolist()
    assert b"\r" not in b"".join((folder / f"{name}.csv").read_bytes() for name in TABLES)


def test_no_rating_is_written(tmp_path):
    odd = Ratings.from_arrays(["u", "v"], ["p", "q"], [1.23456789, 4.87654321], scale=(1, 5))
    saved = simulate(World(odd), until=1.0, seed=1).save(tmp_path / "run")
    for path in saved.iterdir():
        assert not re.search(rb"1\.2345|4\.8765", path.read_bytes()), path.name


def test_folders_above_are_made_and_permissions_are_those_of_a_new_folder(tmp_path, result):
    before = os.umask(0o027)
    try:
        place = result.save(tmp_path / "a" / "b" / "run")
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o750
    assert names(place.parent) == ["run"]
    assert names(place) == FILES


def test_an_earlier_result_is_replaced(folder, tmp_path):
    later = simulate(WORLD, until=2.0, seed=2)
    later.save(folder)
    assert_same(Result.load(folder), later)
    assert names(folder) == FILES
    assert names(tmp_path) == ["run"]


def test_an_empty_folder_is_taken(tmp_path, result):
    (tmp_path / "run").mkdir()
    assert_same(Result.load(result.save(tmp_path / "run")), result)
    assert names(tmp_path) == ["run"]


def test_a_name_without_a_folder_is_taken_here(tmp_path, result, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_same(Result.load(result.save("run")), result)
    assert names(tmp_path) == ["run"]


def foreign_file(place):
    place.mkdir()
    (place / "notes.txt").write_text("mine", encoding="utf-8")


def foreign_file_beside_a_result(place):
    simulate(WORLD, until=1.0, seed=1).save(place)
    (place / "notes.txt").write_text("mine", encoding="utf-8")


def a_table_without_a_result(place):
    place.mkdir()
    (place / "users.csv").write_text("mine", encoding="utf-8")


def a_file(place):
    place.write_text("mine", encoding="utf-8")


@pytest.mark.parametrize("make", [foreign_file, foreign_file_beside_a_result, a_table_without_a_result, a_file])
def test_what_is_not_a_result_is_not_replaced(tmp_path, result, make):
    place = tmp_path / "run"
    make(place)
    before = content(tmp_path)
    with pytest.raises(FileExistsError, match=r"folder must be new, empty or hold an earlier result, got .*run"):
        result.save(place)
    assert content(tmp_path) == before


def content(folder):
    """All files below a folder with their bytes; folders with None."""
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


# -- written whole or not at all ---------------------------------------------------------------------------------------


def failing(original, n, error):
    """The same function, which fails at call number n."""
    calls = []

    def function(*arguments, **keywords):
        calls.append(1)
        if len(calls) == n:
            raise error
        return original(*arguments, **keywords)

    return function


def at(owner, name, n):
    return pytest.param(owner, name, n, id=f"{name} {n}")


STEPS = [
    at(pd.DataFrame, "to_csv", 1),
    at(pd.DataFrame, "to_csv", 5),
    at(np, "savez_compressed", 1),
    at(Path, "write_text", 1),
    at(Path, "chmod", 1),
]


@pytest.mark.parametrize("error", [OSError("disk full"), PermissionError("not yours"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize(("owner", "name", "n"), [*STEPS, at(Path, "rename", 1), at(Path, "rename", 2)])
def test_a_failure_leaves_the_earlier_result_and_no_litter(folder, tmp_path, monkeypatch, owner, name, n, error):
    before = content(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(getattr(owner, name), n, error))
        with pytest.raises(type(error)):
            simulate(WORLD, until=2.0, seed=2).save(folder)
    assert content(tmp_path) == before


@pytest.mark.parametrize(("owner", "name", "n"), [*STEPS, at(Path, "rename", 1)])
def test_a_failure_leaves_nothing_where_nothing_was(tmp_path, result, monkeypatch, owner, name, n):
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, failing(getattr(owner, name), n, OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            result.save(tmp_path / "run")
    assert names(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_an_error_of_permission(tmp_path, result):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            result.save(tmp_path / "run")
    finally:
        tmp_path.chmod(0o755)
    assert names(tmp_path) == []


def test_below_a_file_nothing_is_written(tmp_path, result):
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(OSError, match="file"):
        result.save(tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"


# -- damage ------------------------------------------------------------------------------------------------------------


def cut(path, keep):
    """Keep the first part of a file."""
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep)])


def without_last_line(path):
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")


def swap(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def without_a_column(path):
    pd.read_csv(path).drop(columns="online").to_csv(path, index=False)


def change_head(path, **changes):
    head = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(head | changes), encoding="utf-8")


def pickled(path):
    np.savez(path, user_profiles=np.array([{}, []], dtype=object), item_profiles=np.zeros(1), disclosed=np.zeros(1))


def without_last_byte(path):
    path.write_bytes(path.read_bytes()[:-1])


DAMAGE = [
    *(pytest.param(name, lambda path: cut(path, 0.5), "", id=f"half of {name}") for name in FILES),
    *(pytest.param(name, lambda path: cut(path, 0.0), "", id=f"empty {name}") for name in FILES),
    *(pytest.param(name, Path.unlink, "", id=f"no {name}") for name in FILES if name != "result.json"),
    *(pytest.param(f"{name}.csv", without_last_line, "", id=f"{name} without its last row") for name in TABLES),
    *(pytest.param(f"{name}.csv", without_last_byte, "", id=f"{name} without its last byte") for name in TABLES),
    pytest.param("result.json", lambda path: change_head(path, layout=2), "found layout 2, expected 1", id="layout 2"),
    pytest.param(
        "result.json",
        lambda path: path.write_text('{"layout": 2}'),
        "found layout 2, expected 1",
        id="layout 2 without what 1 has",
    ),
    pytest.param("result.json", lambda path: change_head(path, layout="1"), "found layout '1'", id="layout text"),
    pytest.param("result.json", lambda path: swap(path, '"seed"', '"sead"'), "lacks seed", id="no seed"),
    pytest.param("result.json", lambda path: path.write_text("[]"), "lacks layout, seed", id="a list"),
    pytest.param("result.json", lambda path: path.write_bytes(b"\xff{}"), "not whole JSON", id="no UTF-8"),
    pytest.param("users.csv", lambda path: swap(path, "user", "person"), "found columns person, on", id="renamed"),
    pytest.param("users.csv", without_a_column, "found columns user, ratings", id="one less"),
    pytest.param("users.csv", lambda path: swap(path, "True", "yes"), "found 'yes', expected True or", id="no bool"),
    pytest.param("accounts.csv", lambda path: swap(path, ",0\n", ",zero\n"), "'zero'", id="no int"),
    pytest.param("accounts.csv", lambda path: swap(path, ",0\n", ",0.5\n"), "'0.5'", id="not whole"),
    pytest.param("probes.csv", lambda path: swap(path, "\n0.0,", "\nnought,"), "'nought'", id="no float"),
    pytest.param("probes.csv", lambda path: swap(path, "\n0.0,", "\n0.0,7,"), "", id="one field more"),
    pytest.param("items.csv", lambda path: path.write_bytes(b"\xff\xfe"), "", id="no text"),
    pytest.param("arrays.npz", pickled, "allow_pickle", id="pickled"),
    pytest.param("arrays.npz", lambda path: np.savez(path, user_profiles=np.zeros(2)), "item_profiles", id="no array"),
]


@pytest.mark.parametrize(("name", "damage", "told"), DAMAGE)
def test_damage_is_seen_and_the_file_named(folder, name, damage, told):
    damage(folder / name)
    with pytest.raises(ValueError, match=f"^{re.escape(str(folder / name))}: .*{re.escape(told)}"):
        Result.load(folder)


def test_where_there_is_no_result_the_mend_is_told(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        told = f"folder must hold a saved result, got {place} without result.json; name a folder that Result.save wrote"
        with pytest.raises(FileNotFoundError, match=re.escape(told)):
            Result.load(place)


# -- shown and asked ---------------------------------------------------------------------------------------------------


def test_a_result_tells_in_a_line_what_it_is(result):
    sent = int(result.probes["sent"].iloc[-1])
    assert repr(result) == f"Result(8 s simulated, seed 1, {result.engine} engine, 9 probes, {sent} messages)"
    stopped = simulate(WORLD, until=8.0, seed=1, engine="events", every=1.0, stop=Target("sent", at_least=0))
    assert repr(stopped) == "Result(0 s simulated (stopped: sent >= 0), seed 1, events engine, 1 probes, 0 messages)"
    assert "(interrupted)" in repr(interrupted_at(2.0))
    assert repr(interrupted_at(0.0)).endswith("0 probes)")


def test_a_notebook_shows_the_first_the_middle_and_the_last_probe(result):
    html = result._repr_html_()
    assert html.startswith(f"<p>{result!r}</p><table")
    cells = re.findall(r"<td>(.*?)</td>", html)
    head = re.findall(r"<th>(.*?)</th>", html)
    assert head == ["time (s)", *result.measured, "messages sent", "bytes sent"]
    assert cells[:: len(head)] == ["0", "4", "8"]
    assert cells[-2] == str(int(result.final["sent"]))


@pytest.mark.parametrize("n", [1, 2])
def test_a_notebook_shows_no_probe_twice(n):
    rows = simulate(WORLD, until=1.0, seed=1, every=1.0, stop=Target("time", at_least=n - 1.0))._repr_html_()
    assert rows.count("<tr") == 1 + n
    assert "(stopped: time &gt;= " in rows or n == 2


def test_a_notebook_shows_a_run_without_probes():
    assert "0 probes" in interrupted_at(0.0)._repr_html_()


def test_measured_and_final():
    bare = simulate(WORLD, until=2.0, seed=1, every=1.0)
    assert bare.measured == []
    assert bare.final["time"] == 2.0
    told = simulate(WORLD, until=2.0, seed=1, probes=[truth_rmse(DATA.truth), rmse(DATA.train, name="train_rmse")])
    assert told.measured == ["truth_rmse", "train_rmse"]
    assert told.final == told.probes.iloc[-1].to_dict()
    assert interrupted_at(0.0).final == {}
    assert interrupted_at(0.0).measured == []


def test_targets_and_plateaus_of_a_result(result):
    assert result.to_target(3.0) == Target("test_rmse", at_most=3.0).find(result.probes)
    fall = result.probes["test_rmse"]
    assert result.to_target(float(fall.iloc[4])).time <= 4.0
    assert not result.to_target(0.0).reached
    assert result.to_target(0, metric="sent").time == 0.0
    found = result.plateau(window=2.0, tolerance=10.0)
    assert found == Plateau("test_rmse", window=2.0, tolerance=10.0).find(result.probes)
    assert found.time == 2.0
    with pytest.raises(ValueError, match="metric must be a column of the probe table, got 'recall'; it has time, test"):
        result.to_target(1.0, metric="recall")
    with pytest.raises(ValueError, match="Plateau: window must be"):
        result.plateau(window=0.0, tolerance=1.0)


def test_disclosures_need_the_ratings_of_the_run(folder, result):
    table = result.disclosures()
    assert list(table) == ["user", "item", "routers"]
    assert table["routers"].tolist() == result.disclosed.tolist()
    assert table["user"].tolist() == [DATA.train.user_ids[user] for user in DATA.train.user]
    assert table["item"].tolist() == [DATA.train.item_ids[item] for item in DATA.train.item]
    loaded = Result.load(folder)
    with pytest.raises(ValueError, match=r"ratings must be given, since a result read from disk holds none; pass"):
        loaded.disclosures()
    others = DATA.train.select(np.arange(len(DATA.train)) > 0)
    for each in (loaded, result):
        with pytest.raises(ValueError, match=r"ratings must be those that the run learned from \(SHA-256"):
            each.disclosures(others)


def test_results_of_one_simulation_are_saved_as_they_were(tmp_path):
    simulation = Simulation(WORLD, seed=1)
    first = simulation.run(2.0)
    place = first.save(tmp_path / "first")
    simulation.run(4.0).save(tmp_path / "second")
    assert_same(Result.load(place), first)
    assert Result.load(tmp_path / "second").time == 4.0
