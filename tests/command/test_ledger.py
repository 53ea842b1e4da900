"""`whosin ledger`: what it prints, for people and programs, and how it refuses."""

from __future__ import annotations

import csv
import json
import sqlite3

import pytest

import whosin as wi
from command import answer
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Spend, encoding
from whosin.release import Count
from whosin.release.scenario import load_scenario


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return run


def spend(epsilon: str, request: str, dataset: str = "hospital", **more) -> None:
    spend = Spend({"query": "count", "of": "[b]"}, {"add-remove": Cost.pure(epsilon)}, **more)
    with wi.Ledger("books.db", who="ann") as ledger:
        ledger.answer(dataset, spend, lambda: 41, request)


@pytest.fixture
def made(run):
    line = "ledger create books.db hospital --posterior 0.6 --prior 0.05..0.5 --json"
    return answer(run(line))


def test_the_life_of_a_budget(run, made):
    assert made["datasets"][0]["remaining_epsilon"] == pytest.approx(0.405465108108)
    spend("0.3", "first")
    code, out, err = run("ledger show books.db")
    assert (code, err) == (0, "")
    for part in (
        "Budget: ε = 0.405465 (add-remove).",
        "Spent: ε = 0.3 in 1 debit.",
        "Left: ε = 0.105465.",
        "from 50.0% to at most 57.5%",
        "3 entries",
    ):
        assert part in out
    code, out, _ = run("ledger show books.db hospital --entries")
    assert code == 0 and "[b]" in out and "ann" in out and "ε = 0.3" in out
    head = answer(run("ledger show books.db --json"))["datasets"][0]["head"]
    code, out, err = run("ledger verify books.db hospital --head", head)
    assert (code, err) == (0, "") and head in out and "whole" in out
    code, out, _ = run("ledger close books.db hospital")
    assert code == 0 and "closed: no further answers" in out
    code, out, err = run("ledger close books.db hospital")
    assert (code, out, err) == (1, "", "whosin: dataset 'hospital' is closed already\n")
    assert answer(run("ledger show books.db --json"))["datasets"][0]["state"] == "closed"


def test_a_reserve_is_shown_with_what_it_leaves(run):
    answer(run("ledger create books.db hospital --epsilon 1 --delta 1e-6 --reserve 0.3 --json"))
    spend("0.3", "first")
    out = " ".join(run("ledger show books.db")[1].split())
    assert "beside pure answers of ε = 0.3 there is ρ = 0.0127" in out and "would be 0." in out
    assert "Spent: ε = 0.3 in 1 debit." in out and "or ρ = 0.0127" in out
    with wi.Ledger("books.db", who="ann") as ledger:
        ledger.debit("hospital", "second", Spend({}, {"add-remove": Cost.gaussian("0.01")}))
    out = run("ledger show books.db")[1]
    assert "Spent: a part in 2 debits" in out and "1e-05" in out
    assert run("ledger verify books.db")[0] == 0


def test_a_plan_from_a_file(run, tmp_path):
    plan = answer(run("plan --gamma 2 --prior 0.1..0.9 --delta 1e-6 --json"))
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    shown = answer(run("ledger create books.db d --plan plan.json --json"))["datasets"][0]
    assert shown["budget_epsilon"] == pytest.approx(plan["epsilon"]) and shown["plan"] == plan
    code, out, _ = run("ledger show books.db d")
    assert code == 0 and ", δ = " in out and "of Gaussian noise" in out


def test_an_export_can_be_checked_by_others(run, made, tmp_path):
    spend("0.1", "first")
    spend("0.1", "second")
    code, out, _ = run("ledger export books.db --save all.csv")
    assert (code, out) == (0, "5 entries written to all.csv\n")
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    head = encoding.FIRST_HEAD
    for line in lines:
        entry = {
            "dataset": line["dataset"],
            "number": int(line["number"]),
            "kind": line["kind"],
            "request": line["request"] or None,
            "body": json.loads(line["body"]),
        }
        head = encoding.link_digest(head, entry)
        assert head == line["head"]
    whole = answer(run("ledger export books.db hospital --json --save all.json"))
    assert whole == json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert [entry["head"] for entry in whole["datasets"][0]["history"]][-1] == head
    assert answer(run("ledger show books.db --entries --json"))["datasets"][0]["history"]


def test_a_rewritten_history_shows(run, made, tmp_path):
    spend("0.3", "first")
    base = sqlite3.connect(tmp_path / "books.db")
    base.execute("UPDATE whosin_entries SET body = replace(body, '300000000000', '200000000000')")
    base.execute("UPDATE whosin_datasets SET spent_epsilon = 200000000000")
    base.commit()
    base.close()
    code, out, err = run("ledger verify books.db")
    assert (code, out) == (1, "")
    assert err == "whosin: the history of 'hospital' is broken: entry 2 was changed\n"
    run("ledger create books.db another --epsilon 1")
    code, out, err = run("ledger verify books.db")
    assert code == 1 and out.startswith("another: whole") and "entry 2 was changed" in err
    code, out, err = run("ledger verify books.db --json")
    found = json.loads(out)
    assert code == 1 and found["whole"] is False
    assert [each["dataset"] for each in found["broken"]] == ["hospital"]
    assert [each["dataset"] for each in found["datasets"]] == ["another"]


def test_a_release_of_its_own(run, made):
    spend("0.2", "only", guarantee="k-max", alone=True)
    code, out, _ = run("ledger show books.db")
    assert code == 0 and "complete: it had a release that allows no other" in out


def test_an_empty_ledger(run, refused_at, tmp_path):
    wi.Ledger(tmp_path / "books.db").dispose()
    assert run("ledger show books.db") == (0, "The ledger has no datasets.\n", "")
    assert run("ledger verify books.db") == (0, "The ledger has no datasets.\n", "")
    assert answer(run("ledger export books.db"))["datasets"] == []
    assert refused_at("ledger show books.db hospital") == "dataset"


@pytest.mark.parametrize(
    ("name", "width"), [("[red]x", "80"), ("病院", "40"), ("w" * 200, "30"), ("a [/] b", "20")]
)
def test_names_and_narrow_terminals(run, monkeypatch, name, width):
    monkeypatch.setenv("COLUMNS", width)
    code, out, err = run("ledger create books.db --epsilon 1", name)
    assert (code, err) == (0, "") and name in out.replace("\n", "")
    spend("0.3", "r", name)
    code, out, _ = run("ledger show books.db --entries")
    assert code == 0 and all(len(line) <= int(width) for line in out.splitlines())
    assert name in run("ledger verify books.db")[1]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("create new.db d", "--plan"),
        ("create new.db d --epsilon much", "--epsilon"),
        ("create new.db d --epsilon nan", "--epsilon"),
        ("create new.db d --epsilon 0", "--epsilon"),
        ("create new.db d --epsilon -1", "--epsilon"),
        ("create new.db d --epsilon 1e9", "--epsilon"),
        ("create new.db d --posterior 2", "--posterior"),
        ("create new.db d --epsilon 1 --delta 2", "--delta"),
        ("create new.db d --epsilon 1 --gamma 2", "target"),
        ("create new.db d --prior 0.1..0.5", "--plan"),
        ("create new.db d --gamma 2 --prior 0.5..0.1", "--prior"),
        ("create new.db d --plan none.json", ""),
        ("create new.db d --plan books.db", ""),
        ("create new.db d --plan . --epsilon 1", "--plan"),
        ("create new.db d --plan . --size-known", "--size-known"),
        ("create none/new.db d --epsilon 1", ""),
        ("create . d --epsilon 1", ""),
        ("create notes.txt d --epsilon 1", ""),
        ("create mysql://u:secret@h/x d --epsilon 1", ""),
        ("show new.db", ""),
        ("verify new.db", ""),
        ("export new.db", ""),
        ("close new.db d", ""),
        ("show notes.txt", ""),
        ("show books.db hospitol", ""),
        ("close books.db hospitol", ""),
        ("verify books.db hospital --head zz", "--head"),
        ("verify books.db --head abcdef012345", "--head"),
        ("export books.db --save x.txt", "--save"),
        ("export books.db --save none/x.csv", "--save"),
    ],
)
def test_wrong_calls(run, refused_at, made, tmp_path, line, place):
    (tmp_path / "notes.txt").write_text("these are notes, not a ledger")
    before = (tmp_path / "books.db").read_bytes()
    found = refused_at(f"ledger {line}")
    assert found == place or not place
    assert "secret" not in run(f"ledger {line}")[2]
    assert not (tmp_path / "new.db").exists()
    assert (tmp_path / "books.db").read_bytes() == before


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "", " x", "w" * 201])
def test_wrong_names_make_no_file(run, tmp_path, name):
    code, out, err = run("ledger create new.db --epsilon 1", name)
    assert (code, out) == (2, "") and err.count("\n") == 1 and "\x1b" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_not_there(run):
    code, out, err = run("ledger show postgresql://u:secret@127.0.0.1:9/x")
    assert (code, out) == (3, "")
    assert err == (
        "whosin: the ledger cannot be used: the server cannot be reached (127.0.0.1:9); "
        "no answer was given\n"
    )


def test_a_budget_set_twice(run, made):
    code, out, err = run("ledger create books.db hospital --epsilon 1")
    assert (code, out) == (1, "") and "once and for all" in err


def test_answers_of_the_only_dataset_need_no_name(run, tmp_path):
    """It was a usage error; of several datasets it names all."""
    from whosin.app.example_data import write_hospital

    path = write_hospital(tmp_path, patients=60)
    assert run(f"release {path.name} --yes --no-preflight")[0] == 0
    code, out, _ = run("ledger answers ledger.db --json")
    assert code == 0 and json.loads(out)["dataset"] in run("ledger show ledger.db")[1]
    assert run("ledger create ledger.db further --posterior 0.6 --prior 0.5")[0] == 0
    code, out, err = run("ledger answers ledger.db")
    assert (code, out) == (2, "") and "'further'" in err and "say which" in err


ASKED = """
[adversary]
prior = 0.5
[target]
epsilon = 1
[table]
source = "stays.csv"
privacy_unit = "who"
part = "least(ward)"
[domains]
ward = ["a", "b"]
[ledger]
url = "books.db"
[budget]
share = "1/4"
[[queries]]
kind = "count"
"""


def foreseen(run, monkeypatch, who: str, part: str = "") -> tuple[dict, str]:
    monkeypatch.setenv("LOGNAME", who)
    with open("stays.toml", "w") as file:
        file.write(ASKED + (f'part = "{part}"\n' if part else ""))
    code, out, err = run("release stays.toml --dry-run")
    assert (code, err) == (0, "")
    data = answer(run("release stays.toml --dry-run --json"))["asker"]
    assert (data["refusal"] is None) == ("would be refused" not in out)
    assert data["refusal"] is None or data["refusal"].split(";")[0] in " ".join(out.split())
    code, _, err = run("release stays.toml --yes")
    refusal = err.removeprefix("whosin: ").strip()
    assert (code == 0) == (data["refusal"] is None or data["known"]), err
    assert code == 0 or data["refusal"].split(";")[0] in refusal
    return data, out


def test_a_dry_run_says_what_its_asker_has_left_and_whether_a_release_is_refused(
    run, monkeypatch, tmp_path
):
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    (tmp_path / "stays.toml").write_text(ASKED)
    for variable in ("USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    assert run("ledger create books.db stays --scenario stays.toml")[0] == 0
    assert run("ledger quota books.db stays ann --share 0")[0] == 0
    assert run("ledger quota books.db stays eve --share 1/4")[0] == 0
    ann, out = foreseen(run, monkeypatch, "ann")
    assert ann["left"] == 0 and "quota 'ann' of dataset 'stays' has 0 left" in ann["refusal"]
    assert "'ann', who asks, has ε = 0 left today" in " ".join(out.split())
    bob, _ = foreseen(run, monkeypatch, "bob", "a")
    assert (bob["left"], bob["refusal"], bob["known"]) == (0.75, None, False)
    for part, left in (("a", 0.5), ("b", 0.75)):
        data, _ = foreseen(run, monkeypatch, "bob", part)
        assert (data["left"], data["known"]) == (left, part == "a")
    eve, _ = foreseen(run, monkeypatch, "eve")
    assert (eve["left"], eve["refusal"]) == (0.25, None)
    again, out = foreseen(run, monkeypatch, "eve")
    assert again["known"] and "quota 'eve'" in again["refusal"]
    assert "Asked anew, they would be refused" in " ".join(out.split())
    monkeypatch.setitem(globals(), "ASKED", ASKED.replace("1/4", "1/3"))
    dearer, _ = foreseen(run, monkeypatch, "eve")
    assert not dearer["known"] and "quota 'eve'" in dearer["refusal"]


def test_a_scenario_without_questions_names_the_table_of_a_budget(run, tmp_path):
    """As `inspect` and `sql` take one; `create` and `amend` said that queries were missing."""
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    (tmp_path / "own.toml").write_text(ASKED.partition("[[queries]]")[0])
    assert run("ledger create books.db stays --scenario own.toml")[0] == 0
    (tmp_path / "stays.csv").write_text("who,ward\np,a\n")
    assert run("ledger amend books.db stays --scenario own.toml")[0] == 0
    with wi.Ledger("books.db") as ledger:
        assert [each.kind for each in ledger.history("stays")] == ["registered", "amended"]


def test_a_closed_dataset_says_so_before_anything_else(run, tmp_path):
    """It spoke of the table that had changed, looked at the rows, or took a slip in the name of a
    request for a new one."""
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    (tmp_path / "stays.toml").write_text(ASKED)
    code, first, err = run("release stays.toml --request monday --yes --json")
    assert code == 0, err
    assert run("ledger close books.db stays")[0] == 0
    (tmp_path / "stays.csv").write_text("who,ward,more\np,a,1\n")
    for options in ("", "--yes", "--again --yes", "--request monady"):
        code, out, err = run(f"release stays.toml {options}")
        assert (code, out) == (1, "") and "'stays' is closed" in err, options
        assert "registered with" not in err and "warning" not in err, options
    assert "'monady'" in err
    shown = answer(run("release stays.toml --request monday --json"))
    assert shown["answers"] == json.loads(first)["answers"]
    asked = load_scenario("stays.toml")
    with pytest.raises(BudgetRefused, match="is closed"), asked.open_session() as session:
        asked.release(session)
    for curator in (True, False):
        with pytest.raises(BudgetRefused, match="is closed"):
            wi.Session(asked.open_table(), asked.plan, "books.db", curator=curator)


def test_a_request_shows_its_answers_when_a_column_is_gone(run, tmp_path):
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    asked = ASKED + 'by = "ward"\n'
    (tmp_path / "stays.toml").write_text(asked)
    code, first, err = run("release stays.toml --request monday --yes --json")
    assert code == 0, err
    (tmp_path / "stays.csv").write_text("who\np\nq\n")
    for scenario in (asked, asked.replace('part = "least(ward)"\n', "").replace("ward = ", "#")):
        (tmp_path / "stays.toml").write_text(scenario)
        shown = answer(run("release stays.toml --request monday --json"))
        assert shown["answers"] == json.loads(first)["answers"]
        assert run("release stays.toml --request monday --report r.html")[0] == 0
        (tmp_path / "r.html").unlink()
        assert run("release stays.toml --request tuesday --yes")[0] == 2
    (tmp_path / "stays.toml").write_text(asked.replace('kind = "count"', 'kind = "rows"'))
    assert run("release stays.toml --request monday")[0] != 0  # another question


def test_a_dry_run_foresees_that_a_part_of_a_batch_pays(run, tmp_path):
    """It said that stored answers would be shown, since a question of the batch cost as much."""
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    two = ASKED.replace("1/4", "1/2") + '[[queries]]\nkind = "count"\nwhere = "ward = \'a\'"\n'
    for text, debits, known in ((two, 2, False), (ASKED, 3, False), (ASKED, 3, True)):
        (tmp_path / "stays.toml").write_text(text)
        foreseen = answer(run("release stays.toml --dry-run --json")).get("asker") or {}
        released = json.loads(run("release stays.toml --yes --json")[1])
        assert foreseen.get("known", False) == known
        assert released["budget_state"]["debits"] == debits


def test_a_member_who_asks_for_everything_is_told_which_share_fits(run, monkeypatch, tmp_path):
    """A plain release takes the whole budget, and its refusal named no way out."""
    (tmp_path / "stays.csv").write_text("who,ward\np,a\nq,b\nr,a\n")
    text = ASKED.replace('[budget]\nshare = "1/4"\n', "")
    (tmp_path / "stays.toml").write_text(text)
    assert run("ledger create books.db stays --scenario stays.toml")[0] == 0
    assert run("ledger quota books.db stays team --share 1/3 --member eve")[0] == 0
    monkeypatch.setenv("LOGNAME", "eve")
    for option in ("--yes", "--dry-run"):
        code, out, err = run("release stays.toml", option)
        said = " ".join((out + err).split())
        assert (code, "quota 'team'" in said) == (int(option == "--yes"), True)
        assert 'a share of 1/3 of the plan would fit: share = "1/3"' in said
    (tmp_path / "stays.toml").write_text(f'{text}[budget]\nshare = "1/3"\n')
    assert run("release stays.toml --yes")[0] == 0
    code, _, err = run("release stays.toml --yes --again")
    assert code == 1 and "quota 'team'" in err and "would fit" not in err


def test_a_period_whose_share_leaves_nothing_readable_is_warned_of(run, clock, tmp_path):
    """A month of five years of equal shares counts three people as −15 ± 443, without a word."""
    clock("2027-01-20")
    rows = "".join(f"p{n},{'ab'[n % 2]}\n" for n in range(200))
    (tmp_path / "stays.csv").write_text(f"who,ward\n{rows}")
    text = ASKED.replace('[budget]\nshare = "1/4"\n', "")
    text += 'by = ["ward"]\n[schedule]\nevery = "month"\nuntil = "{}"\n'
    path, said = tmp_path / "stays.toml", "too noisy to read: it needs"
    for until, warned in (("2031-12", True), ("2027-02", False)):
        path.write_text(text.format(until).replace("books.db", f"{until}.db"))
        code, _, err = run("release", path)
        assert code == 0 and (said in " ".join(err.split())) == warned
        if warned:
            needs = "count: too noisy to read: it needs 284 people in a group, and the table has"
            assert needs in " ".join(err.split())
            assert "fewer periods" in " ".join(err.split())
    path.write_text(text.format("2031-12").replace("books.db", "again.db"))
    said = pytest.warns(UserWarning, match="too noisy to read: it needs")
    with load_scenario(path).open_session(preflight=True) as session, said:
        session.release(Count())
