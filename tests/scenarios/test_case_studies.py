import argparse

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from algorithms.ratings import Ratings
from scenarios import case_studies
from scenarios.case_studies import Choices, Grids, choices, dots, histogram, lambda_note, split, strict
from scenarios.completion import LAMBDAS, METHODS, Completed, complete, fit_rows, held_out_cells, in_order, method_style
from scenarios.replications import SECONDS, parser


@pytest.fixture
def ratings():
    rng = np.random.default_rng(2)
    matrix = np.where(rng.random((30, 20)) < 0.5, rng.integers(1, 6, (30, 20)), 0)
    user, item = np.nonzero(matrix)
    return Ratings.from_arrays(user, item, matrix[user, item], scale=(1, 5), user_ids=range(30), item_ids=range(20))


# -- split ---------------------------------------------------------------------------------------------------------


def test_a_split_holds_out_a_fifth_and_loses_nothing(ratings):
    this = split(ratings, seed=[1, 0])
    assert len(this.truth) == round(0.2 * len(ratings))
    assert np.isnan(this.train[this.row, this.column]).all()
    whole = this.train.copy()
    whole[this.row, this.column] = this.truth
    expected = np.full((30, 20), np.nan)
    expected[ratings.user, ratings.item] = ratings.value
    np.testing.assert_array_equal(whole, expected)


def test_splits_of_other_seeds_differ_and_of_the_same_do_not(ratings):
    one, same, other = (split(ratings, seed=[1, at]) for at in (0, 0, 1))
    np.testing.assert_array_equal(one.train, same.train)
    assert not np.array_equal(np.isnan(one.train), np.isnan(other.train))


def test_an_item_without_a_training_rating_leaves():
    """Item 1 has one rating, which some seed holds out: then it is neither trained on nor tested."""
    user, item = [0, 1, 2, 3, 0, 1, 2, 3, 2], [0, 0, 0, 0, 2, 2, 2, 2, 1]
    few = Ratings.from_arrays(user, item, [1, 2, 3, 4, 5, 4, 3, 2, 1], scale=(1, 5), item_ids=range(3))
    seen = set()
    for seed in range(40):
        this = split(few, seed=seed)
        seen.add((this.train.shape[1], len(this.truth)))
        assert (~np.isnan(this.train)).any(axis=0).all()
        columns = {2: [0, 2], 3: [0, 1, 2]}[this.train.shape[1]]
        for row, column, truth in zip(this.row, this.column, this.truth, strict=True):
            assert (row, columns[column], truth) in zip(few.user, few.item, few.value, strict=True)
    assert seen == {(3, 2), (2, 1)}


def test_the_error_is_the_mean_absolute_one(ratings):
    this = split(ratings, seed=3)
    done = Completed("mode", np.full(this.train.shape, 2.5), np.nan, 0, True, 0.25)
    error, seconds = case_studies.error_rows({"mode": done}, this)
    assert error == {"method": "mode", "metric": "mae", "value": pytest.approx(np.abs(this.truth - 2.5).mean())}
    assert seconds == {"method": "mode", "metric": SECONDS, "value": 0.25}


# -- fits ----------------------------------------------------------------------------------------------------------


def test_each_method_chooses_from_its_own_grid(ratings):
    train = split(ratings, seed=1).train
    names = ("rdmc_pseudo_huber_liberal", "soft_impute", "soft_impute_discretized", "mode")
    cells = held_out_cells(train, n_splits=2, seed=1)
    grids = Grids((0.1, 0.2), (0.3, 0.4))
    options = {"categories": np.arange(1.0, 6.0), "held_out": cells, "seed": 5}
    done = case_studies.completed(train, names, grids=grids, **options)
    assert tuple(done) == names
    for name in names:
        (alone,) = complete(train, [name], lambdas=grids.of(name), **options).values()
        np.testing.assert_array_equal(done[name].matrix, alone.matrix)
        assert np.isnan(alone.lam) or alone.lam in grids.of(name)
    rows = pd.DataFrame(fit_rows(done["soft_impute"], attack="none"))
    assert list(rows["metric"]) == ["lam", "n_iter", SECONDS]
    assert set(rows["attack"]) == {"none"}
    assert [row["metric"] for row in fit_rows(done["mode"])] == [SECONDS]


# -- arguments -----------------------------------------------------------------------------------------------------


def chosen(*argv, default=None):
    made = parser("some", "Some.", replications=3)
    case_studies.add_arguments(made, default or Choices(), paper="")
    args = made.parse_args(argv)
    assert isinstance(args, argparse.Namespace)
    return choices(args, default or Choices()), args


def test_the_papers_counts_are_one_flag_away():
    few = Choices(("mode",), 2, Grids((0.1,), (0.2,)))
    assert chosen(default=few)[0] == few
    paper, args = chosen("--paper", default=few)
    assert paper == Choices(tuple(METHODS), 10, Grids(LAMBDAS, LAMBDAS))
    assert args.replications == 3


def test_what_is_given_goes_before_the_papers_counts():
    got, _ = chosen("--paper", "--splits", "4", "--methods", "mode,median", "--lambdas", "0.5,0.1")
    assert got == Choices(("median", "mode"), 4, Grids((0.1, 0.5), (0.1, 0.5)))


def test_the_default_leaves_out_two_losses():
    assert set(METHODS) - set(case_studies.DEFAULT) == {
        f"rdmc_{loss}{stop}" for loss in ("absolute", "truncated") for stop in ("", "_liberal")
    }


# -- reports -------------------------------------------------------------------------------------------------------


def of_lambdas(**lams):
    return pd.DataFrame(
        [{"method": name, "metric": "lam", "value": lam} for name, values in lams.items() for lam in values]
    )


def test_lambdas_at_an_end_are_counted_once_a_fit():
    grids = Grids((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    rows = of_lambdas(rdmc_pseudo_huber=[0.1, 0.2], soft_impute=[0.6], soft_impute_discretized=[0.6])
    note = lambda_note(rows, grids, 2)
    assert "on 2 splits from 0.100, 0.200, 0.300 for RDMC and 0.400, 0.500, 0.600 for SI; in 2 of 3 fits" in note
    assert note.endswith("(--paper).")
    assert "fits" not in lambda_note(of_lambdas(soft_impute=[0.5]), grids, 2)
    assert "fits" not in lambda_note(of_lambdas(soft_impute=[0.5]), Grids((0.5,), (0.5,)), 1)
    assert lambda_note(of_lambdas(soft_impute=[LAMBDAS[3]]), Grids(), 10).endswith("as in the paper.")
    assert lambda_note(rows[:0], grids, 2) == ""


def seconds(rdmc, liberal, si):
    taken = {"rdmc_pseudo_huber": rdmc, "rdmc_pseudo_huber_liberal": liberal, "soft_impute": si}
    return pd.DataFrame([{"method": name, "value": value} for name, value in taken.items()])


@pytest.mark.parametrize(
    ("taken", "holds"), [((40, 8, 6), [True, True]), ((20, 8, 6), [False, True]), ((40, 8, 3), [True, False])]
)
def test_findings_on_seconds_follow_the_numbers(taken, holds):
    found = list(case_studies.seconds_findings(seconds(*taken), times=3))
    assert [each.holds for each in found] == holds
    assert f"{taken[0]} s and {taken[1]} s" in found[0].evidence
    assert list(case_studies.seconds_findings(seconds(*taken)[1:], times=3)) == []
    assert len(list(case_studies.seconds_findings(seconds(*taken), times=None))) == 1


def test_skewness_has_the_sign_of_the_longer_tail():
    assert case_studies.skewness(np.array([1.0, 4.0, 5.0, 5.0])) < 0
    assert case_studies.skewness(np.array([1.0, 1.0, 2.0, 5.0])) > 0
    assert case_studies.skewness(np.array([1.0, 2.0, 3.0])) == pytest.approx(0)


def test_methods_are_put_in_order_and_rows_of_one_stay_so():
    rows = pd.DataFrame({"method": ["mode", "soft_impute", "mode"], "value": [1, 2, 3]})
    assert in_order(rows)["value"].tolist() == [2, 1, 3]
    assert in_order(rows.assign(k=[5, 5, 3]), "k")["value"].tolist() == [3, 2, 1]


# -- plots ---------------------------------------------------------------------------------------------------------


def test_a_histogram_has_a_panel_a_group_and_shares_that_add_up():
    figure = histogram({"a": np.array([1.0, 1, 5]), "b": np.array([2.0, 2, 2, 4])}, [1, 2, 3, 4, 5])
    one, two = figure.axes
    assert [bar.get_height() for bar in one.patches] == pytest.approx([2 / 3, 0, 0, 0, 1 / 3])
    assert [bar.get_height() for bar in two.patches] == [0, 0.75, 0, 0.25, 0]
    assert one.get_title() == "a, 3 ratings"


def test_dots_show_means_values_and_marks_by_method():
    rows = pd.DataFrame({"method": ["soft_impute", "soft_impute", "rdmc_pseudo_huber"], "value": [1.0, 3.0, 4.0]})
    _, ax = plt.subplots()
    dots(ax, rows, "MAE", marks={"soft_impute": 2.5})
    assert [label.get_text() for label in ax.get_yticklabels()] == ["RDMC-pHuber", "SI"]
    drawn = {(tuple(line.get_xdata()), tuple(line.get_ydata())) for line in ax.get_lines()}
    assert drawn == {((4.0,), (0,)), ((1.0, 3.0), (1, 1)), ((2.0,), (1,)), ((2.5,), (1,))}
    assert ax.yaxis_inverted()


def test_a_method_that_stops_early_looks_like_its_strict_one_but_hollow():
    for name in METHODS:
        look, of_strict = method_style(name), method_style(strict(name))
        assert (look["color"], look["marker"]) == (of_strict["color"], of_strict["marker"])
        assert (look["markerfacecolor"] == "white") == name.endswith("_liberal")
    looks = {(method_style(name)["color"], method_style(name)["linestyle"]) for name in METHODS}
    assert len(looks) == len(METHODS)
