"""`JsonLines` opens a file."""

from __future__ import annotations

from whosin.release.engines import JsonLines


def test_a_file_of_lines(tmp_path):
    (tmp_path / "people.jsonl").write_text('{"who": "a", "x": 1}\n{"who": "b", "x": 2}\n')
    with JsonLines() as engine:
        assert engine.open(tmp_path / "people.jsonl").columns == ("who", "x")
