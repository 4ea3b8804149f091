import numpy as np
import pandas as pd
import pytest

from algorithms.synthetic import abandoned, careless, survey
from scenarios import survey as scenario
from scenarios.completion import METHODS, complete, held_out_cells
from scenarios.survey import (
    ABANDONMENT,
    DISCRETIZED,
    FIGURES,
    LOSSES,
    MAIN,
    SI,
    Settings,
    Task,
    findings,
    measure,
    parts,
    simulated,
)
from tests.scenarios.experiments import check_report, experiment, mistake, value, where

SETTINGS = Settings(seed=4, n_respondents=40, n_splits=2, lambdas=(0.05, 0.2))
SMALL = ["--respondents", "40", "--splits", "2", "--lambdas", "0.05,0.2", "--seed", "4", "--jobs", "2"]
PART = [*SMALL, "--items", "40", "--categories", "5,9", "--careless", "0,0.2"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Folder, printed text and exit status of a small run."""
    out = tmp_path_factory.mktemp("survey") / "out"
    argv = ["--abandonment", "0.4,0.5", "--methods", ",".join(MAIN), "--replications", "2"]
    return experiment(scenario.main, [*PART, *argv], out)


@pytest.fixture(scope="module")
def rows(ran):
    return pd.read_csv(ran[0] / "replications.csv")


# -- what is written -----------------------------------------------------------------------------------------------


def test_writes_a_figure_for_each_abandonment(ran):
    findings = check_report(ran, figures={"figure15", "survey_40_items_0-5"}, tasks=16)
    assert list(findings) == ["figure15", "survey_40_items_0-5"]
    assert all(findings.values())
    assert ran[1].count("The paper: ") == sum(map(len, findings.values()))


def test_rows_are_of_all_conditions_and_methods(rows):
    errors = rows[rows["metric"] == "mae"]
    assert len(errors) == 2 * 2 * 2 * 2 * len(MAIN)
    assert set(errors["method"]) == set(MAIN)
    tuned = {name for name in MAIN if METHODS[name].tuned}
    assert set(rows.loc[rows["metric"] == "n_iter", "method"]) == tuned
    assert set(rows.loc[rows["metric"] == "lam", "value"]) == {0.05, 0.2}
    assert rows["value"].notna().all()


def test_the_table_shows_the_means_of_the_rows(ran, rows):
    mean = where(rows, metric="mae", method="mode", n_items=40, n_categories=9, careless=0.2, abandonment=0.4).mean()
    lines = ran[1].splitlines()
    begin = lines.index("20% careless")  # of the first figure
    (line,) = [line for line in lines[begin : begin + 10] if line.startswith("mode")]
    assert f"{mean:.3f} (" in line.split("  ")[-1]


# -- what is measured ----------------------------------------------------------------------------------------------


def test_a_task_measures_what_the_paper_defines():
    """All of it once more, from the functions that a task is made of."""
    task = Task(1, 40, 7, 0.4, 0.2, ("rdmc_truncated", "soft_impute", "soft_impute_discretized"))
    got = pd.DataFrame(measure(task, SETTINGS))
    world = survey(40, seed=[4, 1, scenario.ANSWERS], items_per_construct=4, n_categories=7)
    missing = abandoned((40, 40), seed=[4, 1, scenario.ABANDONED], share=0.4)
    answers, random = careless(world.complete, seed=[4, 1, scenario.CARELESS], share=0.2, n_categories=7)
    assert (missing.any(axis=1).sum(), random.sum()) == (16, 8)
    assert (missing.any(axis=1) & random).any()
    observed = np.where(missing, np.nan, answers)
    cells = held_out_cells(observed, n_splits=2, seed=[4, 1, scenario.HELD_OUT])
    done = complete(observed, task.methods, categories=np.arange(1, 8), held_out=cells, lambdas=SETTINGS.lambdas)
    for name in task.methods:
        errors = [
            abs(done[name].matrix[i, j] - world.complete[i, j])
            for i, j in zip(*np.nonzero(missing), strict=True)
            if not random[i]
        ]
        assert value(got, method=name, metric="mae") == pytest.approx(np.mean(errors), rel=1e-12)
        assert value(got, method=name, metric="lam") == done[name].lam
        assert value(got, method=name, metric="n_iter") == done[name].n_iter


def test_workers_measure_what_this_process_does(rows):
    here = pd.DataFrame(measure(Task(1, 40, 9, 0.4, 0.2, MAIN), SETTINGS)).query("metric != 'cpu_seconds'")
    there = where(rows, replication=1, n_items=40, n_categories=9, abandonment=0.4, careless=0.2)
    np.testing.assert_allclose(here["value"], there, rtol=1e-9, atol=1e-12)


def test_conditions_of_a_replication_are_pairs():
    few = simulated(Task(0, 40, 5, 0.2, 0.1, ()), SETTINGS)
    many = simulated(Task(0, 40, 9, 0.6, 0.2, ()), SETTINGS)
    np.testing.assert_array_equal(few.world.latent, many.world.latent)
    assert many.missing[few.missing].all()
    assert many.careless[few.careless].all()
    assert many.careless.sum() == 2 * few.careless.sum() == 8
    other = simulated(Task(1, 40, 5, 0.2, 0.1, ()), SETTINGS)
    assert (other.missing != few.missing).any()
    assert (other.careless != few.careless).any()
    assert (other.world.complete != few.world.complete).any()


def test_careless_answers_are_seen_and_not_judged():
    data = simulated(Task(0, 80, 7, 0.6, 0.2, ()), Settings(seed=1))
    assert data.observed.shape == (300, 80)
    seen = data.observed[data.careless]
    assert set(seen[~np.isnan(seen)]) == {1.0, 7.0}
    assert data.missing[data.careless].any()
    assert not data.judged[data.careless].any()
    np.testing.assert_array_equal(data.judged[~data.careless], data.missing[~data.careless])
    genuine = data.observed[~data.careless]
    known = ~np.isnan(genuine)
    np.testing.assert_array_equal(genuine[known], data.world.complete[~data.careless][known])


def test_nothing_to_judge_is_told():
    with pytest.raises(ValueError, match="no answer is missing of a respondent who is not careless; take more"):
        measure(Task(0, 40, 5, 0.0, 0.0, ("mode",)), SETTINGS)
    with pytest.raises(ValueError, match="a smaller one of careless"):
        measure(Task(0, 40, 5, 0.5, 1.0, ("mode",)), SETTINGS)


# -- tasks ---------------------------------------------------------------------------------------------------------


def arguments(*argv):
    return scenario._parser().parse_args(argv)


def test_tasks_come_replication_by_replication():
    found = scenario.tasks(arguments("--replications", "2", "--categories", "5,9", "--items", "40", "--careless", "0"))
    assert found == [Task(r, 40, k, 0.2, 0.0, MAIN) for r in (0, 1) for k in (5, 9)]


def test_the_papers_own_counts_are_one_flag_away():
    found = scenario.tasks(arguments("--paper"))
    assert len(found) == 100 * 2 * 3 * 3 * 3
    assert {each.abandonment for each in found} == set(ABANDONMENT)
    assert {each.abandonment for each in scenario.tasks(arguments("--paper", "--abandonment", "0.4"))} == {0.4}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--items", "0,40"], "expected distinct integers >= 1, such as 40,80, got '0,40'"),
        (["--categories", "1"], "expected distinct integers >= 2"),
        (["--categories", "5,5"], "expected distinct integers >= 2"),
        (["--careless", "0.1,0.1"], "expected distinct numbers in [0, 1], such as 0,0.1, got '0.1,0.1'"),
        (["--careless", "10"], "expected a number in [0, 1], got '10'"),
        (["--abandonment", "some"], "expected a number in [0, 1], got 'some'"),
        (["--methods", "svd"], "expected distinct names of rdmc_pseudo_huber"),
    ],
)
def test_a_mistake_is_told_in_one_line(argv, said, tmp_path, capsys):
    assert said in mistake(scenario.main, argv, tmp_path, capsys)


def test_items_that_constructs_cannot_share_alike_are_told(tmp_path, capsys):
    line = mistake(scenario.main, ["--items", "40,45"], tmp_path, capsys)
    assert "--items 45: must be a multiple of --constructs 10" in line


# -- findings ------------------------------------------------------------------------------------------------------

# MAE of pHuber, absolute, truncated, SI, SI-discretized, median and its discretized variant, mode: as the paper tells.
AS_TOLD = {
    0.0: (0.60, 0.61, 0.62, 0.64, 0.59, 0.70, 0.70, 0.74),
    0.1: (0.61, 0.60, 0.605, 0.70, 0.62, 0.71, 0.71, 0.75),
    0.2: (0.66, 0.62, 0.60, 0.75, 0.68, 0.72, 0.72, 0.76),
}


def told(n_items=40, abandonment=0.2, change=None, liberal=None):
    """Rows of two replications; `change` maps (careless, categories, method) to an error."""
    made = []
    for share, values in AS_TOLD.items():
        errors = dict(zip(MAIN, values, strict=True))
        if liberal is not None:
            errors |= {f"{name}_liberal": errors[name] + liberal for name in LOSSES}
        for k in (5, 7, 9):
            for name, error in errors.items():
                # SI suffers from careless answers, the more the more categories there are.
                worse = share * (k - 5) / 4 if name in (SI, DISCRETIZED) else 0.0
                wider = 0.1 * (n_items == 80) if name == SI else 0.0
                here = (change or {}).get((share, k, name), error + worse + wider)
                made += [
                    {
                        "replication": replication,
                        "n_items": n_items,
                        "n_categories": k,
                        "abandonment": abandonment,
                        "careless": share,
                        "method": name,
                        "metric": "mae",
                        "value": here + sign * 0.01,
                    }
                    for replication, sign in enumerate((-1, 1))
                ]
    return pd.DataFrame(made)


def found(rows):
    """Findings by number of the figure."""
    there = set(zip(rows["n_items"], rows["abandonment"], strict=True))
    return {number: list(findings(rows, *where)) for where, number in FIGURES.items() if where in there}


def failing(rows):
    return [(number, each.claim) for number, those in found(rows).items() for each in those if not each.holds]


def counts(rows):
    return {number: len(those) for number, those in found(rows).items()}


def test_errors_as_the_paper_tells_them_have_all_that_it_found():
    everything = pd.concat([told(p, left, liberal=0.005) for p in (40, 80) for left in ABANDONMENT], ignore_index=True)
    assert counts(everything) == {13: 8, 14: 7, 15: 9, 16: 8, 17: 9, 18: 8}
    assert failing(everything) == []


@pytest.mark.parametrize(
    ("n_items", "change", "claim"),
    [
        (40, {(0.0, 5, "mode"): 2.0}, "differences between methods are smaller"),
        (40, {(0.1, 5, "rdmc_absolute"): 0.66}, "with 10% careless and 5 categories RDMC and SI-discretized are"),
        (40, {(0.1, 9, "rdmc_absolute"): 0.73}, "with 10% careless and 7 or 9 categories RDMC is better"),
        (40, {(0.1, 9, DISCRETIZED): 0.63}, "with more categories RDMC's robustness tells more"),
        (40, {(0.0, 7, "rdmc_pseudo_huber"): 0.5}, "without careless respondents the pseudo-Huber loss is close"),
        (40, {(0.0, 7, "rdmc_truncated"): 0.595}, "and it is the best of the three losses"),
        (40, {(0.2, 7, "median"): 0.5}, "with 20% careless the truncated loss is the best of all methods"),
        (80, {(0.0, 9, "rdmc_truncated"): 0.75}, "without careless respondents RDMC is between"),
        (80, {(0.1, 5, "rdmc_pseudo_huber"): 0.625}, "with careless respondents RDMC is better than both SIs"),
    ],
)
def test_an_error_that_is_otherwise_changes_what_is_said_of_it(n_items, change, claim):
    ((_, otherwise),) = failing(told(n_items, change=change))
    assert otherwise.startswith(claim)


def test_exceptions_are_named():
    (finding,) = [each for each in found(told(80, change={(0.1, 5, LOSSES[0]): 0.625}))[14] if not each.holds]
    assert finding.evidence == "in 17 of 18 comparisons; not with 5 categories, 10%, pHuber"


def test_differences_are_pairs():
    """The two replications differ by 0.02 and all methods alike, so a difference is certain."""
    evidence = " ".join(finding.evidence for finding in found(told())[13])
    assert "-0.020 (0.000) with 5 categories (RDMC-absolute)" in evidence


def test_wider_differences_and_likeness_need_what_they_are_compared_with():
    assert counts(told(80)) == {14: 5}
    assert counts(pd.concat([told(80), told(40)])) == {13: 7, 14: 6}
    assert counts(told(40, 0.4)) == {15: 7}
    narrow = told(80, change={(share, k, SI): 0.64 for share in AS_TOLD for k in (5, 7, 9)})
    assert (14, "differences between the methods are larger than with 40 items") in failing(
        pd.concat([told(40), narrow])
    )
    contrary = told(40, 0.4)
    contrary["value"] *= -1
    assert (15, "results are similar to those with 20% who abandon the survey") in failing(
        pd.concat([told(40), contrary])
    )


@pytest.mark.parametrize(("more", "holds"), [(0.01, True), (-0.001, False), (-0.02, False)])
def test_few_iterations_are_compared_where_they_were_run(more, holds):
    those = [each for each in found(told(liberal=more))[13] if "10 iterations" in each.claim]
    assert [each.holds for each in those] == [holds]


def test_parts_hold_the_findings():
    everything = pd.concat([told(40), told(80)])
    assert {part.name: part.findings for part in parts(everything)} == {
        f"figure{number}": those for number, those in found(everything).items()
    }


@pytest.mark.parametrize("absent", [SI, DISCRETIZED, "rdmc_truncated"])
def test_a_part_of_the_rows_has_no_findings(absent):
    rows = told()
    assert counts(rows[rows["method"] != absent]) == {13: 0}
    assert counts(rows[(rows["careless"] == 0) | (rows["n_categories"] == 5)]) == {13: 0}


def test_a_part_of_the_rows_gives_a_figure():
    rows = told()
    (part,) = parts(rows[(rows["careless"] == 0) & (rows["method"] == SI)])
    assert (part.name, part.findings) == ("figure13", [])


def test_other_surveys_than_the_papers_have_no_claims():
    (part,) = parts(told(20))
    assert (part.name, part.findings) == ("survey_20_items_0-2", [])


def test_no_rows_give_no_report():
    assert parts(told()[:0]) == []
