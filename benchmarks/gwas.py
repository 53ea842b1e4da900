"""Association studies: counts from .bed and .pgen files, scores, forecasts, the experiment."""

from __future__ import annotations

import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np

from measuring import HOME, Row
from whosin import Ledger, Posterior
from whosin.families import Independent
from whosin.gwas import STUDY_RELATIONS, Simulation, allelic_chi2
from whosin.gwas.forecast import Forecast, StudySettings, advise_study, forecast_study
from whosin.gwas.labels import LabelledPeople, plan_labels, randomise_labels
from whosin.gwas.prospects import Hope, PublicStudy
from whosin.gwas.scores import selection_scores
from whosin.gwas.simulation import Experiment, run_experiment

PEOPLE = 5_000
RECORDED = {100_000: 0.17, 800_000: 1.5}
"""Seconds of plink1.9 on the machine where these figures were first taken."""
COUNT = "import sys; from whosin.gwas import count_bed; count_bed(sys.argv[1])"
READ = "import sys; from whosin.gwas import read_study; read_study(sys.argv[1])"
THRESHOLD = 29.7


def rows() -> Iterator[Row]:
    """All measurements."""
    HOME.mkdir(exist_ok=True)
    for snps, goal, allowed in (
        (100_000, "within 2 of plink1.9", 2.0),
        (800_000, "as fast as plink1.9", 1.0),
    ):
        with tempfile.TemporaryDirectory(dir=HOME) as folder:
            path = Path(folder) / "study"
            _random_study(path, snps)
            ours, peer = _alternating(path)
            packed = _count_pgen(path)
        recorded = peer is None
        seconds = RECORDED[snps] if peer is None else peer
        size = snps * PEOPLE // 4 / 1e9
        yield Row(
            f"genotype counts, {PEOPLE:,} × {snps:,} ({size:.3g} GB), with start-up",
            ours,
            goal,
            ours <= allowed * seconds,
            "plink1.9 --assoc",
            seconds,
            recorded,
        )
        if packed is not None:
            took, bed = packed
            name = f"the same of a .pgen ({size:.3g} GB), CPU"
            yield Row(name, took, "within 1.5 of .bed", took <= 1.5 * bed, "of the .bed", bed)
    yield from _scores()
    yield from _forecasts()
    yield _labels()
    start = time.perf_counter()
    run_experiment(Experiment())
    took = time.perf_counter() - start
    yield Row("the experiment, 5 sizes × 3 γ × 2 M × 4 settings", took, "minutes", took < 300)


def _random_study(path: Path, snps: int) -> None:
    rng, stride = np.random.default_rng(1), PEOPLE // 4
    with path.with_suffix(".bed").open("wb") as file:
        file.write(b"\x6c\x1b\x01")
        for first in range(0, snps, 20_000):
            file.write(rng.bytes(min(20_000, snps - first) * stride))
    with path.with_suffix(".bim").open("w") as file:
        file.writelines(f"{1 + i * 22 // snps}\trs{i}\t0\t{i + 1}\tA\tG\n" for i in range(snps))
    with path.with_suffix(".fam").open("w") as file:
        file.writelines(f"f{i} i{i} 0 0 {1 + i % 2} {1 + i * 7 // 3 % 2}\n" for i in range(PEOPLE))


def _alternating(path: Path) -> tuple[float, float | None]:
    """The best wall time of each, in turns, so that both meet the same machine."""
    plink = shutil.which("plink1.9")
    out = [str(path.with_name("out"))]
    commands = [[sys.executable, "-c", COUNT, str(path)]]
    if plink is not None:
        commands.append(
            [plink, "--bfile", str(path), "--assoc", "--keep-allele-order", "--out", *out]
        )
    best = [float("inf")] * len(commands)
    for _ in range(6):
        for place, command in enumerate(commands):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            best[place] = min(best[place], time.perf_counter() - start)
    return best[0], best[1] if plink is not None else None


def _count_pgen(path: Path) -> tuple[float, float] | None:
    """Processor seconds that a study takes as a .pgen and as a .bed, with SNPs and start-up; None
    without plink2, which makes the .pgen."""
    plink = shutil.which("plink2")
    if plink is None:
        return None
    made = [plink, "--bfile", str(path), "--make-pgen", "--out", str(path)]
    subprocess.run(made, check=True, capture_output=True)
    spent = []
    for ending in (".pgen", ".bed"):
        before = _children_seconds()
        subprocess.run([sys.executable, "-c", READ, f"{path}{ending}"], check=True)
        spent.append(_children_seconds() - before)
    return spent[0], spent[1]


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _scores() -> Iterator[Row]:
    """10^6 scores of each kind; distances beside a loop over splits and changes for each SNP (timed
    on 200)."""
    counts = Simulation(2_500, 2_500, 10**6, 10_000, seed=1).study().counts
    for score, relation in product(("distance", "linear"), STUDY_RELATIONS):
        start = time.process_time()
        scores = selection_scores(score, counts, relation, THRESHOLD, (2_500, 2_500))
        took = time.process_time() - start
        about = f"10^6 {score} scores, {relation} (CPU)", took, "1 CPU s", took <= 1
        if (score, relation) == ("distance", "genotype"):
            start = time.process_time()
            assert [_loop(row) for row in counts[:200].tolist()] == scores[:200].tolist()
            loop = (time.process_time() - start) * len(counts) / 200
            yield Row(*about, "a loop, extrapolated", loop)
        else:
            yield Row(*about)


def _forecasts() -> Iterator[Row]:
    """A forecast and advice beside simulated releases, which say the same to within three points:
    simulating is timed on some releases of 28,501 SNPs, for a standard error of one point."""
    study = PublicStudy(500, 500, 28_501)
    hope, settings = (
        Hope(0.3, 1.5),
        StudySettings("genotype", math.log(3), 1, threshold=Fraction(4)),
    )
    start = time.process_time()
    made = forecast_study(study, settings, [hope])
    took = time.process_time() - start
    seen, loop = _simulated_releases(made, 100)
    wrong = abs(seen - made.chance)
    yield Row(
        "forecast of a study, 28,501 SNPs (CPU)",
        took,
        "under a second",
        took < 1,
        "2,500 simulated releases, extrapolated",
        loop * 25,
    )
    goal = "3 points, and 4 standard errors"
    yield Row(
        "forecast against 100 simulated releases", 100 * wrong, goal, wrong < 0.23, unit="points"
    )
    start = time.process_time()
    advise_study(study, [Hope(0.31, 1.5)], dict.fromkeys(("genotype", "label-swap"), math.log(3)))
    took = time.process_time() - start
    yield Row("advice for a study, two relations (CPU)", took, "under 5 s", took < 5)


def _simulated_releases(made: Forecast, count: int) -> tuple[float, float]:
    """(share of releases in which the hope is back, processor seconds)."""
    study, settings = made.study, made.settings
    case, control = made.hopes[0].hope.frequencies(study)
    rng, back = np.random.default_rng(1), 0
    sizes = study.cases, study.controls
    scale = 2 / (settings.epsilon * float(settings.share or 1))
    start = time.process_time()
    for seed in range(count):
        counts = Simulation(*sizes, study.snps, 0, seed=seed).study().counts
        counts[0] = [
            each
            for size, p in zip(sizes, (case, control), strict=True)
            for each in rng.multinomial(size, [(1 - p) ** 2, 2 * p * (1 - p), p * p])
        ]
        scores = selection_scores("distance", counts, settings.relation, settings.threshold)
        back += int(np.argmax(scores + scale * rng.standard_exponential(len(scores))) == 0)
    return back / count, time.process_time() - start


def _labels() -> Row:
    """Labels of 500,000 people: the .fam file read, drawn, paid, stored and written."""
    people = 500_000
    with tempfile.TemporaryDirectory(dir=HOME) as folder:
        fam = Path(folder) / "cohort.fam"
        with fam.open("w") as file:
            file.writelines(f"f{i} i{i} 0 0 1 {2 if i % 50 == 0 else 1}\n" for i in range(people))
        plan = plan_labels(Posterior("0.75"), Independent(0, "0.1"), "one-sided")
        start = time.process_time()
        found = LabelledPeople.read(fam)
        with Ledger(Path(folder) / "ledger.db") as ledger:
            made = randomise_labels(found, plan, ledger, "cohort")
        made.write(Path(folder) / "labels.txt")
        took = time.process_time() - start
    return Row(f"labels of {people:,} people randomised (CPU)", took, "5 CPU s", took <= 5)


def _loop(row: list[int]) -> int:
    """Fewest changes by trying every number of them and every split (corners only)."""
    cases, controls = row[:3], row[3:]
    beyond = allelic_chi2([row])[0] >= THRESHOLD
    for changes in range(1, sum(row)):
        for first in range(changes + 1):
            for up in (True, False):
                x = _moved(cases, first, up)
                y = _moved(controls, changes - first, not up)
                if (_chi2(x, y, sum(cases), sum(controls)) >= THRESHOLD) != beyond:
                    return changes if beyond else 1 - changes
    raise AssertionError("some table is on the other side")


def _moved(group: list[int], people: int, up: bool) -> int:
    twos, ones = (group[0], group[1]) if up else (group[2], group[1])
    far = min(people, twos)
    step = 2 * far + min(people - far, ones)
    return group[1] + 2 * group[2] + (step if up else -step)


def _chi2(x: int, y: int, r: int, s: int) -> float:
    n, m = r + s, x + y
    return 2 * n * (x * s - y * r) ** 2 / (r * s * m * (2 * n - m)) if 0 < m < 2 * n else 0.0
