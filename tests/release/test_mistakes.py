"""All mistakes of a scenario at once: each by its line, with a line to paste."""

from __future__ import annotations

import io

import pytest

from whosin import isolation
from whosin.documents import parse_toml, toml_lines
from whosin.errors import InvalidInput, Mistakes, OutOfMemory, SeveralMistakes, UnknownName
from whosin.release import Table
from whosin.release.scenario import load_scenario, read_scenario

ROWS = "id,age,ward,date\n1,34,North,2024-01-02\n2,71,South,2024-01-05\n"
GOOD = """[target]
posterior = 0.6
[adversary]
prior = "0.05..0.5"
[table]
source = "visits.csv"
privacy_unit = "id"
max_rows_per_group = 2
[domains]
ward = ["North", "South"]
age = "0..120"
[[queries]]
kind = "count"
by = ["ward"]
[[queries]]
name = "ages"
kind = "mean"
column = "age"
where = "ward = 'North'"
"""
WRONG = {
    "posterior = 0.6": "posterior = 60",
    'prior = "0.05..0.5"': 'prior = "5..50"',
    'privacy_unit = "id"': 'privacy_unit = "ID"',
    "max_rows_per_group = 2": "max_row_per_group = 2",
    'age = "0..120"': 'Age = "0..120"',
    'by = ["ward"]': 'by = ["Ward"]',
    'kind = "mean"': 'kind = "meen"',
    'kind = "count"': 'knid = "count"',
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "visits.csv").write_text(ROWS, encoding="utf-8")
    return tmp_path


def mistakes(folder, text):
    path = folder / "visits.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput) as refused:
        load_scenario(path).estimate_cost()
    return refused.value.parts


def test_every_mistake_is_said_with_its_line_and_the_line_to_paste(folder):
    text = GOOD
    for right, wrong in WRONG.items():
        text = text.replace(right, wrong)
    found = mistakes(folder, text)
    lines = text.splitlines()
    said = {lines[int(each.place.split(",")[0].split()[1]) - 1]: each.paste for each in found}
    assert said == {wrong: right for right, wrong in WRONG.items()}
    assert "question 2 (ages)" in found[-1].place and "question 1" in found[-2].place


@pytest.mark.parametrize("right", WRONG)
def test_what_is_pasted_is_right_also_where_it_is_alone(folder, right):
    (one,) = mistakes(folder, GOOD.replace(right, WRONG[right]))
    assert one.paste == right and one.place.startswith("line ")


def test_questions_under_a_name_in_the_singular_are_known_by_their_line(folder):
    text = GOOD.replace("[[queries]]", "[[query]]")
    found = mistakes(folder, text)
    (unknown,) = (each for each in found if "'query'" in str(each))
    line = text.splitlines().index("[[query]]") + 1
    assert "did you mean 'queries'?" in str(unknown) and unknown.place.startswith(f"line {line},")


@pytest.mark.parametrize("named", ["id", "date"], ids=["texts", "numbers"])
@pytest.mark.parametrize(
    "unit", ['privacy_unit = "tail"', 'privacy_unt = "id"', 'privacy_unit = ""', "max_groups = 1"]
)
def test_a_wrong_privacy_unit_hides_nothing(folder, unit, named):
    """Nor does a misspelt key, where the table is one of texts or not."""
    if named == "id":
        (folder / "visits.csv").write_text("id,age,ward,date\na,b,North,c\n", encoding="utf-8")
    text = GOOD.replace('privacy_unit = "id"', unit).replace('by = ["ward"]', 'by = ["Ward"]')
    text = text.replace("max_rows_per_group", "max_row_per_group")
    text = text.replace("[domains]", '[domains]\nwrad = ["x"]')
    found = mistakes(folder, text.replace("'North'", "'North' and dat > 3"))
    values = [each.value for each in found if each.field != "privacy_unit"]
    assert {"max_row_per_group", "wrad", "Ward", "dat"} <= set(values)
    about = [each for each in found if "privacy_unit" in str(each)]
    assert len([each for each in about if "max_row_per" not in str(each)]) <= 1


def test_two_letters_of_a_long_name_may_be_missing():
    assert UnknownName("column", "dep_dly", ["dep_delay", "tail_num"]).nearest == "dep_delay"
    assert UnknownName("column", "dly", ["delay"]).nearest is None


def test_mistakes_of_one_question_and_of_columns_without_a_domain(folder):
    text = GOOD.replace('age = "0..120"\n', "").replace("'North'\"", "'North' and dat > 3\"")
    first, second = mistakes(folder, text)
    assert first.value == "age" and first.paste.startswith("age = ")
    assert second.path == "queries[1].where" and second.value == "dat"


def test_the_file_is_missing_and_domains_are_wrong_too(folder):
    text = GOOD.replace("visits.csv", "visit.csv").replace("0..120", "0..x")
    found = mistakes(folder, text.replace("0.6", "0.4"))
    assert [each.path for each in found] == ["target.posterior", "table.source", "domains.age"]


def test_the_command_says_all_and_writes_nothing(run, folder):
    text = GOOD.replace('by = ["ward"]', 'by = ["Ward"]').replace("posterior = 0.6", "")
    (folder / "visits.toml").write_text(text, encoding="utf-8")
    before = sorted(folder.iterdir())
    for command in (["release", "--dry-run"], ["release", "--yes"], ["inspect"]):
        code, out, err = run(command[0], folder / "visits.toml", *command[1:])
        assert (code, out) == (2, "") and err.count("\n  line ") == 2, err
    assert sorted(folder.iterdir()) == before


def test_a_mistake_is_said_once(folder):
    """What was read again with the keys that were meant was said again."""
    found = mistakes(folder, GOOD.replace('kind = "mean"\ncolumn', 'kind = "keys"\nsort'))
    assert len({str(each) for each in found}) == len(found) == 2


def test_a_schedule_that_begins_on_no_day_is_wrong_at_its_start(folder):
    text = GOOD + '[schedule]\nevery = "month"\nstart = "2026-13"\nuntil = "2027-01"\n'
    assert [each.field for each in mistakes(folder, text)] == ["start"]


@pytest.mark.parametrize("ending", [".xls", ".xlsb", ".ods"])
def test_an_old_spreadsheet_is_refused_with_what_to_do(folder, ending):
    (folder / f"book{ending}").write_bytes(b"PK\x03\x04")
    (one,) = mistakes(folder, GOOD.replace("visits.csv", f"book{ending}"))
    assert one.path == "table.source" and one.hint


def test_lines_of_keys_in_texts_of_every_shape():
    text = (
        'title = "a = 1" # [x]\n[domains]\nward = ["a",\n  "b = ]"]\n"my col" = \'0..3\'\n'
        '[[queries]]\nkind = """count\nx = 3\n"""\n[[queries]]\n  by = "ward"\n'
    )
    assert parse_toml(text, "text")
    assert toml_lines(text) == {
        "title": 1,
        "domains": 2,
        "domains.ward": 3,
        "domains.my col": 5,
        "queries[0]": 6,
        "queries[0].kind": 7,
        "queries[1]": 10,
        "queries[1].by": 11,
    }


def test_keys_without_a_file_are_refused_together_too(folder):
    with pytest.raises(SeveralMistakes) as refused:
        read_scenario({"target": {"posteror": 1, "gama": 2}, "tabel": {}}, folder)
    paths = {(each.path, each.value) for each in refused.value.parts}
    assert {("target", "posteror"), ("target", "gama"), ("", "tabel")} <= paths
    assert refused.value.path == refused.value.parts[0].path


def refuse_twice():
    found = Mistakes()
    for field in ("one", "two"):
        with found.collect(f"at.{field}"):
            raise InvalidInput(f"{field} is wrong", field=field, hint="right it")
    found.raise_all()


def test_several_mistakes_come_back_from_another_process():
    frame = isolation.run_call(isolation.pack_call(refuse_twice, (), "", 0))
    with pytest.raises(SeveralMistakes) as refused:
        isolation.read_answer(frame, lambda: OutOfMemory("memory"))
    first, second = refused.value.parts
    assert (first.field, second.path, second.hint) == ("one", "at.two", "right it")
    assert "two is wrong" in str(refused.value)


@pytest.mark.parametrize(
    "days", ["01.02.2024..31.12.2024", "1/2/24..12/31/24", "2024-01-01..31.12.2024"]
)
def test_a_day_in_another_format_is_told_how_days_are_written(folder, days):
    low, _, high = days.partition("..")
    for written in (f'"{days}"', f'{{ lower = "{low}", upper = "{high}" }}'):
        wrong = GOOD.replace('age = "0..120"', f'age = "0..120"\ndate = {written}')
        (one,) = mistakes(folder, wrong)
        assert "a day such as 2024-01-31" in str(one) and one.path == "domains.date"


def test_a_mean_of_a_text_column_without_a_domain_is_given_a_range_to_paste(folder):
    (one,) = mistakes(folder, GOOD.replace('age = "0..120"\n', ""))
    assert parse_toml(one.paste, "pasted") == {"age": "0..100"}


def test_a_day_that_no_calendar_has_hides_no_other_mistake(folder):
    """31 April was "not a TOML file", and nothing else was said."""
    text = GOOD.replace("posterior = 0.6", "posterior = 60").replace(
        'age = "0..120"', 'age = "0..120"\ndate = { lower = 2024-01-01, upper = 2024-04-31 }'
    )
    found = {each.path: each for each in mistakes(folder, text)}
    assert set(found) == {"target.posterior", "domains.date"}
    assert found["domains.date"].field == "upper" and "line 12" in found["domains.date"].place
    (broken,) = mistakes(folder, text.replace("04-31 }", "04-31 } }"))
    assert broken.path == "" and "not a TOML file" in str(broken)


def test_a_column_without_bins_is_said_beside_every_other_mistake(folder):
    """It was reported once all others had been mended."""
    text = GOOD.replace('age = "0..120"', 'age = "0..120"\ndate = "2024-01-01..2024-12-31"')
    text = text.replace('by = ["ward"]', 'by = ["ward", "date"]')
    for right, wrong in (("", ""), *WRONG.items()):
        changed = text.replace(right, wrong) if right and right in text else text
        said = [each for each in mistakes(folder, changed) if "edges" in str(each)]
        assert len(said) == 1, wrong
    text = text.replace('ward = ["North", "South"]', 'ward = "North"')
    assert any("edges" in str(each) for each in mistakes(folder, text))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_columns_of_the_file_in_hand_are_suggested_at_a_terminal(folder, monkeypatch) -> None:
    """Its first line may be somebody's row: it is shown to whoever runs the command on the file,
    and comes into no log."""
    monkeypatch.setattr("sys.stderr", Terminal())
    (folder / "visits.csv").write_text(ROWS.replace("id,age", "person,age"))
    plain = GOOD.replace(GOOD[GOOD.index("[domains]") : GOOD.index("[[queries]]")], "")
    text = plain.replace('privacy_unit = "id"', 'privacy_unit = "persn"')
    (found, *_) = mistakes(folder, text)
    assert (found.field, found.nearest) == ("privacy_unit", "person")
    assert found.paste == 'privacy_unit = "person"' and "did you mean" in str(found)
    wrong = plain.replace('"id"', '"person"').replace("ward = 'North'", "wrd = 'North'")
    assert any("did you mean 'ward'?" in str(each) for each in mistakes(folder, wrong))
    (folder / "s.toml").write_text(plain.replace('"id"', '"person"'))
    with pytest.raises(InvalidInput) as refused:
        load_scenario(folder / "s.toml").asking("SELECT COUNT(*) FROM visits WHERE agee > 3")
    assert refused.value.nearest == "age"
    data = parse_toml(text, "visits")
    for ask in (
        lambda: read_scenario(data, folder).open_table(),  # as a server reads a request
        lambda: Table(folder / "visits.csv", "persn"),
        lambda: Table(folder / "visits.csv", "person").column("agee"),
    ):
        with pytest.raises(InvalidInput) as refused:
            ask()
        assert refused.value.nearest is None and "did you mean" not in str(refused.value)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert mistakes(folder, text)[0].nearest is None
