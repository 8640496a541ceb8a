"""The committed schemas are those of the records, and real answers keep them."""

import json

import jsonschema
import pytest

from fitcheck.views.schema import schemas
from tests.cli.run import fitcheck
from tests.conftest import ROOT

ANSWERS = {
    "fit": [
        ("glm-5.3-flash", "--cluster", "2xspark"),
        ("deepseek-v4.1-flash", "--cluster", "3xspark", "--users", "4", "--why"),
        ("gpt-oss-120b", "--cluster", "rtx-4090"),
        ("glm-5.3-flash", "--cluster", "2xspark", "--checkpoint", "nvfp4-spark"),
    ],
    "cost": [
        ("--tokens", "50M", "--offpeak"),
        ("glm-5.3-flash", "--tokens", "2B", "--cluster", "4xspark", "--schedule", "Mon-Fri 09:00-17:00"),
    ],
    "recommend": [
        ("--cluster", "2xspark"),
        ("--cluster", "rtx-4090", "--context", "256k", "--users", "4", "--engine", "llama.cpp"),
    ],
    "detect": [()],
    "inspect": [(str(ROOT / "tests" / "data" / "configs" / "glm-5.3-flash.json"),)],
    "rates price": [
        ("deepseek/deepseek-flash", "--at", "2026-11-30T03:59Z", "--input", "1000000", "--output", "1000000"),
        ("zhipuai/glm-5.3-flash", "--at", "2026-11-30T03:59Z", "--input", "1000", "--output", "10", "--cached", "500"),
    ],
}


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_committed_schema_is_current(name):
    assert (ROOT / "docs" / "schema" / f"{name}.json").read_text(encoding="utf-8") == schemas()[name], "run python scripts/write_schema.py"


@pytest.mark.parametrize(("command", "arguments"), [(command, arguments) for command, asked in ANSWERS.items() for arguments in asked])
def test_answers_keep_their_schema(command, arguments):
    schema = json.loads(schemas()[command.replace(" ", "-")])
    jsonschema.Draft202012Validator.check_schema(schema)
    as_of = () if command == "rates price" else ("--as-of", "2026-11-30")
    answer = json.loads(fitcheck(*command.split(), *arguments, "--format", "json", *as_of).out)
    jsonschema.Draft202012Validator(schema).validate(answer)


def test_a_wrong_answer_is_refused():
    schema = json.loads(schemas()["fit"])
    answer = json.loads(fitcheck("fit", "glm-5.3-flash", "--cluster", "2xspark", "--format", "json").out)
    answer["result"]["headroom_bytes"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(answer)
