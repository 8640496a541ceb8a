"""The border where text becomes typed, sourced records.

The shipped catalogue is the `data` folder: in the wheel it lies inside the package, in a source checkout or an editable install beside
`src`. Overlays are further files of the same form whose records add to the catalogue or replace records of the same id. Records are
parsed and validated when asked for, not before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import ValidationError

from fitcheck.catalogue.provenance import Record
from fitcheck.catalogue.text import Block, YamlProblem, parse, parse_value, split_records
from fitcheck.errors import DataError, UnknownId

if TYPE_CHECKING:
    from datetime import date

    from fitcheck.catalogue.hardware import Device
    from fitcheck.catalogue.models import Model
    from fitcheck.catalogue.ratecards import Rate
    from fitcheck.catalogue.recipes import Recipe

_HOMES = {
    "model": ("models", "Model"),
    "device": ("hardware", "Device"),
    "cluster": ("hardware", "Cluster"),
    "engine": ("hardware", "Engine"),
    "recipe": ("recipes", "Recipe"),
    "rate": ("ratecards", "Rate"),
    "schedule": ("ratecards", "Schedule"),
    "calendar": ("ratecards", "Calendar"),
    "profile": ("ratecards", "Profile"),
    "assumption": ("ratecards", "Assumption"),
}


class _Kinds(Mapping[str, type[Record]]):
    """Record class by kind; a class is imported when it is asked for, because most commands need only some."""

    def __getitem__(self, kind: str) -> type[Record]:
        module, name = _HOMES[kind]
        record: type[Record] = getattr(import_module(f"fitcheck.catalogue.{module}"), name)
        return record

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


KINDS = _Kinds()
MAX_FILE_BYTES = 16 * 1024 * 1024
_ALIAS_LIST = re.compile(r"^  aliases: *\[([^\]]*)\]", re.MULTILINE)
_ALIAS_EVENT = re.compile(r"^    - \{?name: *([^,}\n]+)", re.MULTILINE)
_SECTION = re.compile(r"^ {0,2}[^\s#]", re.MULTILINE)
_Kind = TypeVar("_Kind", bound=Record)


def data_folder() -> Path:
    """Where the shipped catalogue lies. Raises `DataError` when it is not there."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "data", package.parent.parent / "data"):
        if (folder / "models.yaml").is_file():
            return folder
    raise DataError("the catalogue is missing from this installation", hint="install fitcheck-advisor again")


def normalise(name: str) -> str:
    """A name as ids and aliases are compared: without case, spaces, `_` and `-`."""
    return re.sub(r"[\s_\-]+", "", name).lower()


def read_text(path: Path) -> str:
    """A catalogue file's text. Raises `DataError` where it is missing, not a file of its own, not UTF-8, or larger than any catalogue."""
    try:
        if not S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "a pipe or device"
            raise DataError(f"{path}: {what}, not a file", hint="name a YAML file of records; a pipe's text has to be saved first")
        with path.open("rb") as file:
            held = file.read(MAX_FILE_BYTES + 1)
        if len(held) > MAX_FILE_BYTES:
            raise DataError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes, so not a catalogue file")
        return held.decode("utf-8").removeprefix("\ufeff")
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file", hint="check the path; an overlay is a YAML file of records") from error
    except (OSError, ValueError) as error:  # a name with a NUL in it, bytes that are not UTF-8
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text" if isinstance(error, UnicodeError) else str(error)
        raise DataError(f"{path}: cannot be read ({reason})") from error


class Overlay(NamedTuple):
    """An overlay in force: where it came from, and which records it adds or replaces."""

    path: str
    ids: tuple[str, ...]


class Catalogue:
    """The records of the shipped files and the overlays, read on demand."""

    def __init__(self, folder: Path, overlays: tuple[Path, ...] = ()) -> None:
        self._texts = {path.name: read_text(path) for path in sorted(folder.glob("*.yaml"))}
        self._overlay_texts = [(str(path), read_text(path)) for path in overlays]
        version = folder / "VERSION"
        self.version = version.read_text(encoding="utf-8").strip() if version.is_file() else "unversioned"
        self._records: dict[tuple[str, str], Record] = {}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every file's name and bytes, overlays included."""
        import hashlib

        total = hashlib.sha256()
        for name, text in [*self._texts.items(), *self._overlay_texts]:
            total.update(f"{Path(name).name}\0{len(text)}\0".encode())
            total.update(text.encode())
        return total.hexdigest()

    @cached_property
    def _blocks(self) -> dict[str, dict[str, Block]]:
        """Blocks by kind and id; a later file replaces a record of the same kind and id."""
        blocks: dict[str, dict[str, Block]] = {}
        for name, text in self._texts.items():
            _collect(blocks, split_records(text, f"data/{name}"))
        for name, text in self._overlay_texts:
            found = split_records(text, name)
            _collect(blocks, found)
            # An overlay is somebody's own work in progress: all of it is checked at once, so that a slip never waits for its turn.
            for block in found:
                build(KINDS[block.kind or ""], block)
        return blocks

    @property
    def texts(self) -> tuple[dict[str, str], dict[str, str]]:
        """The texts by file name: those shipped, and the overlays."""
        return dict(self._texts), dict(self._overlay_texts)

    @cached_property
    def overlays(self) -> tuple[Overlay, ...]:
        """The overlays in force, in the order in which they were given."""
        return tuple(Overlay(name, tuple(block.id for block in split_records(text, name))) for name, text in self._overlay_texts)

    def blocks(self, kind: str) -> dict[str, Block]:
        """The unparsed records of a kind, by id."""
        return self._blocks.get(kind, {})

    def ids(self, kind: str) -> list[str]:
        """All ids of a kind, in file order."""
        return list(self.blocks(kind))

    def get(self, record_type: type[_Kind], record_id: str) -> _Kind:
        """The record with exactly this id. Raises `UnknownId`, or `DataError` where the record is malformed."""
        kind = _kind_of(record_type)
        if (kind, record_id) not in self._records:
            block = self.blocks(kind).get(record_id)
            if block is None:
                raise UnknownId(f"no {kind} {record_id!r} in the catalogue", nearest=self.nearest(kind, record_id))
            self._records[kind, record_id] = build(record_type, block)
        record = self._records[kind, record_id]
        assert isinstance(record, record_type)
        return record

    def all(self, record_type: type[_Kind]) -> tuple[_Kind, ...]:
        """Every record of a kind, in file order."""
        return tuple(self.get(record_type, record_id) for record_id in self.ids(_kind_of(record_type)))

    @property
    def models(self) -> tuple[Model, ...]:
        """Every model, each with its checkpoints."""
        from fitcheck.catalogue.models import Model

        return self.all(Model)

    @property
    def devices(self) -> tuple[Device, ...]:
        """Every device."""
        from fitcheck.catalogue.hardware import Device

        return self.all(Device)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Every rate."""
        from fitcheck.catalogue.ratecards import Rate

        return self.all(Rate)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Every recipe."""
        from fitcheck.catalogue.recipes import Recipe

        return self.all(Recipe)

    def mentioning(self, record_type: type[_Kind], **fields: str | int) -> tuple[_Kind, ...]:
        """The records whose top-level fields are written with these values; only these are parsed."""
        lines = [re.compile(rf"^  {name}: *[\"']?{re.escape(str(value))}[\"']? *(?:#.*)?$", re.MULTILINE) for name, value in fields.items()]
        kind = _kind_of(record_type)
        found = (block for block in self.blocks(kind).values() if all(line.search(block.text) for line in lines))
        return tuple(self.get(record_type, block.id) for block in found)

    def names(self, kind: str) -> dict[str, str]:
        """Every id and alias of a kind to the id it belongs to, read from the text without parsing."""
        names = {record_id: record_id for record_id in self.ids(kind)}
        for block in self.blocks(kind).values():
            for name in aliases_written(block):
                names.setdefault(name, block.id)
        return names

    def nearest(self, kind: str, name: str, day: date | None = None) -> tuple[str, ...]:
        """Up to three ids and aliases that look most like a name, best first; on a `day`, only names that are in force then."""
        from fitcheck.catalogue.nearest import nearest

        return nearest(self, kind, name, day)


def _kind_of(record_type: type[Record]) -> str:
    return next(kind for kind, (_, name) in _HOMES.items() if name == record_type.__name__)


def _collect(blocks: dict[str, dict[str, Block]], found: list[Block]) -> None:
    for block in found:
        if block.kind is None or block.kind not in KINDS:
            known = ", ".join(KINDS)
            what = "has no kind" if block.kind is None else f"has the unknown kind {block.kind!r}"
            raise YamlProblem(f"record {block.id!r} {what} (one of: {known})", block.path, block.line)
        of_kind = blocks.setdefault(block.kind, {})
        of_kind.pop(block.id, None)
        of_kind[block.id] = block


def aliases_written(block: Block) -> list[str]:
    """The aliases of a record as look-ups see them, read from the text without parsing it.

    Models write dated events with their `name` first, other kinds a list on one line.
    """
    if block.kind == "model":
        section = block.text.partition("\n  aliases:\n")[2]
        end = _SECTION.search(section)
        names = _ALIAS_EVENT.findall(section[: end.start()] if end else section)
    else:
        listed = _ALIAS_LIST.search(block.text)
        names = listed[1].split(",") if listed and listed[1].strip() else []
    return [name.strip().strip("\"'") for name in names]


def build(record_type: type[_Kind], block: Block) -> _Kind:
    """The typed record of a block. Raises `YamlProblem` with the line of the first thing that is wrong."""
    value = parse_value(block.text, block.path, block.line)
    body: Any = value.get(block.id) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(body, dict):
        raise YamlProblem(f"record {block.id!r} must be a mapping of fields", block.path, block.line)
    try:
        return record_type.model_validate({**body, "id": block.id})
    except ValidationError as error:
        message, where = first_problem(error)
        _, lines = parse(block.text, block.path, block.line)
        raise YamlProblem(f"{block.id}: {message}", block.path, line_of((block.id, *where), lines, block.line)) from error


def first_problem(error: ValidationError) -> tuple[str, tuple[str | int, ...]]:
    """The first thing a validation found: its message in words, and the path of keys to it."""
    return problem_words(error.errors(include_url=False, include_context=False)[0])


def problem_words(detail: Any) -> tuple[str, tuple[str | int, ...]]:
    """One validation finding as `field.path: what is wrong`, and the path of keys to it."""
    where = tuple(detail["loc"])
    shown = ".".join(str(part) for part in where)
    return (f"{shown}: {detail['msg']}" if shown else detail["msg"]), where


def line_of(where: tuple[str | int, ...], lines: dict[tuple[str | int, ...], int], default: int) -> int:
    """The line of the innermost part of a path that stands in the text; union tags in the path are passed over."""
    best = default
    known: tuple[str | int, ...] = ()
    for part in where:
        if (*known, part) in lines:
            known = (*known, part)
            best = lines[known]
    return best


def load_catalogue(*overlays: str | Path) -> Catalogue:
    """The shipped catalogue with overlay files on top. Raises `DataError` for a missing or unreadable file."""
    return Catalogue(data_folder(), tuple(Path(overlay) for overlay in overlays))
