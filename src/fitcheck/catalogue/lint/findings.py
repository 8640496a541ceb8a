"""What lint can say: every finding has a stable id, one meaning, one severity and a hint that says what to do.

Ids are never given a new meaning. FC0xx: the text; FC1xx: sources and references; FC2xx: models; FC3xx: prices and schedules;
FC4xx: devices, clusters and engines; FC5xx: recipes. `docs/findings.md` shows each with an example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing found in a catalogue file, at a line counted from 1. `message` and `path` may hold text from the file."""

    id: str
    severity: Severity
    message: str
    path: str
    line: int
    hint: str


class Meaning(NamedTuple):
    """What a finding id stands for."""

    severity: Severity
    meaning: str
    hint: str


_REFERENCE = "write the id of a record exactly, or add the record"
_DEAD = "close one of them with `until`, or withdraw it"
_UNIT = "check which unit the source meant, and if the figure is right say so in its note with the word GiB"

MEANINGS: dict[str, Meaning] = {
    "FC001": Meaning("error", "the text cannot be read as YAML", "mend the YAML at this line"),
    "FC002": Meaning("error", "a key or an id comes twice", "keep one of them"),
    "FC003": Meaning("error", "a field is missing, unknown or of the wrong form", "see the record's class in src/fitcheck/catalogue"),
    "FC004": Meaning("error", "a YAML alias is used", "write the value out"),
    "FC005": Meaning("error", "a record has no kind, or none that exists", "write `kind:` first and plain, as in `kind: model`"),
    "FC006": Meaning("error", "a number is out of any sensible range", "check the digits and the exponent"),
    "FC007": Meaning("error", "text holds control or direction-changing characters", "remove them"),
    "FC008": Meaning("error", "two files hold a record of the same kind and id", "keep one of them"),
    "FC009": Meaning("error", "a field or alias is written in a form that look-ups cannot see", "follow the form in docs/catalogue.md"),
    "FC010": Meaning("warning", "a file holds no records", "remove the file, or write records into it"),
    "FC101": Meaning("error", "a figure names no source, or one that the record does not have", "add the source to the record's `sources`"),
    "FC102": Meaning("warning", "a source is never used", "name it at the figures that rest on it, or remove it"),
    "FC103": Meaning("warning", "two sources of a record have the same address", "keep one, and name it at both figures"),
    "FC104": Meaning("error", "no such model", _REFERENCE),
    "FC105": Meaning("error", "the model has no such checkpoint", "write the checkpoint's id exactly, or leave it out"),
    "FC106": Meaning("error", "no such device", _REFERENCE),
    "FC107": Meaning("error", "no such engine", _REFERENCE),
    "FC108": Meaning("error", "no such schedule", _REFERENCE),
    "FC109": Meaning("error", "no such calendar", _REFERENCE),
    "FC110": Meaning("error", "a successor is no checkpoint of the model", "name checkpoints of the same model by their ids"),
    "FC111": Meaning("error", "two records answer to the same name", "rename one; case, spaces, `_` and `-` do not tell names apart"),
    "FC112": Meaning("error", "an id is no lower-case slug", "use lower-case letters, digits, `.` and `-`"),
    "FC113": Meaning("error", "two checkpoints of a model have the same id", "rename one of them"),
    "FC114": Meaning("warning", "no engine lists the checkpoint's format", "use a format that an engine lists, or add it to an engine"),
    "FC115": Meaning("error", "a date lies after the catalogue's own day", "check the year, or move data/VERSION"),
    "FC201": Meaning("error", "the bytes of a checkpoint cannot belong to that many parameters", "check bytes and parameters"),
    "FC202": Meaning("error", "the bytes per parameter do not suit the checkpoint's format", "check bytes, parameters and format"),
    "FC203": Meaning("error", "the stated bits per weight and the bytes disagree", "check bytes, parameters and bits_per_weight"),
    "FC204": Meaning("error", "the layer groups do not add up to the layers", "count the layers of each group again"),
    "FC205": Meaning("error", "fewer parameters in all than in a part of them", "check total, active and stored"),
    "FC206": Meaning("error", "successors are named without a withdrawal", "withdraw the checkpoint, or remove the successors"),
    "FC207": Meaning("error", "a withdrawal gives no reason", "say why in the event's note"),
    "FC208": Meaning("error", "two events of one subject begin on the same day", "keep the one in force, or date them apart"),
    "FC209": Meaning("error", "an alias ends before it begins", "check `from` and `until`"),
    "FC210": Meaning("warning", "two sizes differ by 1.0737: one may be GB taken for GiB", _UNIT),
    "FC211": Meaning("error", "a size is not what was printed", "check the unit, or correct `printed`"),
    "FC212": Meaning("error", "a figure is 0 or below; unknown is absent, never 0", "leave the figure out"),
    "FC213": Meaning("error", "devices hold far more weights than are downloaded", "check the size, its unit and `devices`"),
    "FC214": Meaning("error", "a checkpoint is older than its model", "check both dates"),
    "FC215": Meaning(
        "error", "bytes are given for other than the layers with experts", "give one figure for each, or leave layer_bytes out"
    ),
    "FC301": Meaning("error", "two price periods of a rate overlap", _DEAD),
    "FC302": Meaning("error", "a promotion has no end", "give it `until`, or make it an ordinary price"),
    "FC303": Meaning("error", "cached input costs more than fresh input", "check whether the two are swapped"),
    "FC304": Meaning("warning", "peak is cheaper than off-peak", "check whether the two are swapped"),
    "FC305": Meaning("error", "a price is 0; unknown is absent, never free", "leave it out"),
    "FC306": Meaning("error", "schedule rules are out of order, or two begin at one instant", "sort them by `from`, one for each instant"),
    "FC307": Meaning("error", "no such time zone", "use an IANA name such as Asia/Shanghai"),
    "FC308": Meaning("error", "a window starts and ends at the same time", "write the hours, or leave the window out"),
    "FC309": Meaning("error", "a holiday comes twice", "keep one"),
    "FC310": Meaning("error", "a holiday lies after the day up to which the calendar is known", "move `known_until`, or check the day"),
    "FC311": Meaning("error", "tiers are out of order, or two begin at the same length", "sort them by above_input_tokens"),
    "FC312": Meaning("error", "a price is never in force", "check `from`, `until` and the day on which the source was read"),
    "FC313": Meaning("error", "the models a rate served are out of order", "sort `serves` by `from`"),
    "FC314": Meaning("error", "two prices of a device or cluster hold from the same day", "keep one, or tell the sellers apart"),
    "FC401": Meaning("error", "software sees more memory than was sold", "check `sold` and `visible`"),
    "FC402": Meaning("error", "more memory is free or reclaimable than is visible", "check the figure"),
    "FC403": Meaning("error", "a device says two things about one engine", "keep one, with the other in its note"),
    "FC404": Meaning("error", "a variant has another memory than the device it is a variant of", "make it a device of its own"),
    "FC405": Meaning("error", "a variant of itself, or of another variant", "name the original machine"),
    "FC406": Meaning("error", "two clusters are the default for the same devices", "keep one default"),
    "FC407": Meaning("warning", "a usable share is outside what engines take", "check the fraction"),
    "FC408": Meaning("error", "a seen range does not hold its own figure", "check low, value and high"),
    "FC409": Meaning("error", "a device has a figure for an engine that does not run on its chip", "check the engine, or its `chips`"),
    "FC410": Meaning("warning", "a memory bandwidth is outside what machines have", "check the unit: bytes a second"),
    "FC411": Meaning("error", "two devices are detected by one name and memory", "tell them apart, or make one a variant of the other"),
    "FC501": Meaning("error", "a recipe's context is longer than the model's", "check context_tokens"),
    "FC502": Meaning("error", "a recipe splits over more devices than it has", "check tp, pp, ep, dcp and count"),
    "FC503": Meaning("warning", "a recipe is older than its model", "check both dates"),
    "FC504": Meaning("error", "a recipe has two headline speeds of a phase", "keep the one that its author leads with"),
    "FC505": Meaning("warning", "a speed is given twice under the same conditions", "tell them apart by `workload`, or make one a range"),
    "FC506": Meaning("error", "a recipe needs more memory than its device has", "check the size and its unit"),
    "FC507": Meaning("error", "a recipe's engine does not run on its device's chip", "check engine and device, or the engine's `chips`"),
    "FC508": Meaning("warning", "a recipe's engine does not list the checkpoint's format", "add it to the engine's formats, or check both"),
    "FC509": Meaning("error", "a recipe's KV dtype is not known", "use a name that `fitcheck fit --kv-dtype` takes"),
    "FC510": Meaning("warning", "a speed is beyond what machines reach", "check the figure, `users` and `per`"),
}
