"""Results show themselves in notebooks, with everything from outside escaped."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import whosin as wi
from whosin.report.html import notebook_html

PLAN = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count")


def test_a_plan_shows_its_card_and_its_chart():
    shown = PLAN._repr_html_()
    assert "becomes at most 60.0% sure" in shown and "ε = 0.4054" in shown and "<svg" in shown
    assert "T11" in shown and "<script" not in shown


def test_plans_and_curves_show_what_tests_reach():
    for plan in (PLAN, wi.calibrate(wi.Detection("0.1", "0.01"))):
        shown = plan._repr_html_()
        assert shown.count("<svg") == 3 and "true positive rate" in shown
        assert "Out of 1,000 people" in shown and 'aria-label="Each mark is 10 people' in shown
    shown = wi.curves.tradeoff(plan)._repr_html_()
    assert shown.count("<svg") == 1 and "91.0%" in shown and "Attack advantage" in shown


def test_a_level_shows_its_witness():
    channel = wi.Channel(wi.Subsets(["<ann>", "bob"]), [["3/4", "1/4"], ["1/2", "1/2"]] * 2)
    shown = wi.notions.PositiveMembership(wi.families.Independent()).measure(channel)._repr_html_()
    assert "γ is exactly <b>2</b>" in shown and "&lt;ann&gt;" in shown and "<ann>" not in shown
    nothing = wi.Channel(wi.Subsets(1), [[1], [1]])
    one = wi.notions.PositiveMembership(wi.families.OneOfTwo()).measure(nothing)
    assert "γ is exactly <b>1</b>" in one._repr_html_()
    bare = replace(wi.notions.DifferentialPrivacy().measure(channel), notion=None, witness=None)
    assert "level is " in bare._repr_html_()


def test_a_release_shows_its_answers_and_its_budget_state(tmp_path):
    (tmp_path / "wards.csv").write_text("who,ward\na,x\nb,<y>\nc,x\n", encoding="utf-8")
    table = wi.Table(tmp_path / "wards.csv", "who", {"ward": ["x", "<y>"]})
    session = wi.Session(table, PLAN, tmp_path / "ledger.db", share=1)
    made = session.release([wi.release.Count(name="people"), wi.release.Count(by=["ward"])])
    shown = made._repr_html_()
    assert "people" in shown and "&lt;y&gt;" in shown and "<y>" not in shown
    for part in (made[1], made.budget_state):
        inside = part._repr_html_().removeprefix("<div>\n").removesuffix("</div>")
        assert inside.strip() in shown
    assert "What all answers together allow" in shown


def test_anything_else_is_shown_as_it_is():
    assert notebook_html("<b>") == "<pre>&#x27;&lt;b&gt;&#x27;</pre>"


CELLS = [
    "import sys\nif {blocked}: sys.modules['ipywidgets'] = None",
    "import whosin as wi\ntable = wi.Table('wards.csv', 'who', {{'ward': ['x', 'y']}})",
    "plan = wi.calibrate(wi.Posterior('0.6'), wi.families.Independent('0.05', '0.5'))",
    "session = wi.Session(table, plan, 'ledger.db', share=1)",
    "session.release(wi.release.Count(by='ward'))",
]


@pytest.mark.parametrize("widgets", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_table_opens_in_a_real_kernel(tmp_path, widgets):
    """DuckDB wants ipywidgets for a bar that is never shown: nothing may depend on it."""
    import nbclient
    import nbformat

    people = "".join(f"p{n},{'xy'[n % 2]}\n" for n in range(50))
    (tmp_path / "wards.csv").write_text(f"who,ward\n{people}", encoding="utf-8")
    cells = [nbformat.v4.new_code_cell(each.format(blocked=not widgets)) for each in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    (shown,) = notebook.cells[-1].outputs
    assert "95%" in shown["data"]["text/html"] and (tmp_path / "ledger.db").exists()
    assert not any(cell.outputs for cell in notebook.cells[:-1])


def test_nothing_is_loaded_until_a_notebook_asks():
    code = "import sys, whosin; whosin.Plan; whosin.Level; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"whosin.report", "altair", "rich"} & set(run.stdout.split())


def test_a_printed_answer_is_the_table_that_the_command_prints(tmp_path):
    """`print` showed the fields as they are kept."""
    (tmp_path / "wards.csv").write_text("who,ward\na,x\nb,y\nc,x\n", encoding="utf-8")
    table = wi.Table(tmp_path / "wards.csv", "who", {"ward": ["x", "\x1b[31my"]})
    with wi.Session(table, PLAN, tmp_path / "ledger.db", share=1) as session:
        made = session.release(wi.queries.Count(by=["ward"], name="wards"))
    lines = str(made[0]).splitlines()
    assert lines[0].startswith("wards") and len(lines) < 12
    shown = str(made)
    assert "Answer(" not in shown and "\x1b" not in shown and "3 of 3" in shown
    assert "Spent: ε" in str(made.budget_state)
    assert str(PLAN) == repr(PLAN)


def test_answers_of_one_kind_are_told_apart(tmp_path):
    """They were called "count and count"."""
    (tmp_path / "wards.csv").write_text("who,ward\na,x\nb,y\nc,x\n", encoding="utf-8")
    table = wi.Table(tmp_path / "wards.csv", "who", {"ward": ["x", "y"]})
    with wi.Session(table, PLAN, tmp_path / "ledger.db", share=1) as session:
        made = session.release([wi.queries.Count(by=["ward"]), wi.queries.Count()])
    assert made.independence_note.startswith("count and count by ward have noise")
