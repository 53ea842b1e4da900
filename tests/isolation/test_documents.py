"""Files that people hand over are read once, bounded, and refused in one sentence."""

from __future__ import annotations

import json
import time

import pytest

from refusals import refused
from whosin.documents import (
    MAX_NESTING_DEPTH,
    MAX_SPELLED_ENTRIES,
    Spelled,
    parse_json,
    parse_toml,
    read_json,
    read_text,
    read_toml,
    read_words,
)
from whosin.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "JSON"),
        ("{", "line 1"),
        ("[" * 100_000, "deep"),
        ("[" * 100 + "]" * 100, "deep"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "deep"),
        ('{"a": 1, "a": 2}', "more than once"),
        ('{"a": NaN}', "not a number"),
        ("[-Infinity]", "not a number"),
        ("9" * 5000, "digits"),
        ("[0." + "3" * 1001 + "]", "digits"),
        ('{"a": [1, -' + "9" * 301 + "]}", "300 digits"),
        ("{}," * ((1 << 20) + 1), "entries"),
    ],
    ids=range(12),
)
def test_a_json_text_is_refused_in_one_sentence(text: str, words: str):
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_json(text, "channel file")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".".join("a" * 20_000) + " = 1", "deep"),
        ("[" + ".".join("a" * 20_000) + "]", "deep"),
        ("x = {" + ".".join("a" * 200) + " = 1}", "deep"),
        ("x = " + "[" * 5000, "deep"),
        ("x = " + "9" * 5000, "digits"),
        ("x = [1, {y = " + "9" * 301 + "}]", "300 digits"),
        ("[a.b]\nx = 0x" + "f" * 260, "300 digits"),
        ("x = 9999-99-99 1", "TOML"),
        ("x =", "TOML"),
        ("x = '''", "TOML"),
        ("x" * 2_000_000, "longer"),
        ("x = 1\nx = 2", "TOML"),
    ],
    ids=range(12),
)
def test_a_toml_text_is_refused_in_one_sentence(text: str, words: str):
    begun = time.process_time()
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_toml(text, "scenario")
    assert "\n" not in str(caught.value)
    assert time.process_time() - begun < 20


def test_dots_and_brackets_in_strings_and_comments_do_not_count():
    many = "." * 100 + "[" * 100
    lines = [
        f"# {many}",
        f'a = "{many}"',
        f"b = '{many}'",
        f'c = """{many}\n\\" ""{many}"""',
        f"d = '''{many}\n'{many}'''",
        "e = [1.5, [2.5, [3.5]]]",
        "f.g.h = 1",
    ]
    found = parse_toml("\n".join(lines), "scenario")
    assert found["a"] == found["b"] == many
    assert found["f"]["g"]["h"] == 1


def test_strings_without_an_end_take_no_time():
    begun = time.process_time()
    for text in ('x = """' + '\\"""' * 50_000, "x = '" * 50_000, '""" ' * 50_001):
        with pytest.raises(InvalidInput):
            parse_toml(text, "scenario")
    assert time.process_time() - begun < 6


def test_many_keys_take_no_time():
    text = json.dumps({str(number): number for number in range(60_000)})
    begun = time.process_time()
    assert len(parse_json(text, "file")) == 60_000
    assert time.process_time() - begun < 6


def test_numbers_and_depth_up_to_the_limit_are_read():
    digits = "9" * 300
    assert parse_json(f"[{digits}]", "file") == [int(digits)]
    assert parse_toml(f"x = {digits}", "scenario") == {"x": int(digits)}
    text = "[" * MAX_NESTING_DEPTH + "]" * MAX_NESTING_DEPTH
    assert json.dumps(parse_json(text, "file")) == text
    with pytest.raises(InvalidInput):
        parse_json(f"[{text}]", "file")


def test_decimals_keep_their_spelling_where_asked():
    found = parse_json('[0.1, 1, "0.1", 1e-3]', "file", spelled=True)
    assert [type(each) for each in found] == [Spelled, int, str, Spelled]
    assert [str(each) for each in found] == ["0.1", "1", "0.1", "1e-3"]
    many = parse_json(json.dumps([0.5] * (MAX_SPELLED_ENTRIES + 2)), "file", spelled=True)
    assert type(many[0]) is float


def test_files(tmp_path):
    file = tmp_path / "a"
    file.write_bytes("\ufeff{}".encode())
    assert read_json(file, "file") == {}
    file.write_bytes(b"\xff\xfe")
    for reader in (read_json, read_toml, read_text):
        with refused("file"):
            reader(file, "file")
    file.write_bytes(b"x" * 11)
    with refused("file"):
        read_text(file, "file", 10)
    file.write_bytes(b"\n \n")
    with refused("a"):
        read_words(file)
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path, "file")


@pytest.mark.parametrize("text", [r'["\ud800"]', r'{"\uDBFF": 1}', r'{"a": {"b": ["x\udc00"]}}'])
def test_half_a_letter_is_refused(text):
    """JSON can escape it, and no file or answer can hold it."""
    with refused("file"):
        parse_json(text, "file")
    assert parse_json(r'["\ud83d\ude00"]', "file") == ["\U0001f600"]
