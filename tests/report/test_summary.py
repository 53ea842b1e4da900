"""The two pages that can be signed: their numbers against closed forms, and what they name."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest

import whosin as wi
from whosin.curves.epsilon_meaning import explain_epsilon
from whosin.errors import UnknownName
from whosin.exact import exact_fraction
from whosin.ledger import Cost
from whosin.report import summary
from whosin.report.document import Paragraph, TextTable, plain_words
from whosin.report.explanation import audience_lines
from whosin.report.releases import describe_report
from whosin.report.table_views import answer_table
from whosin.scenario_model import SIGNED_KEYS, AboutSection

BAND = wi.families.Independent("0.05", "0.5")
PLAN = wi.calibrate(wi.Posterior("0.6"), BAND)
TODAY = "2031-05-06"


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("summary")
    rows = "".join(f"p{n},{'xy'[n % 2]},{n % 90}\n" for n in range(400))
    (folder / "t.csv").write_text(f"who,kind,age\n{rows}", encoding="utf-8")
    (folder / "t.toml").write_text(
        """
        [about]
        controller = "The Board <b>"
        decided_by = "Its chair"
        reasons = "Nobody knows more."
        [adversary]
        prior = "0.05..0.5"
        [target]
        posterior = 0.6
        [table]
        source = "t.csv"
        privacy_unit = "who"
        [domains]
        kind = { values = ["x", "y"], from_rows = true }
        age = { lower = 0, upper = 100 }
        [[queries]]
        kind = "count"
        by = ["kind"]
        [[queries]]
        kind = "mean"
        column = "age"
        """,
        encoding="utf-8",
    )
    from whosin.release.scenario import load_scenario

    scenario = load_scenario(folder / "t.toml")
    with scenario.open_session(folder / "ledger.db") as session:
        return scenario, scenario.release(session)


def words_of(document) -> str:
    said = []
    for section in document.sections:
        said.append(section.heading)
        for part in section.parts:
            if isinstance(part, Paragraph):
                said.append(plain_words(part.text))
            elif isinstance(part, TextTable):
                said += [plain_words(cell) for row in part.rows for cell in row]
    return "\n".join(said)


def test_the_numbers_are_those_of_the_ratios():
    """From 50%: e^ε/(1 + e^ε) = 60%, and with a known size e^(2ε)/(1 + e^(2ε)) = 9/13."""
    half = Fraction(1, 2)
    assert summary.bound_presence(PLAN).posterior(half) == pytest.approx(0.6, abs=1e-9)
    known = summary.bound_replacement(PLAN)
    assert known.posterior(half) == pytest.approx(9 / 13, abs=1e-9)
    assert known.failure == 0 and known.ratio >= math.exp(2 * PLAN.epsilon)
    risks = {each.name: each for each in summary.assess_risks(PLAN)}
    # Left out, not replaced: one step of ε (F36). After the worst answer two: 9/13.
    assert risks["singling out"].most == pytest.approx(1.5e-4, rel=1e-9)
    assert [risks[name].luck for name in risks] == [1e-4, 0.01, 0.5]
    assert risks["inference"].most == known.posterior(half)
    assert risks["linkability"].most == pytest.approx(0.015, rel=1e-6)
    assert all(each.assumption for each in risks.values())


@pytest.mark.parametrize(
    "plan",
    [
        wi.calibrate(wi.Posterior("0.6"), BAND, delta=1e-6),
        wi.calibrate(wi.Epsilon("1"), delta=1e-6),
        wi.calibrate(wi.Posterior("0.6"), wi.families.FixedSize("0.1", "0.5")),
        PLAN,
    ],
)
def test_replacements_are_bounded_by_group_privacy(plan):
    """(ε, δ) for additions is (2ε, (1 + e^ε)δ) for replacements; a ratio g fails with at most
    δ'/(1 − e^ε'/g), which the claimed failure has to cover."""
    bound = summary.bound_replacement(plan)
    epsilon, delta = plan.epsilon, plan.dp_delta
    if plan.relation == "add-remove":
        epsilon, delta = 2 * epsilon, (1 + math.exp(epsilon)) * delta
    ratio = float(exact_fraction(bound.ratio))
    assert ratio >= math.exp(epsilon) * (1 - 1e-12)
    if delta:
        assert float(bound.failure) >= delta / (1 - math.exp(epsilon) / ratio) * (1 - 1e-9)


def test_a_promise_that_rests_on_doubt_bounds_no_replacement():
    doubt = wi.families.AtMostKnown(3, "0.1", "0.9")
    plan = wi.calibrate(wi.Posterior("0.95"), doubt, delta=1e-3, query="count", entities=40)
    assert summary.bound_replacement(plan).ratio == math.inf
    risks = {each.name: each.most for each in summary.assess_risks(plan)}
    assert risks["inference"] is None and risks["singling out"] is None


def test_the_report_has_two_pages_and_then_the_rest(released):
    scenario, release = released
    pages = describe_report("T", scenario.plan, release, scenario, "officer")
    whole = describe_report("T", scenario.plan, release, scenario)
    assert pages.sections == whole.sections[: len(pages.sections)]
    assert [each.new_page for each in pages.sections].count(True) == 1
    assert whole.sections[len(pages.sections)].new_page
    said = words_of(pages)
    for named in ("The Board <b>", "Its chair", "Nobody knows more.", "69.3%", release.when[:10]):
        assert named in said
    assert release.budget_state.head in said and "kind" in said.partition("looking")[0]
    assert "not said" in said  # the period
    with pytest.raises(UnknownName):
        describe_report("T", scenario.plan, release, scenario, "nobody")


def test_a_report_without_a_scenario_says_what_nobody_said(released):
    scenario, release = released
    said = words_of(describe_report("T", scenario.plan, release, reader="officer"))
    assert "The Board <b>" in said and "chosen by looking" in said  # from the ledger
    unsaid = replace(release, about={})
    assert words_of(describe_report("T", scenario.plan, unsaid)).count("not said") >= 3


def test_a_dataset_that_answered_more_says_so(tmp_path, released):
    """A ledger with a larger budget lets a second release through: page 1 must not hide that."""
    scenario, _ = released
    larger = wi.calibrate(wi.Epsilon("3"))
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        ledger.register("t", larger)
        for name in ("first", "second", "third"):
            with scenario.open_session(ledger, name) as session:
                release = scenario.release(session)
    said = words_of(describe_report("T", scenario.plan, release, scenario, "officer"))
    assert "this release alone" in said
    reached = release.budget_state.posterior("0.5")
    assert reached > 0.7 and f"{math.ceil(reached * 1000) / 10}%" in said


def test_numbers_have_the_digits_that_the_noise_leaves(released):
    _, release = released
    (value, interval) = answer_table(release[1]).rows[0]
    low, high = interval.split(" to ")
    width = float(high.replace(",", "")) - float(low.replace(",", ""))
    decimals = len(plain_words(value).partition(".")[2])
    assert decimals <= max(0, 1 - math.floor(math.log10(width / 2)))
    counts = answer_table(release[0])
    assert all("." not in plain_words(row[1]) for row in counts.rows)


def test_a_question_without_a_name_says_what_it_is_about():
    named = {"query": "mean", "column": "wage", "by": ["sex", "ward"]}
    assert summary.name_question("mean", named) == "mean of wage by sex, ward"
    assert summary.name_question("wages", named) == "wages"
    assert summary.name_question("marginals", {"query": "marginals", "columns": ["sex"]}) == (
        "tables by sex"
    )
    assert summary.name_question("count", {"query": "count", "by": []}) == "number of people"
    totals = {"query": "running", "column": "month(visit)", "by": "sex"}
    assert summary.name_question("running", totals) == (
        "running number of people by month(visit), sex"
    )


def test_the_officer_reads_why_inference_is_another_number_than_the_promise(released):
    """9/13 from 50% against 60%: another secret, and two steps of ε; each with its assumption."""
    scenario, release = released
    said = words_of(describe_report("T", scenario.plan, release, scenario, "officer"))
    (why,) = [line for line in said.splitlines() if line.startswith("Why inference")]
    assert "69.3%" in why and "60.0%" in why and "2ε" in why and "at most 50.0% sure" in why
    known = wi.calibrate(wi.Posterior("0.6"), wi.families.FixedSize("0.1", "0.5"))
    assert summary.explain_inference(known) == ""  # 60% from 50%, both
    low = wi.calibrate(wi.Posterior("0.2"), wi.families.FixedSize("0.01", "0.1"))
    assert "2ε" not in (why := summary.explain_inference(low)) and "at most 10.0% sure" in why


def test_what_is_signed_names_the_digest_of_its_answers(released, tmp_path):
    """The same when the answers are opened again; another one when a number is another."""
    from dataclasses import replace

    from whosin.release.answer import read_releases

    scenario, _ = released
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        with scenario.open_session(ledger) as session:
            release = scenario.release(session)
        (opened,) = read_releases(ledger, "t")
    assert opened.digest == release.digest
    said = words_of(describe_report("T", scenario.plan, release, scenario, "officer"))
    assert said.count(release.digest) == 2 and len(release.digest) == 64  # on both pages
    assert release.budget_state.head in said and release.to_dict()["digest"] == release.digest
    first = release[0]
    changed = replace(first, rows=((*first.rows[0][:-3], 1, 0, 2), *first.rows[1:]))
    assert replace(release, answers=(changed, *release.answers[1:])).digest != release.digest


def test_one_epsilon_is_written_in_one_way(released, capsys):
    """ln 1.5 = 0.4054651… was 0.4054, 0.4055 and 0.405465 in one report."""
    from whosin.ledger.registry import group_by_people
    from whosin.report.accounts import people_lines
    from whosin.report.card import cost_words, describe_budget_states
    from whosin.report.document import format_epsilon
    from whosin.report.releases import describe_costs, describe_estimates

    scenario, release = released
    plan, estimates = scenario.plan, scenario.estimate_cost()
    documents = [
        describe_report("T", plan, release, scenario),
        describe_estimates("T", plan, estimates, release.budget_state),
        describe_budget_states([(release.budget_state, [])]),
    ]
    new = replace(release.budget_state, dataset="february", spent=Cost(0, 0), debits=0)
    (people,) = group_by_people([release.budget_state, new])
    more = people_lines(people)[0]  # a report of the next month said 0.405466
    text = "\n".join([*map(words_of, documents), describe_costs(plan, estimates), more])
    whole = {each for each in re.findall(r"[0-9]\.[0-9]+", text) if each.startswith("0.40")}
    assert whole == {"0.405465"}
    assert format_epsilon(0.1999999) == "0.199999"
    for units in (299999999999, 300000000001):  # the ledger's last unit
        assert format_epsilon(Fraction(units, 10**12)) == "0.3"
    assert cost_words(Cost.pure(exact_fraction(plan.epsilon))) == "ε = 0.405465"


def test_it_says_what_someone_is_sure_of(released):
    scenario, release = released
    said = words_of(describe_report("T", scenario.plan, release, scenario))
    assert "50.0% sure that a person is in the data" in said and "sure of that person" not in said


def test_a_public_number_of_people_is_held_against_the_promise():
    """T12: ε for additions is 2ε for someone who knows the size, 9/13 from 50% and not 60%."""
    said = summary.explain_public_size(PLAN, 2400)
    assert "2,400" in said and "from 50.0% to 69.3%" in said
    assert summary.explain_public_size(PLAN, None) == ""
    known = wi.calibrate(wi.Posterior("0.6"), wi.families.FixedSize("0.1", "0.5"))
    assert summary.explain_public_size(known, 2400) == ""  # that is the promise itself
    doubt = wi.families.AtMostKnown(3, "0.1", "0.9")
    plan = wi.calibrate(wi.Posterior("0.95"), doubt, delta=1e-3, query="count", entities=40)
    assert "promised nothing" in summary.explain_public_size(plan, 40)


def test_what_was_recorded_with_a_release_stays(released, clock):
    """Whoever changes the scenario afterwards rewrites nothing: the ledger's words come first, and
    what is said later is marked as such."""
    clock(TODAY)
    scenario, release = released
    about = scenario.about.written | {"decided_by": "An <ethics> board", "period": "2024"}
    about.pop("controller")
    later = replace(scenario, about=AboutSection.read(about, "about"), title="Another title")
    text = words_of(describe_report("T", PLAN, release, later, "officer"))
    said = f"Its chair (recorded with the release; the scenario of {TODAY} says: An <ethics> board)"
    assert f"chosen by {said}." in text and text.count(said) == 2  # where it is to be signed, too
    assert "The Board <b>" in text and f"2024 (said on {TODAY}, after the release)" in text
    assert f"t (recorded with the release; the scenario of {TODAY} says: Another title)" in text
    assert "Nobody knows more." in text and "Nobody knows more. (" not in text
    same = words_of(describe_report("T", PLAN, release, scenario, "officer"))
    assert "recorded with the release; the" not in same and "said on" not in same
    alone = words_of(describe_report("T", PLAN, release, None, "officer"))
    assert "chosen by Its chair." in alone and "not said with the release" in alone


def test_an_officer_reads_no_riddles(released):
    """No δ where there is none; an average is called one; families say what they leave out."""
    _, release = released
    facts = summary.parameter_facts(PLAN, release.budget_state, ["x"], (), {})
    assert "zCDP" not in facts["composition"]
    relaxed = wi.calibrate(wi.Posterior("0.6"), BAND, delta=1e-6)
    assert "zCDP" in summary.parameter_facts(relaxed, None, ["x"], (), {})["composition"]
    assert "same who" in facts["privacy unit"] and "others" not in facts["contribution bounds"]
    assert "by the curator" in facts["declared values"]  # who else says that they are public?
    risks = {each.name: each.answer for each in summary.assess_risks(PLAN)}
    assert "69.3% sure" in risks["inference"] and "On average" in risks["inference"]
    assert "any given participant" in risks["singling out"] and "by luck" in risks["singling out"]
    assert "any probability" not in BAND.summary and "0.05 to 0.5 unless known" in BAND.summary
    assert wi.families.Independent().summary.endswith("each with any probability)")
    for prior, said in ((None, True), ((Fraction(1, 10), Fraction(1, 2)), False)):
        meaning = explain_epsilon(1, 0, "add-remove", prior)
        assert ("is an example" in " ".join(audience_lines(meaning, "officer"))) is said


def test_the_officer_reads_which_noise_is_whose_and_what_was_declared(released, tmp_path):
    """Noises stood in a row without a name, and "declared as public" without what."""
    from whosin.report.evidence import evidence_data

    scenario, release = released
    said = words_of(describe_report("T", scenario.plan, release, None, "officer"))
    about = AboutSection.read(dict.fromkeys(SIGNED_KEYS, "said"), "about")
    planned = replace(scenario, about=about, ledger=str(tmp_path / "no.db"))
    pack = evidence_data(planned, planned.estimate_cost(), None, TODAY, "1")
    for text in (said, pack["parameters"]["mechanisms"] + pack["parameters"]["declared values"]):
        for title, noise in (("number of people by kind", release[0]), ("mean of age", release[1])):
            assert f"{title}: {noise.noise}" in text
        assert "kind: x, y; age: 0..100" in text
    twice = summary.match_noises([("a", "Laplace"), ("b", "Laplace"), ("a, b", "none")])
    assert twice == ["a and b: Laplace", "a, b: none"]


def test_relatives_have_the_number_that_an_explanation_of_the_same_epsilon_has(released):
    """Three people who come and go together: e^(3ε) = 1.5³ = 27/8, from 50% to 27/35."""
    scenario, release = released
    shown = f"{math.ceil(1000 * 27 / 35) / 10}%"
    pages = words_of(describe_report("T", PLAN, release, scenario, "officer"))
    (line,) = [each for each in pages.splitlines() if each.startswith("Relatives")]
    assert f"from 50.0% to at most {shown}" in line
    meaning = explain_epsilon(Fraction(PLAN.epsilon), band=(Fraction(1, 20), Fraction(1, 2)))
    said = " ".join(audience_lines(meaning, "officer"))
    assert shown in said and "whosin cite T4" in said
    low = [(r.ratio / (r.ratio + 19)) for r in meaning.readings if r.ratio < math.inf]
    assert all(f"from 5.0% at most {math.ceil(1000 * each) / 10}%" in said for each in low)
    one = explain_epsilon(Fraction(1), band=(Fraction(1, 2), Fraction(1, 2)))
    assert "from 50.0% at most" not in " ".join(audience_lines(one, "officer"))
    for plan in (
        wi.calibrate(wi.Posterior("0.6"), BAND, delta=1e-6),
        wi.calibrate(wi.Posterior("0.6"), wi.families.FixedSize("0.1", "0.5")),
    ):
        assert "%" not in next(iter([*summary.limits_lines(plan, None, None, ())][1:2]))


def test_a_report_says_as_of_when_and_what_a_correction_replaces(released, clock):
    """A printed one goes stale; "from when" read as the day of publication."""
    clock(TODAY)
    scenario, release = released
    said = {"period": "March to May 2020", "replaces": "request 6a23"}
    about = AboutSection.read(scenario.about.written | said, "about")
    document = describe_report("T", PLAN, release, replace(scenario, about=about), "officer")
    rows = [
        tuple(map(plain_words, row[:2]))
        for section in document.sections
        for part in section.parts
        if isinstance(part, TextTable)
        for row in part.rows
    ]
    (period,) = [words for name, words in rows if name == "period of the data"]
    assert period.startswith("March to May 2020")
    (when,) = [words for name, words in rows if name == "when"]
    assert when.endswith(f"this report is as of {TODAY}") and release.when[:10] in when
    replaced = [words for name, words in rows if name == "replaces"]
    assert len(replaced) == 2 and all(each.startswith("request 6a23") for each in replaced)


def test_flags_and_counts_are_said_in_words(tmp_path, released):
    """It said "interval True", and "count by kind" without saying of what."""
    from whosin.report.card import entry_row

    kinds = [wi.release.Count(by=["kind"]), wi.release.Count(), wi.release.Count(where="age > 60")]
    middle = wi.release.Median(column="age", interval=True)
    scenario = replace(released[0], queries=(*kinds, middle))
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        with scenario.open_session(ledger) as session:
            release = scenario.release(session)
        entries = [entry_row(each, "add-remove") for each in ledger.history("t")]
    said = " ".join([words_of(describe_report("T", PLAN, release)), *map(str, entries)])
    asides = [each.aside for each in describe_report("T", PLAN, release).sections]
    assert "True" not in said and not any("True" in plain_words(each) for each in asides)
    assert any("with an interval" in plain_words(each) for each in asides)
    assert "median of age with an interval" in said
    first = words_of(describe_report("T", PLAN, release, None, "officer"))
    assert "number of people by kind; number of people; number of people where age > 60" in first
    named = {"query": "count", "name": "count by kind", "by": ["kind"]}
    assert summary.name_question("count by kind", named) == "count by kind"
