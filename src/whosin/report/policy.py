"""What a report may do in a browser: show itself, and nothing else.

Contract: every HTML file of ours carries a Content-Security-Policy that allows no outside address
and no script but those that we put in, by their hashes; names that come from files go in as text,
or as a block of data in which nothing can end the block.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from typing import Any

DRAW = """
const spec = JSON.parse(document.getElementById("chart-data").textContent);
vegaEmbed("#chart", spec, {mode: "vega-lite", actions: false, ast: true, renderer: "svg"});
"""
"""`ast`: expressions are interpreted, so that no text is ever run as a program."""


def policy(*scripts: str) -> str:
    """The element that states the policy; it comes first in a page's head."""
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    ]
    rules = [
        "default-src 'none'",
        f"script-src {' '.join(hashes)}" if hashes else "script-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(rules)}">'


def data_block(name: str, data: Any) -> str:
    """Data for a script, in an element of its own; no letter of it can end the element."""
    text = json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace("&", "\\u0026")
    return f'<script type="application/json" id="{escape(name)}">{text}</script>'


def chart_page(spec: dict[str, Any], title: str) -> str:
    """A page that draws one chart, offline."""
    script = _drawing_code()
    return (
        "<!doctype html>\n<html lang=en>\n<head>\n"
        f"{policy(script)}\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n<div id=chart></div>\n"
        f"{data_block('chart-data', spec)}\n"
        f"<script type=module>{script}</script>\n</body>\n</html>\n"
    )


@cache
def _drawing_code() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle(DRAW)
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError("the drawing code must not end its own element")
    return script
