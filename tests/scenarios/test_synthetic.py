import json
import shlex
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from algorithms.metrics import factorization_rmse, rmse
from algorithms.sequential import Sequential
from algorithms.solvers import AlternatingLeastSquares
from algorithms.synthetic import low_rank, noise_weight, oracle_rate
from netsim import Periodic, World, simulate
from netsim.result import package_versions
from scenarios import synthetic
from tests.scenarios.comparing import arguments

SMALL = ["--sizes", "16,12", "--seeds", "1,3", "--rank", "2", "--until", "60", "--places", "6", "--loss", "0.05"]
FILES = ["configuration.json", "errors.csv", "errors.png", "summary.json"]


def read(out):
    return pd.read_csv(out / "errors.csv"), json.loads((out / "summary.json").read_text(encoding="utf-8"))


def status_of(argv):
    try:
        return synthetic.main(argv)
    except SystemExit as end:
        return end.code


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder, standard output and exit status of one small run."""
    out = tmp_path_factory.mktemp("synthetic") / "made for it"
    with redirect_stdout(StringIO()) as printed:
        status = synthetic.main([*SMALL, "--out", str(out)])
    return out, printed.getvalue(), status


@pytest.fixture
def some():
    """A table of errors as a run would leave it: two sizes, three seeds."""
    rows = [
        {"generator": "uniform", "size": size, "seed": seed, "method": method, "lam": 0.5 * size}
        | {"truth_rmse": 10 / size + 0.01 * seed + shift, "messages_sent": 100 * seed if method == "network" else None}
        for size in (200, 100)
        for seed in (1, 2, 3)
        for method, shift in (("network", 0.0), ("sequential", 0.1), ("als", -0.02), ("oracle", -0.03))
    ]
    return pd.DataFrame(rows)


def test_measures_each_method_on_each_matrix(run):
    out, _, status = run
    assert status == 0
    assert sorted(file.name for file in out.iterdir()) == FILES
    table, _ = read(out)
    named = list(table[["generator", "size", "seed", "method"]].itertuples(index=False, name=None))
    assert named == [
        (generator, size, seed, method)
        for generator in ("uniform", "gaussian")
        for size in (16, 12)
        for seed in (1, 3)
        for method in ("network", "sequential", "als", "oracle")
    ]
    assert table["truth_rmse"].between(0.01, 1.5).all()
    assert table["test_rmse"].isna().eq(table["method"] == "oracle").all()


def test_rows_hold_what_the_methods_give_on_these_ratings(run):
    out, _, _ = run
    table, _ = read(out)
    rows = table[(table["generator"] == "gaussian") & (table["size"] == 12) & (table["seed"] == 3)].set_index("method")
    data = low_rank(12, 12, rank=2, missing=0.2, seed=3, generator="gaussian")
    lam = noise_weight(12, 12, n_observed=len(data.train), shrinkage=0.25)
    assert rows["lam"].tolist() == pytest.approx([lam] * 4)
    als = AlternatingLeastSquares(2, lam=lam, seed=3).fit(data.train)
    assert rows.loc["als", "truth_rmse"] == pytest.approx(
        factorization_rmse(als.user_profiles_, als.item_profiles_, data.truth)
    )
    test_error = rmse(als.predict(data.test.user, data.test.item), data.test.value)
    assert rows.loc["als", "test_rmse"] == pytest.approx(test_error)
    assert rows.loc["oracle", "truth_rmse"] == pytest.approx(oracle_rate(12, 12, rank=2, n_observed=len(data.train)))


def test_sequential_form_makes_as_many_updates_as_the_network(run):
    table, _ = read(run[0])
    updates = table.pivot_table("profile_updates", ["generator", "size", "seed"], "method")
    assert list(updates.columns) == ["network", "sequential"]
    assert updates["network"].equals(updates["sequential"].rename("network"))
    assert updates["network"].min() > 100


def test_sequential_form_in_pieces_has_the_bits_of_one_run(monkeypatch):
    this = synthetic.case(arguments("synthetic", SMALL), "uniform", 12, 1)
    monkeypatch.setattr(synthetic, "PIECE", 700)
    ratings, learning = this.data.train, this.world.learning
    whole, pieces = Sequential(ratings, learning, 1).run(2_000), synthetic.sequential(ratings, learning, 2_000, 1)
    assert pieces.user_profiles.tobytes() == whole.user_profiles.tobytes()


def test_one_rule_gives_lambda_without_a_look_at_the_ratings(run):
    table, summary = read(run[0])
    assert (table.groupby("size")["lam"].nunique() == 1).all()  # whatever the generator and the seed
    ratio = table.loc[table["size"] == 16, "lam"].iloc[0] / table.loc[table["size"] == 12, "lam"].iloc[0]
    assert ratio == pytest.approx(np.sqrt(16 / 12), rel=0.01)
    assert summary["rule"].startswith("lambda = 0.25 sigma sqrt(p) (sqrt m + sqrt n)")


def test_standard_output_shows_the_summary_and_the_rule(run):
    out, printed, _ = run
    _, summary = read(out)
    assert summary["rule"] in printed
    assert "2 seeds" in printed
    lines = printed.splitlines()
    for row in summary["rows"]:
        begin = lines.index(f"generator {row['generator']}")
        (line,) = [line for line in lines[begin + 2 : begin + 4] if line.split()[0] == str(row["size"])]
        for method in ("network", "sequential", "als"):
            assert f"{row[method]:.3f} ({row[f'{method}_sd']:.3f})" in line
        assert f"{row['oracle']:.3f}" in line
        assert f"{row['messages_sent']:,}" in line
    for name in FILES:
        assert name in printed


def test_configuration_says_what_was_run(run):
    out = run[0]
    configuration = json.loads((out / "configuration.json").read_text(encoding="utf-8"))
    assert shlex.split(configuration["command"]) == ["python", "-m", "scenarios.synthetic", *SMALL, "--out", str(out)]
    assert configuration["arguments"]["sizes"] == [16, 12]
    assert configuration["arguments"]["half_life"] == 12.0  # a default
    assert configuration["versions"] == package_versions()
    assert len(configuration["worlds"]) == 8
    world = configuration["worlds"]["gaussian, 12, seed 3"]
    assert world["ratings"]["n_users"] == 12
    assert world["loss"] == 0.05
    assert world["learning"]["regularization"] == "uniform"


def test_the_same_arguments_give_the_same_table(run, tmp_path):
    argv = [*SMALL, "--sizes", "12", "--generator", "gaussian", "--out", str(tmp_path)]
    assert synthetic.main(argv) == 0
    kept, _ = read(run[0])
    part = kept[(kept["generator"] == "gaussian") & (kept["size"] == 12)].reset_index(drop=True)
    pd.testing.assert_frame_equal(read(tmp_path)[0], part, check_exact=True, check_dtype=False)


def test_arguments_reach_the_world():
    argv = [
        "--rank",
        "3",
        "--missing",
        "0.5",
        "--shrinkage",
        "2",
        "--rate",
        "0.03",
        "--half-life",
        "4",
        "--period",
        "5",
    ]
    args = arguments("synthetic", [*argv, "--places", "7", "--loss", "0.25"])
    this = synthetic.case(args, "uniform", 20, 1)
    world, learning = this.world, this.world.learning
    assert isinstance(world, World)
    assert len(this.data.train) == 200
    assert learning.rank == 3
    assert learning.lam == pytest.approx(2 / np.sqrt(12) * np.sqrt(0.5) * 2 * np.sqrt(20))
    assert learning.rate.parameters()[0] == 0.03
    assert (learning.schedule.form, learning.schedule.half_life) == ("exponential", 4)
    assert world.user_broadcast == world.router_broadcast == Periodic(5.0)
    assert (world.topology.n_places, world.loss) == (7, 0.25)


def test_summary_is_mean_and_deviation_over_the_seeds(some):
    table = synthetic.summarize(some)
    assert table["size"].tolist() == [200, 100]
    row = table.iloc[1]
    assert row["network"] == pytest.approx(0.12)
    assert row["network_sd"] == pytest.approx(0.01)
    assert row["sequential"] == pytest.approx(0.22)
    assert row["als"] == pytest.approx(0.10)
    assert (row["lam"], row["paper"], row["n_seeds"], row["messages_sent"]) == (50, 0.17, 3, 200)
    assert synthetic.summarize(some[some["seed"] == 2])["network_sd"].isna().all()


def test_the_papers_figures_stand_beside_its_own_setting_only(some, tmp_path):
    assert synthetic.summarize(some)["paper"].tolist() == [0.15, 0.17]
    assert synthetic.summarize(some.replace({"size": {200: 250}}))["paper"].isna().tolist() == [True, False]
    argv = ["--sizes", "100", "--seeds", "1", "--generator", "uniform", "--until", "20"]
    for rank, paper in (("10", 0.17), ("9", None)):
        assert synthetic.main([*argv, "--rank", rank, "--out", str(tmp_path)]) == 0
        assert read(tmp_path)[1]["rows"][0]["paper"] == paper


def test_a_diverged_seed_is_not_left_out_of_the_mean(some):
    some.loc[(some["size"] == 100) & (some["seed"] == 2) & (some["method"] == "network"), "truth_rmse"] = np.nan
    table = synthetic.summarize(some)
    assert table["network"].isna().tolist() == [False, True]
    assert table["sequential"].notna().all()


def test_divergence_is_told_and_still_gives_json_that_others_can_read(tmp_path, capsys):
    argv = ["--sizes", "12", "--seeds", "1", "--rank", "2", "--until", "60", "--rate", "50", "--out", str(tmp_path)]
    assert synthetic.main(argv) == 0
    assert "4 of 8 rows diverged; try a smaller --rate." in capsys.readouterr().out
    text = (tmp_path / "summary.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert json.loads(text)["rows"][0]["network"] is None
    assert (tmp_path / "errors.png").is_file()


def test_figure_shows_each_method_with_deviations_and_names(some):
    table = synthetic.summarize(some)
    ax = synthetic.draw(table)
    try:
        labels = ax.get_legend_handles_labels()[1]
        assert set(labels) == {"network", "sequential", "ALS", "oracle rate", "seed paper"}
        lines = {container.get_label(): container[0] for container in ax.containers}
        assert lines["network"].get_ydata() == pytest.approx([0.12, 0.07])  # from the smallest size up
        assert lines["ALS"].get_ydata() == pytest.approx([0.10, 0.05])
        assert ax.get_xlabel()
        assert "RMS error" in ax.get_ylabel()
        other = plt.figure().subplots()
        assert synthetic.draw(table, ax=other) is other
    finally:
        plt.close("all")


def test_figure_file_has_colours_in_it(run):
    pixels = imread(run[0] / "errors.png")[::4, ::4]
    colours = np.unique(np.round(pixels[..., :3].reshape(-1, 3), 1), axis=0)
    assert np.sum(np.ptp(colours, axis=1) > 0.3) >= 3
    assert not plt.get_fignums()


@pytest.mark.parametrize("finished", [1, 3])
def test_ctrl_c_keeps_the_matrices_that_were_finished(run, tmp_path, monkeypatch, capsys, finished):
    begun = []
    network = synthetic.network

    def stopped(*arguments):
        begun.append(arguments)
        if len(begun) > finished:
            raise KeyboardInterrupt
        return network(*arguments)

    monkeypatch.setattr(synthetic, "network", stopped)
    assert synthetic.main([*SMALL, "--out", str(tmp_path)]) == 130
    kept, summary = read(tmp_path)
    whole, _ = read(run[0])
    pd.testing.assert_frame_equal(kept, whole.iloc[: 4 * finished], check_exact=True, check_dtype=False)
    assert summary["interrupted"] is True
    assert "Interrupted: the cases that were finished are kept" in capsys.readouterr().out
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES


def test_ctrl_c_inside_the_network_stops_the_scenario(tmp_path, monkeypatch, capsys):
    def stopped(*arguments, progress, **named):
        def report(time, row):
            raise KeyboardInterrupt

        return simulate(*arguments, progress=report, **named)

    monkeypatch.setattr(synthetic, "simulate", stopped)
    assert synthetic.main([*SMALL, "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == "Interrupted before anything was measured; nothing was written.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--sizes", "1"], "sizes"),
        (["--sizes", "50,50"], "sizes"),
        (["--sizes", "x"], "sizes"),
        (["--sizes", "50-20"], "sizes"),
        (["--seeds", "-1"], "seeds"),
        (["--seeds", ""], "seeds"),
        (["--generator", "normal"], "generator"),
        (["--rank", "13"], "rank must be an integer from 1 to 12, got 13"),
        (["--rank", "1"], "rank must be >= 2"),
        (["--missing", "0"], "missing"),
        (["--shrinkage", "0"], "shrinkage"),
        (["--shrinkage", "inf"], "shrinkage"),
        (["--half-life", "inf"], "half_life"),
        (["--until", "inf"], "until"),
        (["--loss", "2"], "loss"),
    ],
)
def test_a_mistake_ends_with_status_2_and_one_line_that_names_it(argv, named, tmp_path, capsys):
    assert status_of([*SMALL, "--out", str(tmp_path), *argv]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("python -m scenarios.synthetic: error: ")
    assert named in line
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_out_that_is_a_file_is_refused_before_anything_is_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(synthetic, "network", None)
    file = Path(tmp_path) / "taken"
    file.write_text("mine")
    assert synthetic.main(["--out", str(file)]) == 2
    assert "cannot be made a folder" in capsys.readouterr().err
    assert file.read_text() == "mine"


SIZES = [100, pytest.param(200, marks=pytest.mark.statistical), pytest.param(500, marks=pytest.mark.statistical)]


@pytest.mark.parametrize("size", SIZES)
def test_errors_are_no_worse_than_the_papers_with_the_defaults(size, tmp_path):
    assert synthetic.main(["--sizes", str(size), "--generator", "uniform", "--out", str(tmp_path)]) == 0
    (row,) = read(tmp_path)[1]["rows"]
    assert row["n_seeds"] == 5
    assert round(row["network"], 2) <= row["paper"]
    assert abs(row["network"] - row["sequential"]) <= 0.01
    assert row["als"] < row["network"] + 0.005  # who sees all the data is hardly worse
