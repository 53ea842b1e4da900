"""Whose budget a release is paid from: another month, a correction, a copy, the same again."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "{name}.csv"
privacy_unit = "person"
[domains]
ward = ["x", "y"]
[budget]
share = "1/4"
[[queries]]
kind = "histogram"
column = "ward"
"""
EVERY_MONTH = 'every = "month"\nstart = "2026-01"\nuntil = "2099-12"\n'
MONTHS = {
    "january": "a,x b,y c,x",
    "february": "a,x b,y d,y",
    "others": "q,x r,y",
    "copy": "c,x a,x b,y",
}


@pytest.fixture
def release(run, tmp_path):
    """Release a month, without a look at its rows unless asked; its code, its answer or None, and
    what was said."""
    for name, rows in MONTHS.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["person,ward", *rows.split()]) + "\n")
        (tmp_path / f"{name}.toml").write_text(SCENARIO.format(name=name))

    def call(name: str, *options: str, look: bool = False) -> tuple[int, dict | None, str]:
        options += () if look else ("--no-preflight",)
        code, out, err = run("release", tmp_path / f"{name}.toml", "--json", *options)
        return code, json.loads(out) if out else None, err

    return call


def test_the_same_release_again_shows_its_answer_and_spends_nothing(release, tmp_path):
    code, first, err = release("january")
    assert (code, err) == (0, "") and first["budget_state"]["debits"] == 1
    assert first["answers"][0]["name"] and first["spent"] == pytest.approx(first["left"] / 3)
    code, second, err = release("january")
    assert code == 0 and "asked before" in err
    assert second["answers"] == first["answers"] and second["request"] == first["request"]
    assert second["budget_state"]["debits"] == 1
    code, third, _ = release("january", "--again")
    assert code == 0 and third["budget_state"]["debits"] == 2
    assert third["request"] != first["request"]
    # Another question, another share or another plan is new.
    assert release("january", "--share", "1/20")[1]["budget_state"]["debits"] == 3
    path = tmp_path / "january.toml"
    path.write_text(path.read_text().replace('"1/4"', '"1/5"'))
    assert release("january")[1]["budget_state"]["debits"] == 4


def test_an_interrupted_release_goes_on_when_it_is_asked_again(release, monkeypatch):
    from whosin.release import DuckDB

    def failing(self, expression, progress=None):
        raise RuntimeError("no")

    with monkeypatch.context() as patched:
        patched.setattr(DuckDB, "run", failing)
        code, _, err = release("january")
    assert code == 3 and "the debit stands" in err
    code, _, err = release("january")
    assert code == 1 and "suspended" in err  # until its curator has looked


def test_another_month_is_refused_until_somebody_says_whose_it_is(release, run, tmp_path):
    assert release("january")[0] == 0
    code, out, err = release("february")
    assert (code, out) == (1, None)
    assert "--continues january" in err and "--new-people" in err
    shown = json.loads(run("ledger", "show", tmp_path / "ledger.db", "--json")[1])
    assert "february" not in json.dumps(shown)
    for month in ("january", "february"):  # both at once cannot be, whatever was asked before
        code, out, err = release(month, "--continues", "january", "--new-people")
        assert (code, out) == (2, None) and "--continues" in err and "--new-people" in err
    code, out, _ = release("february", "--continues", "january")
    assert code == 0
    assert (out["budget_state"]["dataset"], out["budget_state"]["debits"]) == ("january", 2)
    code, same, err = release("february", "--continues", "january")
    assert code == 0 and same["answers"] == out["answers"] and "asked before" in err
    assert same["budget_state"]["debits"] == 2
    # The first month's rows are not those of the dataset any more.
    assert release("january", "--again")[0] == 1


def test_a_dry_run_refuses_other_columns_as_the_release_does(release, run, tmp_path):
    """It took an amendment for granted where nothing had been paid for yet."""
    path, ledger = tmp_path / "january.csv", tmp_path / "ledger.db"
    path.write_text("".join(f"{line},1\n" for line in path.read_text().split()))
    created = run("ledger", "create", ledger, "january", "--scenario", path.with_suffix(".toml"))
    assert created[0] == 0
    path.write_text("".join(f"{line[:-2]}\n" for line in path.read_text().split()))
    foreseen = release("january", "--dry-run")[1]["asker"]["refusal"]
    code, _, err = release("january")
    assert code == 1 and foreseen in err
    assert "other columns" in err and "whosin ledger answers" in err


def test_commands_that_a_refusal_names_can_be_pasted(release, run, tmp_path):
    """They lacked the ledger, or the file of the scenario."""
    assert release("january")[0] == 0
    shown = f"whosin ledger show {tmp_path / 'ledger.db'}"
    assert shown in release("february", "--continues", "march")[2]
    assert shown in run("ledger", "answers", tmp_path / "ledger.db", "--request", "none")[2]
    path = tmp_path / "january.toml"
    path.write_text(path.read_text() + "within = 0.001\n")
    assert "whosin plan january.toml --accuracy" in release("january")[2]


def test_another_month_is_asked_in_sql_too(release, run, tmp_path):
    """The refusal named options that only a release had."""
    select = "SELECT ward, COUNT(DISTINCT person) AS n FROM february GROUP BY ward"
    asked = "sql", tmp_path / "february.toml", select, "--json", "--no-preflight", "--share", "1/8"
    assert release("january")[0] == 0
    code, _, err = run(*asked)
    assert code == 1 and "--continues january" in err and "--new-people" in err
    code, out, _ = run(*asked, "--continues", "january")
    state = json.loads(out)["budget_state"]
    assert code == 0 and (state["dataset"], state["debits"]) == ("january", 2)
    spelled = select.lower().replace(" as n", "")
    again = run(*(spelled if each is select else each for each in asked))
    assert again[0] == 0 and json.loads(again[1])["budget_state"]["debits"] == 2
    other = tmp_path / "others.toml"
    assert run("sql", other, "SELECT COUNT(*) FROM others", "--new-people", "--yes")[0] == 0


def test_a_dry_run_foresees_what_the_release_says_of_another_month(release, tmp_path):
    """It passed, and the release was refused; or it took the month for the one before."""

    def asker(name: str, *options: str) -> dict | None:
        code, out, err = release(name, "--dry-run", *options)
        assert (code, err) == (0, "")
        return out.get("asker")

    assert asker("january") is None  # there is no ledger yet
    assert release("january")[0] == 0
    assert asker("january")["known"]
    foreseen = asker("february")
    code, _, err = release("february")
    assert code == 1 and not foreseen["known"] and foreseen["refusal"] in err
    assert asker("february", "--new-people") is None
    foreseen = asker("february", "--continues", "january")
    assert not foreseen["known"] and foreseen["refusal"] is None
    assert release("february", "--dry-run", "--continues", "march")[0] == 2
    assert release("february", "--continues", "january")[0] == 0
    for name, options in (
        ("february", ("--continues", "january")),
        ("january", ()),
        ("january", ("--continues", "january")),
    ):
        assert asker(name, *options)["known"]
    # Other domains are another question, and a copy of the file is the same table.
    path = tmp_path / "copy.toml"
    (tmp_path / "copy.csv").write_text((tmp_path / "february.csv").read_text())
    assert asker("copy")["known"]
    path.write_text(path.read_text().replace('["x", "y"]', '["x", "y", "z"]'))
    assert "february" not in asker("copy")["refusal"] and not asker("copy")["known"]
    path = tmp_path / "february.toml"
    path.write_text(path.read_text().replace('["x", "y"]', '["x", "y", "z"]'))
    assert not asker("february", "--continues", "january")["known"]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_dry_run_says_that_nothing_is_left_for_later(release, run, tmp_path, noise):
    """The first release spent everything, and nobody had said so."""
    from whosin.report.releases import NOTHING_LEFT

    path = tmp_path / "january.toml"
    text = path.read_text().replace(
        "[table]", "delta = 1e-6\n[table]" * (noise == "gaussian") or "[table]"
    )
    text = text.replace("[budget]", f'[budget]\nnoise = "{noise}"')

    def dry_run(share: str) -> tuple[float, bool]:
        path.write_text(text.replace('share = "1/4"', share))
        said = NOTHING_LEFT in " ".join(run("release", path, "--dry-run")[1].split())
        return json.loads(run("release", path, "--dry-run", "--json")[1])["left_after"], said

    assert dry_run("") == (0, True)
    left, said = dry_run('share = "1/4"')
    code, made, _ = release("january")
    assert (code, said) == (0, False) and left == pytest.approx(made["left"])
    path.write_text(text)
    (tmp_path / "january.csv").write_text("person,ward\na,x\n")
    assert dry_run("[schedule]\n" + EVERY_MONTH)[1] is False


def test_a_dry_run_says_once_what_is_left(release, run, tmp_path):
    path, ledger = tmp_path / "january.toml", tmp_path / "ledger.db"
    assert release("january")[0] == 0
    assert "who asks" not in run("release", path, "--dry-run")[1]
    assert run("ledger", "quota", ledger, "january", "ann", "--share", "1/2")[0] == 0
    assert "who asks" in run("release", path, "--dry-run")[1]


def test_a_dataset_that_is_not_there_is_not_continued(release, tmp_path):
    """A misspelt name once opened a budget of its own."""
    code, out, err = release("january", "--continues", "january")
    assert (code, out) == (2, None) and "--continues" in err
    assert not (tmp_path / "ledger.db").exists()


def test_a_budget_that_is_created_is_for_other_people_too(release, run, tmp_path):
    """It was opened with a warning about copies, and without one about another month."""
    books = tmp_path / "ledger.db"
    assert release("january")[0] == 0
    for name, options, code in (
        ("february", (), 1),
        ("copy", ("--new-people",), 1),
        ("others", ("--new-people",), 0),
    ):
        made = run("ledger create", books, name, "--scenario", tmp_path / f"{name}.toml", *options)
        assert made[0] == code and (code == 0 or "--continues january" in made[2])
    assert "by the curator" in run("ledger export", books, "others")[1]


def test_new_people_are_recorded_and_copies_are_refused(release, run, tmp_path):
    assert release("january")[0] == 0
    code, out, err = release("copy", "--new-people")
    assert (code, out) == (1, None) and "january" in err
    code, out, _ = release("others", "--new-people")
    assert code == 0 and out["budget_state"]["debits"] == 1
    ledger: Path = tmp_path / "ledger.db"
    history = run("ledger", "export", ledger, "others")[1]
    assert "by the curator" in history and "january" in history


def test_a_release_about_new_people_goes_on_after_a_failure(release, monkeypatch):
    """What is said of the people is not part of a question, which is asked again without it."""
    from whosin.errors import StoreFailed
    from whosin.ledger import Ledger

    def failing(self, *given):
        raise StoreFailed("the disk is full")

    assert release("january")[0] == 0
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "answer_debits", failing)
        assert release("others", "--new-people")[0] == 3
    code, out, _ = release("others", "--new-people")
    assert code == 0 and out["budget_state"]["debits"] == 1


def test_a_request_with_a_new_name_is_looked_at_too(release, tmp_path):
    """Naming a request once skipped the look at the rows."""
    path = tmp_path / "january.toml"
    path.write_text(path.read_text().replace('"x"', '"X"'))
    code, out, err = release("january", "--request", "monday", look=True)
    assert (code, out) == (1, None) and "before anything was spent" in err
    assert release("january", "--request", "monday")[0] == 0
    assert (
        release("january", "--request", "monday", look=True)[0] == 0
    )  # paid before: not looked at again


def test_a_copy_of_an_earlier_month_is_known_after_the_dataset_went_on(release):
    assert release("january")[0] == 0
    assert release("february", "--continues", "january")[0] == 0
    code, answer, _ = release("copy", "--new-people")
    assert (code, answer) == (1, None)
    assert release("others", "--new-people")[0] == 0


def test_what_was_written_is_not_written_over(release, tmp_path):
    for option, name in (("--save", "x.json"), ("--report", "x.html")):
        (tmp_path / name).write_text("before")
        code, answer, _ = release("january", option, str(tmp_path / name))
        assert (code, answer) == (2, None) and (tmp_path / name).read_text() == "before"
    assert not (tmp_path / "ledger.db").exists()


def test_several_csv_files_are_not_written_over(release, tmp_path):
    path = tmp_path / "january.toml"
    path.write_text(path.read_text() + '[[queries]]\nkind = "count"\nname = "all"\n')
    (tmp_path / "x-2-all.csv").write_text("before")
    code, answer, _ = release("january", "--save", str(tmp_path / "x.csv"))
    assert (code, answer) == (2, None) and not (tmp_path / "ledger.db").exists()
    assert release("january", "--save", str(tmp_path / "y.csv"))[0] == 0


def test_paid_answers_are_opened_again(release, run, tmp_path):
    _, first, _ = release("january")
    _, second, _ = release("january", "--again")
    books = tmp_path / "ledger.db"
    code, out, _ = run("ledger", "answers", books, "january", "--json")
    opened = json.loads(out)["releases"]
    assert code == 0 and [each["request"] for each in opened] == [
        first["request"],
        second["request"],
    ]
    assert opened[0]["answers"] == first["answers"]
    assert opened[1]["budget_state"]["debits"] == 2
    code, out, _ = run("ledger", "answers", books, "january")
    assert code == 0 and "histogram" in out
    one = ["--request", first["request"]]
    saved, report = tmp_path / "again.json", tmp_path / "again.html"
    code, _, _ = run(
        "ledger", "answers", books, "january", *one, "--save", saved, "--report", report
    )
    assert code == 0 and "<html" in report.read_text()
    assert json.loads(saved.read_text())["answers"][0]["rows"] == first["answers"][0]["rows"]
    assert run("ledger", "answers", books, "january", *one, "--save", saved)[0] == 2
    assert run("ledger", "answers", books, "january", "--save", tmp_path / "z.json")[0] == 2
    assert run("ledger", "answers", books, "january", "--request", "none")[0] == 2
    assert run("ledger", "answers", books, "nobody")[0] == 2
    assert release("january")[1]["budget_state"]["debits"] == 2


def test_what_two_datasets_about_the_same_people_allow_together(release, run, tmp_path):
    first = release("january")[1]
    books = tmp_path / "ledger.db"
    shown = json.loads(run("ledger", "show", books, "--json")[1])
    assert "together" not in shown
    assert release("others", "--new-people")[0] == 0
    for names in ([], ["january"]):
        shown = json.loads(run("ledger", "show", books, *names, "--json")[1])
        (both,) = shown["together"]
        assert both["datasets"] == ["january", "others"]
        assert both["other_people_by_curators_word"] == ["others"]
        assert both["spent_epsilon"] == pytest.approx(2 * first["spent"])
        # Read once from the prior of one half: the odds are e to the sum.
        odds = math.exp(both["spent_epsilon"])
        assert both["posterior"] == pytest.approx(odds / (1 + odds))
        assert both["budget_posterior"] == pytest.approx(1.5**2 / (1 + 1.5**2))
    assert "curator's word" in " ".join(run("ledger", "show", books)[1].split())


def test_another_month_is_looked_at_before_it_pays(release, tmp_path):
    assert release("january")[0] == 0
    (tmp_path / "february.csv").write_text("person,ward\na,X\nb,Y\n")
    code, answer, err = release("february", "--continues", "january", look=True)
    assert (code, answer) == (1, None) and "no row has the declared" in err
    assert release("january")[1]["budget_state"]["debits"] == 1


def test_a_month_that_is_refused_leaves_no_trace(release, run, tmp_path):
    """--continues on an empty budget used to record the month, and then refused it."""
    for path in tmp_path.glob("*.toml"):
        path.write_text(path.read_text().replace('"1/4"', "1"))
    assert release("january")[0] == 0
    kept = run("ledger", "export", tmp_path / "ledger.db", "--json")[1]
    code, _, err = release("february", "--continues", "january")
    assert code == 1 and "0 left" in err
    assert run("ledger", "export", tmp_path / "ledger.db", "--json")[1] == kept


def test_the_look_says_what_is_lost_clamped_and_left_out(release, run, tmp_path):
    rows = ["a,x,5", "a,x,6", "a,y,7", "b,y,90", "b,y,", ",x,8", "c,x,500"]
    (tmp_path / "january.csv").write_text("\n".join(["person,ward,days", *rows]) + "\n")
    path = tmp_path / "january.toml"
    text = path.read_text().replace("[budget]", 'days = "0..100"\n[budget]')
    path.write_text(text + '[[queries]]\nkind = "sum"\ncolumn = "days"\nby = "ward"\n')
    code, answer, err = release("january", look=True)
    assert (code, answer) == (1, None) and "sum: max_rows_per_group = " in err and "--yes" in err
    assert not (tmp_path / "ledger.db").exists()
    said = [line.partition("warning: ")[2] for line in err.splitlines()]
    lost, days, *bounds, noisy = (line for line in said if line)
    assert "too noisy to read: it needs " in noisy
    assert lost.startswith("1 of 7 rows")
    assert days.startswith("days: 1 of 7 rows have no number; 1 of 7 rows (14.3%)")
    # a and b have two rows in a ward, a is in two wards; c is within the bounds.
    assert [line.partition(" leaves out ")[2] for line in bounds] == [
        "groups of 1 of 3 privacy units (33.3%); with 2: 0%",
        "2 of 6 rows (33.3%), of 66.7% of the people; with 2: 0%",
        "2 of 6 rows (33.3%), of 33.3% of the people; with 2: 0%",
    ]
    # Nothing of it is in the answer or in the ledger.
    answer = release("january")[1]
    assert answer["budget_state"]["debits"] == 2
    kept = run("ledger", "export", tmp_path / "ledger.db", "--json")[1] + json.dumps(answer)
    assert "privacy units" not in kept and "no number" not in kept
    (tmp_path / "others.csv").write_text("person,ward\na,x\nb,y\n,x\n,y\n,y\n")
    code, _, err = release("others", "--new-people", look=True)
    assert (
        code == 1
        and "3 of 5 rows" in err
        and "rows without a privacy unit would be dropped; --yes" in err
    )
    path.write_text(path.read_text().replace("0..100", "0..100000"))
    code, _, err = release("january", "--amend", look=True)
    assert code == 1 and "of the declared range" in err
    assert release("january", "--amend", "--yes", look=True)[1]["budget_state"]["debits"] == 4


def test_report_and_answer_say_what_the_months_allow_together(release, run, tmp_path):
    """1 − 1/(1 + e^(2·ln 1.5/4)): the ε add up, and never the beliefs."""
    assert "together" not in release("january")[1]
    page = tmp_path / "r.html"
    code, out, _ = release("others", "--new-people", "--report", str(page))
    assert code == 0 and out["together"]["datasets"] == ["january", "others"]
    assert out["together"]["posterior"] == pytest.approx(1 / (1 + math.exp(-math.log(1.5) / 2)))
    text = " ".join(page.read_text().split())
    assert "What these datasets allow together" in text and "by the curator" in text.lower()
    assert text.count("can become 55.1% sure") == 2, "on the first page, and beside the ledger"
    found = json.loads(run("ledger", "answers", tmp_path / "ledger.db", "others", "--json")[1])
    assert found["releases"][0]["together"] == out["together"]
    assert found["releases"][0]["when"] == out["when"]


def test_an_earlier_month_asked_again_shows_its_answer_after_the_dataset_went_on(release, tmp_path):
    _, first, _ = release("january")
    _, second, _ = release("february", "--continues", "january")
    for options in ((), ("--continues", "january")):
        code, shown, err = release("january", *options)
        assert code == 0 and "asked before" in err
        assert (shown["request"], shown["answers"]) == (first["request"], first["answers"])
        assert shown["budget_state"]["debits"] == 2
    # It did not go back: the dataset is still about February, and another question of January's
    # rows is refused until the curator says so.
    code, shown, _ = release("february", "--continues", "january")
    assert code == 0 and shown["answers"] == second["answers"]
    text = (tmp_path / "january.toml").read_text()
    (tmp_path / "january.toml").write_text(text.replace('"1/4"', '"1/8"'))
    code, shown, _ = release("january")
    assert code == 1 and shown is None
    # Nor is a file that has changed since taken for the one that was asked.
    (tmp_path / "january.toml").write_text(text)
    (tmp_path / "january.csv").write_text("person,ward\na,x\nb,y\nc,x\ne,x\n")
    code, shown, _ = release("january")
    assert code == 1 and shown is None


def test_an_earlier_month_is_shown_again_under_a_schedule(release, tmp_path):
    """Its share is the one of the period in which it was paid; the repeat once asked for one."""
    for name in ("january", "february", "others"):
        text = SCENARIO.format(name=name).replace('[budget]\nshare = "1/4"\n', "")
        (tmp_path / f"{name}.toml").write_text(f"{text}[schedule]\n{EVERY_MONTH}")
    months = {"january": release("january")[1]}
    for name in ("february", "others"):
        months[name] = release(name, "--continues", "january")[1]
    for name, paid in months.items():
        for options in ((), ("--continues", "january")):
            code, shown, err = release(name, *options)
            assert code == 0 and "asked before" in err
            assert (shown["request"], shown["answers"]) == (paid["request"], paid["answers"])
            state = shown["budget_state"]
            assert (state["dataset"], state["debits"]) == ("january", 3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_scenario_without_the_schedule_spends_the_share_of_the_period(
    release, run, tmp_path, clock, noise
):
    """It was taken to spend all of the plan, and refused for a δ that no answer needs."""
    clock("2027-01-20")
    text = SCENARIO.format(name="january").replace(
        "posterior = 0.6", "posterior = 0.6\ndelta = 1e-6"
    )
    said, silent = f'noise = "{noise}"\nshare = "1/4"', f'noise = "{noise}"'
    path = tmp_path / "january.toml"
    text = text.replace('share = "1/4"', silent)
    path.write_text(f'{text}[schedule]\nevery = "month"\nuntil = "2027-04"\n')
    books = tmp_path / "ledger.db"
    assert run("ledger create", books, "january", "--scenario", path)[0] == 0
    expected = json.loads(run("release", path, "--dry-run", "--json")[1])
    path.write_text(text)
    dry = json.loads(run("release", path, "--dry-run", "--json")[1])
    assert dry["estimates"] == expected["estimates"] and dry["asker"]["refusal"] is None
    code, out, err = run("sql", path, "SELECT COUNT(*) FROM january", "--dry-run", "--json")
    assert code == 0 and json.loads(out)["asker"]["refusal"] is None
    code, made, err = release("january")
    assert (code, err) == (0, "") and made["budget_state"]["debits"] == 1
    assert made["answers"][0]["noise"] == dry["estimates"][0]["noise"]
    code, made, err = release("january", "--again")  # the period has nothing left
    assert code == 1 and "in its period from 2027-01-20" in err and "δ" not in err
    assert "next period begins on 2027-02-01" in err and 'share = "1/8"' in err
    assert "this period's share of the budget is spent; " in err
    path.write_text(text.replace(silent, said))
    clock("2027-02-20")
    assert release("january", "--again")[0] == 0


def test_a_correction_within_a_period_is_paid_from_what_was_kept(release, run, tmp_path, clock):
    """All that a correction heard was that the period has 0 left."""
    clock("2027-01-20")
    kept = {}
    for name in ("january", "february"):
        path = tmp_path / f"{name}.toml"
        text = path.read_text() + '[schedule]\nevery = "month"\nuntil = "2027-04"\n'
        kept[path] = text.replace('"1/4"', '"1/8"')
        path.write_text(text.replace('share = "1/4"', ""))
    path, correction = kept

    def dry_run(file: Path) -> str:
        return " ".join(run("release", file, "--dry-run", "--continues", "january")[1].split())

    ways = 'the next period begins on 2027-02-01; share = "1/8" in [budget] keeps half'
    assert ways in " ".join(run("release", path, "--dry-run")[1].split())
    assert release("january")[0] == 0
    code, _, err = release("february", "--continues", "january")
    assert code == 1 and ways in err and ways in dry_run(correction)
    clock("2027-02-20")
    for file, text in kept.items():
        file.write_text(text)
    assert ways not in run("release", path, "--dry-run")[1]
    assert release("january")[0] == 0
    assert "would be refused" not in dry_run(correction)
    assert release("february", "--continues", "january")[0] == 0
    assert ways.replace("02-01", "03-01") in dry_run(path)


def test_suggestions_are_for_the_share_of_the_period(release, run, tmp_path, clock):
    """They were for the whole budget, beside errors at the share of a month."""
    clock("2027-01-20")
    path = tmp_path / "january.toml"
    text = path.read_text() + '[[queries]]\nkind = "count"\n'
    found = []
    for budget in ('share = "1/4"', "[schedule]\nevery = 'month'\nuntil = '2027-04'"):
        path.write_text(text.replace('share = "1/4"', budget))
        dry = json.loads(run("release", path, "--dry-run", "--json")[1])
        found.append(dry["suggestions"])
    assert found[0] and found[0] == found[1]


@pytest.mark.parametrize(
    ("said", "unspent"),
    [  # without a start that of the first day
        ('every = "month"\nuntil = "2027-02"', "rolls-on"),
        ('periods = ["2027-01", "2027-02"]\nshares = ["1/4", "1/2"]', "lapses"),
    ],
)
def test_a_past_period_is_shown_again_after_the_schedule_ended(
    release, run, tmp_path, clock, said, unspent
):
    path = tmp_path / "january.toml"
    text = SCENARIO.format(name="january").replace('[budget]\nshare = "1/4"\n', "")
    path.write_text(f'{text}[schedule]\n{said}\nunspent = "{unspent}"\n')

    def dry_run() -> dict:
        return json.loads(run("release", path, "--dry-run", "--json")[1])

    clock("2027-01-20")
    first = release("january")[1]
    clock("2027-02-10")
    share = 1 / 2  # of two months, or of the second one
    epsilon = dry_run()["estimates"][0]["costs"]["add-remove"]["epsilon"]
    assert epsilon == pytest.approx(share * first["plan"]["epsilon"])
    for day in ("2027-03-01", "2029-01-01"):
        clock(day)
        code, shown, err = release("january")
        assert code == 0 and "asked before" in err
        assert (shown["request"], shown["answers"]) == (first["request"], first["answers"])
        assert shown["budget_state"]["debits"] == 1
        asker = dry_run()["asker"]
        assert asker["known"] and "the schedule ended with 2027-02-28" in asker["refusal"]
    path.write_text(path.read_text().replace('"histogram"', '"histogram"\nname = "new"'))
    assert dry_run()["asker"]["known"]  # under whatever name
    path.write_text(path.read_text().replace('"new"', '"new"\nwhere = "person <> \'b\'"'))
    assert not dry_run()["asker"]["known"]
    for options in ((), ("--again",)):
        code, shown, err = release("january", *options, look=True)
        assert (code, shown) == (1, None) and "the schedule ended with 2027-02-28" in err
        assert "before the debit" not in err
    (tmp_path / "ledger.db").unlink()
    (tmp_path / "ledger.db-heads").unlink()
    assert run("release", path)[0] == run("release", path, "--dry-run")[0] == 2


def test_the_history_says_which_month_was_what(release, run, tmp_path):
    """Four blocks "count" could not be told apart."""
    books = tmp_path / "ledger.db"
    release("january")
    release("february", "--continues", "january")
    history = json.loads(run("ledger", "export", books, "january")[1])["datasets"][0]["history"]
    named = [(each["kind"], each["body"].get("table")) for each in history]
    assert named == [
        *(("registered", "january"), ("debit", "january"), ("answer", None)),
        *(("amended", "february"), ("debit", "february"), ("answer", None)),
    ]
    shown = run("ledger", "show", books, "january", "--entries")[1]
    for words in ("registered: january", "of january", "amended: february", "of february"):
        assert words in shown
    assert "of the table february" in run("ledger", "answers", books, "january")[1]
    paid = json.loads(run("ledger", "answers", books, "january", "--json")[1])["releases"]
    assert [each["table"] for each in paid] == ["january", "february"]
    assert release("january")[1]["table"] == "january"
    assert run("ledger", "verify", books)[0] == 0
    # Whoever continues a month is told which dataset it is part of.
    code, _, err = release("others", "--continues", "february")
    assert code == 2 and "part of dataset 'january'" in err and "say --continues january" in err
    # A copy under another name is the same table.
    (tmp_path / "copy.csv").write_text((tmp_path / "february.csv").read_text())
    code, copy, _ = release("copy")
    assert code == 0 and (copy["table"], copy["answers"]) == ("february", paid[1]["answers"])


def test_the_history_names_the_file_and_what_was_asked(release, run, tmp_path):
    """Each month was "the table visits", and a width was a number without a word."""
    books = tmp_path / "ledger.db"
    asked = 'kind = "count"\nname = "all"\nby = ["ward"]\nwithin = 100\n[about]\nperiod = "{}"'
    for name in ("january", "february"):
        path = tmp_path / f"{name}.toml"
        text = path.read_text().replace("privacy_unit", 'name = "visits"\nprivacy_unit')
        text = text.replace('kind = "histogram"\ncolumn = "ward"', asked.format(f"{name} 2026"))
        path.write_text(text)
    assert release("january")[0] == 0
    assert release("february", "--continues", "february")[0] == 2
    assert release("february", "--continues", "visits")[0] == 0
    paid = json.loads(run("ledger", "answers", books, "--json")[1])["releases"]
    assert [each["table"] for each in paid] == ["visits (january)", "visits (february)"]
    shown = " ".join(run("ledger", "answers", books)[1].split())
    assert "visits (january), january 2026" in shown
    assert "visits (february), february 2026" in shown
    code, _, err = release("others", "--continues", "january")
    assert code == 2 and "say --continues visits" in err
    shown = " ".join(run("ledger", "show", books, "--entries")[1].split())
    assert "all: count by ward within ±100, of visits (january)" in shown
    assert "amended: visits (february)" in shown
    assert run("ledger", "verify", books)[0] == 0


def test_a_later_month_is_shown_again_whatever_it_is_called(release, run, tmp_path):
    """Its answers are in the dataset that it continued; another question of it is refused."""
    release("january")
    _, paid, _ = release("february", "--continues", "january", "--yes", look=True)
    for options in ((), ("--no-preflight",)):
        code, shown, err = release("february", *options)
        assert code == 0 and "asked before" in err and "dataset 'january'" in err
        assert (shown["request"], shown["answers"]) == (paid["request"], paid["answers"])
    assert release("february", "--new-people")[0] == 1
    assert release("february", "--again")[0] == 1
    path = tmp_path / "february.toml"
    path.write_text(path.read_text().replace('"1/4"', '"1/8"'))
    code, _, err = release("february")
    assert code == 1 and "--continues january" in err
    assert json.loads(run("ledger", "show", tmp_path / "ledger.db", "--json")[1])


def test_a_dry_run_refuses_files_and_answers_are_opened_for_the_officer(
    release, run, refused_at, tmp_path
):
    """A dry run wrote no report, and said nothing; stored answers had no pages to be signed."""
    path, page = tmp_path / "january.toml", tmp_path / "officer.html"
    options = ("--dry-run", "--for", "officer", "--report", page)
    assert refused_at("release", path, *options) == "--report"
    assert refused_at("release", path, "--dry-run", "--save", tmp_path / "x.csv") == "--save"
    assert not page.exists() and release("january")[0] == 0
    ledger = tmp_path / "ledger.db"
    code, _, err = run("ledger", "answers", ledger, "--for", "officer", "--report", page)
    assert code == 0 and "[about]" in err and "signature" in page.read_text("utf-8").lower()


def test_the_officer_reads_the_worst_case(run):
    """It was the mildest belief of the range."""
    _, out, _ = run("explain", "--epsilon", "0.4", "--prior", "0.1..0.5", "--for", "officer")
    assert "was 50.0% sure" in out and "believe anything" not in out
    assert "how many are in, at most 69.0%" in " ".join(out.split())  # twice the ε


def test_accuracy_needs_and_gives_on_one_basis(run, tmp_path):
    """What a width needs was for one row a person, and what all of the budget gives for all that
    count."""
    (tmp_path / "x.csv").write_text("person,x\na,1\n")
    text = SCENARIO.format(name="x").partition("[domains]")[0] + (
        'people = 5000\nmax_rows_per_group = 4\n[domains]\nx = "0..6"\n'
        '[[queries]]\nkind = "mean"\ncolumn = "x"\nwithin = {}\n'
    )
    path = tmp_path / "x.toml"
    path.write_text(text.format(0.5))
    _, out, _ = run("plan", path, "--accuracy", "--json")
    alone = json.loads(out)["questions"][0]["alone"]
    path.write_text(text.format(alone))
    found = json.loads(run("plan", path, "--accuracy", "--json")[1])
    assert found["total"] == pytest.approx(found["allowed"], rel=0.01)
