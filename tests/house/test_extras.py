"""The wheel is whole, the core works alone, and what needs more says so in one sentence at once."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import typer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import whosin
from environments import environment, python
from whosin.app.cli.main import make_app
from whosin.errors import EXTRA_PACKAGES, is_installed

ROOT = Path(whosin.__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NOT_OURS = {"all", "docs", "test"}
"""Extras that stand for others, or are for those who work on whosin."""

CORE = [
    "--version",
    "plan --posterior 0.6 --prior 0.05..0.5",
    "plan --posterior 0.6 --prior 0.05..0.5 --delta 1e-6",
    "plan --advantage 0.1 --steps 10",
    "plan --rho 0.3 -m 5",
    "explain --epsilon 1",
    "explain --epsilon 1 --tpr 0.1 --fpr 0.01",
    "explain --from told.py:told --profile 0.1:0.3",
    "explain --multiplier 1 --delta 1e-5 --advantage 0.1",
    "verify --mechanism k-max-published --entities 8 -k 3 --family uninformed",
    "notions",
    "rules check published.csv --population frame.csv --prior 0.1",
    "rules plan --rule suppress --posterior 0.6 --prior 0.3..0.5 --known 2 --delta 0.1 --people 20",
    "cite",
    "ledger create books.db hospital --posterior 0.6 --prior 0.05..0.5",
    "ledger quota books.db hospital ann --share 1/4",
    "ledger show books.db hospital --entries",
    "ledger verify books.db",
    "ledger export books.db --save all.json",
    "ledger close books.db hospital",
]
REFUSED = "ledger resume books.db hospital"
"""A command of the core that has nothing to do here."""
EXTRA = {
    "plan --advantage 0.1 --steps 10 --sample-rate 0.01": "accounting",
    "plan --posterior 0.6 --prior 0.1 --save x.svg": "charts",
    "explain --epsilon 1 --save x.html": "charts",
    "notions --save x.png": "charts",
    "release x.toml": "release",
    "sql x.toml SELECT": "release",
    "release x.toml --report x.html": "charts",
    "inspect x.toml": "release",
    "evidence x.toml": "release",
    "draft x.csv": "release",
    "demo --keep kept": "release",
    "ledger create new.db hospital --scenario x.toml": "release",
    "ledger amend books.db hospital --scenario x.toml": "release",
    "ledger answers books.db hospital": "release",
    "ledger show postgresql://nobody@localhost/whosin": "postgres",
    "distortion --rows 2 --epsilon 1": "distortion",
    "audit function module:function": "audit",
    "audit samples with.csv without.csv": "audit",
    "audit scores x.csv": "audit",
    "audit run x.csv": "audit",
    "audit training module:fit": "audit",
    "audit synthetic train.csv holdout.csv made.csv": "audit",
    "gwas simulate x": "gwas",
    "gwas count x": "gwas",
    "gwas release x --relation label-swap --top 3 --epsilon 1": "gwas",
    "gwas attack x": "gwas",
    "gwas experiment": "gwas",
    "gwas forecast --cases 9 --controls 9 --snps 9 --odds-ratio 2 --gamma 2 --advise": "gwas",
    "gwas randomise x --posterior 0.75 --prior 0.5 --save a.txt": "gwas",
    "gwas correct x --labels y": "gwas",
    "gwas beacon --people 9 --posterior 0.75 --prior 0.5": "gwas",
    "serve --folder . --port 0": "web",
    "explain --multiplier 1 --sample-rate 0.1 --delta 1e-5": "accounting",
}
LIBRARY = {
    "wi.Table('x.csv', 'row')": "release",
    "wi.release.DuckDB()": "release",
    "wi.release.Spark()": "release",
    "wi.noise.top_k([1, 2], 1, 1)": "selection",
    "wi.noise.noisy_max([1, 2], 1)": "selection",
    "wi.distortion.best(wi.Records(2, 2), wi.priors.Uniform(), epsilon=1)": "distortion",
    "wi.distortion.curves(wi.Records(2, 2), wi.priors.Uniform())": "distortion",
    "wi.audit.two_worlds": "audit",
    "wi.gwas.read_study": "gwas",
    "wi.Ledger('postgresql://nobody@localhost/whosin')": "postgres",
    "wi.calibration.Process('laplace').profile(1.0)": "accounting",
}
RUN = """
import contextlib, io, json, os, sys
import whosin as wi
from whosin.app.cli.main import main
from whosin.errors import MissingExtra
commands, calls = json.loads(sys.argv[1])
done = []
for line in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(line.split())
    done.append([code, out.getvalue(), err.getvalue(), sorted(os.listdir())])
said = []
for call in calls:
    try:
        said.append(repr(eval(call)))
    except MissingExtra as error:
        assert isinstance(error, ImportError)
        said.append([error.extra, str(error)])
print(json.dumps([done, said, sorted(name for name in sys.modules if "." not in name)]))
"""
NOISE = "wi.noise.discrete_laplace(3, size=4).shape"
NOTEBOOK = "wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.1, 0.5))._repr_html_()"


def sentence(extra):
    name = f"whosin[{extra}]"
    install = re.escape(f"{name}: pip install '{name}'")
    return rf"[\w ]+ needs? {install}"


def test_the_wheel_carries_the_page_and_its_types(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "whosin/py.typed" in names
    for folder in ("app/web/static", "report/templates"):
        for path in (ROOT / "src" / "whosin" / folder).iterdir():
            assert f"whosin/{folder}/{path.name}" in names
    assert not [name for name in names if name.startswith("tests") or "__pycache__" in name]


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    """What the core alone says to all of this."""
    home, folder = tmp_path_factory.mktemp("core"), tmp_path_factory.mktemp("work")
    environment(wheel, home)
    (folder / "published.csv").write_text("ward,a,b,total\nA,<5,6,9\n")
    (folder / "frame.csv").write_text("ward,a,b\nA,9,9\n")
    told = "from whosin.bridges import Guarantee\ntold = Guarantee('a tool', '1', 1)\n"
    (folder / "told.py").write_text(told)
    asked = json.dumps([[*CORE, REFUSED, *EXTRA], [*LIBRARY, NOISE, NOTEBOOK]])
    done, said, modules = python(home, RUN, asked, folder=folder)
    return dict(zip([*CORE, REFUSED, *EXTRA], done, strict=True)), said, set(modules)


def test_the_core_works_alone(alone):
    for line in CORE:
        code, out, err, _ = alone[0][line]
        assert (code, err) == (0, "") and out, line


def test_the_core_refuses_by_itself(alone):
    code, out, err, _ = alone[0][REFUSED]
    assert (code, out) == (1, "") and "whosin[" not in err


def test_a_command_without_its_extra_says_so_and_makes_nothing(alone):
    for line, extra in EXTRA.items():
        code, out, err, files = alone[0][line]
        assert (code, out) == (3, ""), line
        assert re.fullmatch(f"whosin: {sentence(extra)}\n", err)
        assert files == alone[0][CORE[-1]][-1]


def test_the_library_says_the_same_sentence(alone):
    said = dict(zip(LIBRARY, alone[1], strict=False))
    for call, extra in LIBRARY.items():
        assert said[call][0] == extra, call
        assert re.fullmatch(sentence(extra), said[call][1])


def test_noise_and_plans_in_notebooks_need_no_extra(alone):
    noise, plan = alone[1][-2:]
    assert noise == "(4,)"
    assert "60.0%" in plan and plan.count("<svg") == 1  # people, and no chart


def test_the_core_brings_no_module_of_an_extra(alone):
    heavy = {module for _, modules in EXTRA_PACKAGES.values() for module in modules}
    assert not heavy & alone[2]


def test_every_command_was_tried():
    def leaves(command, *words):
        for name, each in getattr(command, "commands", {}).items():
            yield from leaves(each, *words, name)
        if not hasattr(command, "commands"):
            yield " ".join(words)

    tried = [*CORE, REFUSED, *EXTRA]
    for name in leaves(typer.main.get_command(make_app())):
        assert any(line == name or line.startswith(f"{name} ") for line in tried), name


def declared(extra):
    """The requirements of an extra in pyproject.toml, with those of the extras that it names."""
    for line in PROJECT["optional-dependencies"][extra]:
        each = Requirement(line)
        if each.name == "whosin":
            for other in each.extras:
                yield from declared(other)
        else:
            yield canonicalize_name(each.name)


def test_the_table_of_extras_is_that_of_the_project():
    assert EXTRA_PACKAGES.keys() | NOT_OURS == PROJECT["optional-dependencies"].keys()
    homes = packages_distributions()
    for extra, (_, modules) in EXTRA_PACKAGES.items():
        brought = {canonicalize_name(name) for each in modules for name in homes[each]}
        ours = [line for line in PROJECT["optional-dependencies"][extra] if "whosin" not in line]
        assert {canonicalize_name(Requirement(line).name) for line in ours} <= brought, extra
        assert brought <= set(declared(extra)), extra
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert Requirement(everything).extras | {"selection"} == EXTRA_PACKAGES.keys()
    assert Requirement(PROJECT["optional-dependencies"]["test"][0]).extras == {"all"}
    assert all(map(is_installed, EXTRA_PACKAGES))


ASK = """
import json, sys
from pathlib import Path
import httpx
from whosin.app.web.server import running
from whosin.app.web.access import Settings
here = Path()
with running(Settings(here, "ledger.db", here / "users.json")) as url:
    client = httpx.Client(base_url=url, headers={"X-Whosin": "test"}, timeout=300)
    said = [[each.status_code, each.json()] for each in (
        client.request(method, path, **given) for method, path, given in json.loads(sys.argv[1])
    )]
    files = [client.get(path).text for path in ("/", "/static/app.js")]
print(json.dumps([said, files]))
"""
PLAN = {"adversary": {"prior": "0.05..0.5"}, "target": {"posterior": "0.6"}}
SCENARIO = PLAN | {
    "table": {"source": "x.csv", "privacy_unit": "row"},
    "queries": [{"kind": "count", "where": "age > 3"}],
}
RELEASE = {"scenario": SCENARIO, "request": "request-1"}
PAGE = [
    ("POST", "/api/plan", {"json": PLAN}, None),
    ("GET", "/api/files", {}, None),
    ("GET", "/api/notions", {}, None),
    ("GET", "/api/columns?file=x.csv", {}, "release"),
    ("POST", "/api/files?name=y.csv", {"content": "a,b\n1,2\n"}, "release"),
    ("POST", "/api/estimate", {"json": SCENARIO}, "release"),
    ("POST", "/api/release", {"json": RELEASE}, "release"),
    ("POST", "/api/release/report", {"json": RELEASE}, "charts"),
    (
        "POST",
        "/api/distortion",
        {"json": {"rows": 2, "values": 2, "prior": "uniform"}},
        "distortion",
    ),
]


def test_the_page_works_in_the_wheel_and_says_the_same_sentence(wheel, tmp_path):
    home, folder = environment(wheel, tmp_path / "home", ["web"], "httpx"), tmp_path / "work"
    folder.mkdir()
    (folder / "x.csv").write_text("age\n4\n")
    asked = json.dumps([each[:3] for each in PAGE])
    said, (page, script) = python(home, ASK, asked, folder=folder)
    assert "How sure can anyone be" in page and "import" in script
    for (status, body), (_, path, _, extra) in zip(said, PAGE, strict=True):
        if extra is None:
            assert status == 200, (path, body)
        else:
            assert status == 501, (path, body)
            assert re.fullmatch(sentence(extra), body["error"]["message"])
    assert [each.name for each in folder.iterdir()] == ["x.csv"]
