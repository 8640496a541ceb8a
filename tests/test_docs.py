"""What the README and the help say is true: its commands run, its options exist, every command is named."""

import re
import shlex

import pytest

from fitcheck.cli.main import COMMANDS
from tests.cli.run import fitcheck
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCED = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
EXAMPLES = [line.partition("#")[0].strip() for block in FENCED for line in block.splitlines() if line.startswith("fitcheck ")]
DOCUMENTED_CODES = {0, 10}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_command_of_the_readme_answers(example):
    words = shlex.split(example)[1:]
    ran = fitcheck(*words)
    assert ran.code in DOCUMENTED_CODES, ran.err
    assert ran.out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_and_stands_in_the_readme(command):
    ran = fitcheck(command, "--help")
    assert ran.code == 0
    assert f"fitcheck {command}" in README
    for example in re.findall(r"^ +(fitcheck .*)$", ran.out, re.MULTILINE):
        assert example.split()[1] in COMMANDS


def test_every_option_of_fit_is_documented():
    shown = set(re.findall(r"(--[a-z\-]+)", fitcheck("fit", "--help", columns=200).out)) - {"--help"}
    documented = set(re.findall(r"`(--[a-z\-]+)", README))
    assert shown <= documented


def test_the_examples_of_the_help_answer():
    from fitcheck.cli.fit import EXAMPLES as FIT_EXAMPLES

    for line in re.findall(r"^ +(fitcheck .*)$", FIT_EXAMPLES, re.MULTILINE):
        assert fitcheck(*shlex.split(line)[1:]).code in DOCUMENTED_CODES, line


def test_counts_in_the_changelog_are_those_of_the_catalogue(catalogue):
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    models, checkpoints = len(catalogue.models), sum(len(model.checkpoints) for model in catalogue.models)
    assert f"{models} models with {checkpoints} checkpoints" in text
    assert f"{len(catalogue.devices)} devices and {len(catalogue.ids('cluster'))} clusters" in text
    assert f"{len(catalogue.recipes)} recipes, {len(catalogue.rates)} rates" in text
