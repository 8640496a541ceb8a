"""Overlays that would mislead are refused where they are loaded, with file and line."""

import json

import pytest

from fitcheck.catalogue.load import load_catalogue
from fitcheck.catalogue.overlays import check_overlays
from fitcheck.errors import DataError
from tests.cli.run import inside
from tests.cli.test_fit import BOX

SOUND = BOX.replace("NAME", "My box")
MODEL = """my-model:
  kind: model
  name: My model
  developer: me
  license: MIT
  released: {value: "2026-11-01", source: own}
  parameters:
    total: {value: 8000000000, source: own}
  checkpoints:
    - {id: a, format: bf16, events: [{status: effective, from: "2026-11-01", source: own}]}
    - {id: b, format: fp8, events: [{status: effective, from: "2026-11-01", source: own}]}
  sources:
    own: {url: "https://example.org/model", read: "2026-11-30"}
"""


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (SOUND.replace("96 GiB, source: own", "96 GiB, source: owm"), 7, "owm"),
        (SOUND.replace("my-box:", "My_Box:"), 1, "My_Box"),
        (MODEL.replace("id: b", "id: a"), 11, "'a'"),
        (SOUND.replace("  maker: me\n", "  maker: me\n  aliases: [gx10]\n"), 5, "asus-ascent-gx10"),
        (SOUND.replace("  maker: me\n", "  maker: me\n  variant_of: nowhere\n"), 5, "nowhere"),
    ],
)
def test_an_error_of_the_lint_is_refused_with_its_line(tmp_path, text, line, words):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        check_overlays(load_catalogue(path))
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert words in caught.value.message


@pytest.mark.parametrize("text", [SOUND, MODEL])
def test_a_sound_overlay_is_taken(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    check_overlays(load_catalogue(path))


def test_an_overlay_may_replace_a_record_of_the_catalogue_and_of_another_overlay(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(SOUND, encoding="utf-8")
    second.write_text(SOUND.replace("96 GiB", "97 GiB"), encoding="utf-8")
    check_overlays(load_catalogue(first, second))


def test_the_command_line_refuses_and_counts(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(SOUND, encoding="utf-8")
    assert f"overlay in force: {path} (1 record)" in inside("hardware", "my-box", "--overlay", str(path), columns=300).out
    path.write_text(SOUND.replace("source: own", "source: owm", 1), encoding="utf-8")
    ran = inside("hardware", "my-box", "--overlay", str(path), "--format", "json")
    assert ran.code == 4
    assert f"{path}:7: " in json.loads(ran.err)["error"]["message"]
