"""Reports in a browser: they run no script but ours, load nothing, and names stay names."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import altair

from whosin.app.example_data import write_hospital
from whosin.report.charts import save_chart
from whosin.report.document import Document, make_document
from whosin.report.html import escape_data, render_chart, render_page

TAKE = "document.title='taken'"
EVIL = f'</script><script>{TAKE}</script><img src=x onerror="{TAKE}">'
POLICY = re.compile(r'<head>\s*<meta http-equiv="Content-Security-Policy" content="([^"]+)">')


def chart() -> altair.Chart:
    rows = [{"snp": EVIL, "p": 1}, {"snp": "<!--<script>", "p": 2}]
    mark = altair.Chart(altair.Data(values=rows), title=EVIL).mark_bar()
    return mark.encode(x="snp:N", y="p:Q", tooltip="snp:N", opacity=altair.value(0.5))


def test_every_report_states_a_policy(tmp_path, run):
    """The scripts of a page are those that its policy names, and no more."""
    folder = tmp_path / "data"
    scenario = write_hospital(folder, 50)
    assert run("release", scenario, "--yes", "--report", folder / "report.html")[0] == 0
    (folder / "page.html").write_text(render_page(make_document(EVIL, EVIL)), encoding="utf-8")
    save_chart(chart(), folder / "chart.html")
    files = sorted(folder.glob("*.html"))
    assert len(files) == 3
    for file in files:
        text = file.read_text(encoding="utf-8")
        policy = POLICY.search(text)
        assert policy is not None, file.name
        assert "default-src 'none'" in policy[1] and "unsafe-eval" not in policy[1]
        assert "http" not in policy[1] and "script-src 'unsafe" not in policy[1]
        plain = text.replace("\\u003c", "")
        opened = re.findall(r"<script([^>]*)>", plain)
        assert set(opened) <= {" type=module", ' type="application/json" id="chart-data"'}
        for script in re.findall(r"<script type=module>(.*?)</script>", text, flags=re.DOTALL):
            digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[1]


def test_nothing_ends_a_block_of_data():
    names = [EVIL, "<!--", "]]>", "\u2028", "&lt;"]
    assert "<" not in escape_data(names) and "&" not in escape_data(names)
    assert escape_data(names) in render_chart(names, "names")


def test_a_chart_is_drawn_offline_and_names_stay_names(browser, tmp_path) -> None:
    save_chart(chart(), tmp_path / "chart.html")
    said: list[str] = []
    seen = browser.new_context().new_page()
    seen.on("console", lambda message: said.append(message.text))
    seen.on("request", lambda request: said.append(request.url))
    seen.goto((tmp_path / "chart.html").as_uri())
    seen.wait_for_selector("#chart svg")
    assert seen.title() == "chart"
    assert EVIL[:20] in seen.locator("#chart svg").text_content()
    asked = [line for line in said if not line.startswith(("file:", "data:"))]
    assert asked == []
    seen.context.close()


def test_the_policy_stops_what_it_should(browser, tmp_path):
    """Were a name to get through as an element, it would not run."""
    file = tmp_path / "page.html"
    file.write_text(
        render_page(Document("safe", ())).replace("</body>", f"{EVIL}</body>"), encoding="utf-8"
    )
    seen = browser.new_context().new_page()
    seen.goto(Path(file).as_uri())
    seen.wait_for_timeout(200)
    assert seen.title() == "safe"
    seen.context.close()
