"""The second seed paper's simulation beside the authors' own implementation, 20 replications of each condition.

**Errors.** For each number of categories, mechanism and method, the mean MAE of 20 replications is tested for
equivalence with the golden values' mean of 8 to 10 (RMCLab 0.1.0, the same design with other seeds): two one-sided
Welch tests at 5%, with the standard errors of both sides. The margin is 0.02 (3 and 5 categories), 0.05 (10), and 0.1
for Soft-Impute with 10 categories under MCAR. Were both sides equal, a test of RDMC or a baseline would pass with a
probability of 0.77 to 1, by the spreads measured here.

**Soft-Impute where the loss is flat.** Its MAE depends on which lambda a replication happens to choose: the loss on
held-out ratings is flat to 3 parts in 10,000 from 0.01 to 0.05 of the largest singular value, while the MAE goes from
1.43 to 1.12 (10 categories, MCAR). With 5 categories under MCAR and 10 under both mechanisms the standard error of the
golden mean alone (0.008, 0.036, 0.015) leaves Welch's tests a power of 0.2 to 0.5, however many replications are ours,
and they do not show equivalence. There 400 replications of ours are tested against the golden mean as the number that
it is: two one-sided t-tests at 5%. What Welch's tests give is printed beside it.

All errors of Soft-Impute are compared at equal lambdas too: those that the golden replications chose. There Welch's
tests would pass with a probability above 0.95. That the choice itself is the same on the same splits, `tests/golden`
shows for small matrices: losses to 1e-12. For matrices of this size a plain loop of full SVDs is written out here.

**Attacks.** For each attack and number of categories under MNAR, the mean absolute prediction shift of RDMC over 20
replications is below that of both Soft-Imputes.

It takes 75 minutes of CPU time. RATING_SIMULATION may name a folder: what it has of finished tasks is used, and what is
finished is kept there.
"""

import argparse
import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from algorithms.solvers import LambdaSelection, SoftImpute
from scenarios.completion import complete, held_out_cells
from scenarios.rating_simulation import ATTACKS, GOLDEN_FILE, MAIN, Settings, Task, golden, measure, simulated
from scenarios.replications import Replications

pytestmark = pytest.mark.statistical

REPLICATIONS = 20
MORE_REPLICATIONS = 400  # of Soft-Impute where the loss is flat
FLAT = ((5, "mcar"), (10, "mcar"), (10, "mnar"))
SETTINGS = Settings(seed=1)
NUMBERS = (3, 5, 10)
SOFT = ("soft_impute", "soft_impute_discretized")
CORE = ("rdmc_pseudo_huber", *SOFT)
REST = tuple(name for name in MAIN if name not in CORE)
GOLDEN = Path(os.environ.get("GOLDEN_DATA") or Path(__file__).resolve().parents[3] / "shared" / "golden", GOLDEN_FILE)
GOLDEN_SOFT = {"soft_impute": "SI", "soft_impute_discretized": "SI_disc"}


def tasks():
    """All that is needed once; under MNAR, the methods of the attacks' test with attacks and the others without."""
    over = [(replication, k) for replication in range(REPLICATIONS) for k in NUMBERS]
    return [
        *(Task(replication, k, "mcar", MAIN, ()) for replication, k in over),
        *(Task(replication, k, "mnar", REST, ()) for replication, k in over),
        *(Task(replication, k, "mnar", CORE, ATTACKS) for replication, k in over),
        *(
            Task(replication, *where, SOFT, ())
            for replication in range(REPLICATIONS, MORE_REPLICATIONS)
            for where in FLAT
        ),
    ]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    out = Path(os.environ.get("RATING_SIMULATION") or tmp_path_factory.mktemp("rating_simulation"))
    args = argparse.Namespace(out=out, jobs=len(os.sched_getaffinity(0)), anew=False)
    this = Replications("rating_simulation", args, SETTINGS, measure, lambda rows: [])
    this.run(tasks())
    return this.rows


@pytest.fixture(scope="module")
def reference():
    if not GOLDEN.is_file():
        pytest.skip(f"needs {GOLDEN}; set GOLDEN_DATA to its folder")
    return golden(GOLDEN)


def margin(k, mechanism, method):
    if k < 10:
        return 0.02
    return 0.1 if mechanism == "mcar" and method in SOFT else 0.05


def equivalence(ours, theirs, within, *, spread=None):
    """Difference of the means, its standard error, and the p-value of two one-sided Welch tests.

    `spread`, where given, has values whose variance stands for that of `theirs`.
    """
    squares = ours.var(ddof=1) / len(ours), (theirs if spread is None else spread).var(ddof=1) / len(theirs)
    error = np.sqrt(sum(squares))
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / (len(ours) - 1) + squares[1] ** 2 / (len(theirs) - 1))
    difference = ours.mean() - theirs.mean()
    return difference, error, float(stats.t.sf((within - abs(difference)) / error, freedom))


def equivalence_to(number, ours, within):
    """Difference of the mean from a number, its standard error, and the p-value of two one-sided t-tests."""
    error, difference = stats.sem(ours), ours.mean() - number
    return difference, error, float(stats.t.sf((within - abs(difference)) / error, len(ours) - 1))


def values(rows, **where):
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    return rows["value"].to_numpy()


def tell(capsys, line):
    with capsys.disabled():
        print(f"\n{line}", end=" ")  # noqa: T201


@pytest.mark.parametrize("method", MAIN)
@pytest.mark.parametrize("mechanism", ["mnar", "mcar"])
@pytest.mark.parametrize("k", NUMBERS)
def test_the_mean_error_is_that_of_the_authors_implementation(rows, reference, k, mechanism, method, capsys):
    where = {"n_categories": k, "mechanism": mechanism, "method": method, "metric": "mae"}
    ours, theirs, within = values(rows, **where), values(reference, **where), margin(k, mechanism, method)
    flat = method in SOFT and (k, mechanism) in FLAT
    assert len(ours) == (MORE_REPLICATIONS if flat else REPLICATIONS)
    assert len(theirs) >= 8
    difference, error, p = equivalence(ours, theirs, within)
    shown = f"MAE {ours.mean():.3f} (golden {theirs.mean():.3f}), {difference:+.4f} (se {error:.4f}), p {p:.4f}"
    if flat:
        _, error, p = equivalence_to(theirs.mean(), ours, within)
        shown += f" by Welch's tests; to the golden mean as a number: se {error:.4f}, p {p:.4f}"
    tell(capsys, f"{k:2} {mechanism} {method:26} {shown}")
    assert p < 0.05, f"{shown}; not within {within}"


@cache
def errors_at(k, mechanism, lam):
    """MAE of both Soft-Imputes in each replication at one lambda, float64, shape (2, n_replications)."""
    found = []
    for replication in range(REPLICATIONS):
        data = simulated(Task(replication, k, mechanism, (), ()), SETTINGS)
        done = complete(data.observed, SOFT, categories=data.world.categories, held_out=[], lambdas=[lam])
        found.append([np.abs(done[name].matrix - data.world.complete)[data.missing].mean() for name in SOFT])
    return np.array(found).T


@pytest.mark.parametrize("method", SOFT)
@pytest.mark.parametrize("mechanism", ["mnar", "mcar"])
@pytest.mark.parametrize("k", NUMBERS)
def test_soft_impute_has_the_authors_error_at_the_lambdas_they_chose(k, mechanism, method, capsys):
    if not GOLDEN.is_file():
        pytest.skip(f"needs {GOLDEN}; set GOLDEN_DATA to its folder")
    table = pd.read_csv(GOLDEN, keep_default_na=False)
    table = table[(table["attack"] == "none") & (table["K"] == k) & (table["mech"] == mechanism.upper())]
    table = table[table["method"] == GOLDEN_SOFT[method]]
    theirs = table["value"].astype(float).to_numpy()
    at_lambdas = [errors_at(k, mechanism, float(lam))[SOFT.index(method)] for lam in table["lambda"].astype(float)]
    by_replication = np.mean(at_lambdas, axis=0)  # of theirs, shape (n_golden, n_replications), over the golden ones
    around = theirs - np.mean(at_lambdas, axis=1)
    difference, error, p = equivalence(by_replication, theirs, margin(k, mechanism, method), spread=around)
    shown = (
        f"MAE {by_replication.mean():.3f} (golden {theirs.mean():.3f}), {difference:+.4f} (se {error:.4f}), p {p:.1e}"
    )
    tell(capsys, f"{k:2} {mechanism} {method:26} at the golden lambdas: {shown}")
    assert p < 0.05


def plainly_fitted(X, tol=1e-4, max_iter=200):
    """Soft-Impute's matrices along the grid, lambdas descending, each from the one before: full SVDs, nothing else."""
    observed, centres = ~np.isnan(X), np.nanmean(X, axis=0)
    centred = np.where(observed, X - centres, 0.0)
    largest, rank = np.linalg.norm(centred, 2), min(X.shape) - 1

    def thresholded(matrix, penalty):
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return (left[:, :rank] * np.maximum(values - penalty, 0.0)[:rank]) @ right[:rank]

    filled, found = centred, {}
    for lam in sorted(SETTINGS.lambdas, reverse=True):
        low_rank = thresholded(filled, lam * largest)
        for _ in range(max_iter):
            before = low_rank
            filled = np.where(observed, centred, before)
            low_rank = thresholded(filled, lam * largest)
            change, norm = ((low_rank - before) ** 2).sum(), (before**2).sum()
            if change <= tol * norm:
                break
        filled = np.where(observed, centred, low_rank)
        found[lam] = low_rank + centres
    return found


@pytest.mark.parametrize(("k", "mechanism"), FLAT)
def test_soft_impute_chooses_lambda_as_a_plain_loop_of_full_svds_does(k, mechanism):
    X = simulated(Task(0, k, mechanism, (), ()), SETTINGS).observed
    held_out = held_out_cells(X, n_splits=3, seed=1)
    errors = []
    for cells in held_out:
        training = X.copy()
        training[cells] = np.nan
        errors.append([(found[cells] - X[cells]) ** 2 for _, found in sorted(plainly_fitted(training).items())])
    losses = np.hstack(errors).mean(axis=1)
    solver = SoftImpute(SETTINGS.lambdas, algorithm="svd", tol=1e-4, max_iter=200)
    chosen = LambdaSelection(solver, splits=held_out, progress=False).fit(X)
    np.testing.assert_allclose(chosen.losses_, losses[::-1], rtol=1e-9)  # lambdas descend there
    assert chosen.lambda_ == SETTINGS.lambdas[int(losses.argmin())]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("k", NUMBERS)
def test_rdmc_is_moved_less_than_both_soft_imputes(rows, reference, k, attack, capsys):
    where = {"n_categories": k, "mechanism": "mnar", "attack": attack, "metric": "prediction_shift"}
    ours = {method: values(rows, method=method, **where) for method in CORE}
    for method in CORE:
        theirs = values(reference, method=method, **where).mean()
        shown = f"{ours[method].mean():+.3f} (golden {theirs:+.3f}), absolute {np.abs(ours[method]).mean():.3f}"
        tell(capsys, f"{k:2} {attack:17} {method:23} mean shift {shown}")
    assert all(len(shifts) == REPLICATIONS for shifts in ours.values())
    rdmc, *soft = (np.abs(ours[method]).mean() for method in CORE)
    assert rdmc < min(soft)


def test_the_tests_of_equivalence_can_fail():
    rng = np.random.default_rng(1)
    ours = rng.normal(0.6, 0.01, 20)
    assert equivalence(ours, rng.normal(0.6, 0.01, 10), 0.02)[2] < 0.05
    assert equivalence(ours, rng.normal(0.63, 0.01, 10), 0.02)[2] > 0.5
    assert equivalence(ours, rng.normal(0.6, 0.2, 10), 0.02)[2] > 0.05  # too uncertain to tell
    assert equivalence_to(0.605, ours, 0.02)[2] < 0.05
    assert equivalence_to(0.63, ours, 0.02)[2] > 0.5
    assert equivalence_to(0.6, rng.normal(0.6, 0.2, 20), 0.02)[2] > 0.05
