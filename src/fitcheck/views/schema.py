"""The JSON Schema of answers, made from the report records."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from fitcheck.advise.report import RecommendReport
from fitcheck.cost.report import CostReport, PriceReport
from fitcheck.fit.calibration import CalibrationReport
from fitcheck.fit.report import FitReport
from fitcheck.views.detect import DetectReport
from fitcheck.views.envelope import Envelope
from fitcheck.views.inspect import InspectReport

RESULTS: dict[str, type[Any]] = {
    "fit": FitReport,
    "cost": CostReport,
    "rates price": PriceReport,
    "recommend": RecommendReport,
    "detect": DetectReport,
    "inspect": InspectReport,
    "calibrate": CalibrationReport,
}
"""The record that each command's `result` is."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schemas() -> dict[str, str]:
    """Schema text by command, keys sorted."""
    return {name.replace(" ", "-"): json.dumps(_schema(name, result), indent=2, sort_keys=True) + "\n" for name, result in RESULTS.items()}


def _schema(command: str, result: type[Any]) -> dict[str, Any]:
    envelope = _described(Envelope)
    body = _described(result)
    definitions = {**envelope.pop("$defs", {}), **body.pop("$defs", {})}
    envelope["properties"]["result"] = body
    envelope["properties"]["command"] = {"const": command}
    envelope["required"] = [field.name for field in fields(Envelope)]
    return {"$schema": _DRAFT, "title": f"fitcheck {command}", "$defs": definitions, **{k: v for k, v in envelope.items() if k != "title"}}


def _described(record: type[Any]) -> dict[str, Any]:
    """A record's schema as it is serialised: decimals are strings, every field is there, and no others are."""
    schema: dict[str, Any] = TypeAdapter(record).json_schema(mode="serialization")
    for part in [schema, *schema.get("$defs", {}).values()]:
        if part.get("type") == "object" and "properties" in part:
            part["required"] = sorted(part["properties"])
            part["additionalProperties"] = False
    return schema
