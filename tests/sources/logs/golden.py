"""The rows of tests/golden/logs.yaml, and models of the accuracy data by the name of their config."""

import json
from functools import cache
from pathlib import Path

import yaml

from fitcheck.catalogue.models import Architecture, Model, Parameters
from fitcheck.catalogue.provenance import CountFigure, DayFigure, Source
from tests.conftest import AS_OF, ROOT

ROWS = yaml.safe_load((ROOT / "tests" / "golden" / "logs.yaml").read_text(encoding="utf-8"))


@cache
def architectures():
    lines = (ROOT / "tests" / "data" / "accuracy" / "architectures.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["config"]: row["architecture"] for row in map(json.loads, lines)}


def model(config):
    """A record of a published config without builds."""
    return Model(
        kind="model",
        id=config.lower().replace("__", "-").replace("_", "-"),
        name=config,
        developer="as published",
        license="as published",
        released=DayFigure(value=AS_OF.isoformat(), source=("config",)),
        parameters=Parameters(total=CountFigure(value=0, source=("config",))),
        architecture=Architecture.model_validate(architectures()[config]),
        sources={"config": Source(url="file:config.json", read=AS_OF)},
    )


def write(folder: Path, row):
    file = folder / f"{row['id']}.log"
    file.write_text(row["lines"], encoding="utf-8")
    return file
