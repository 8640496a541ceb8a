"""From a store to what its builds hold, in as few requests as that takes.

Safetensors: all lengths in one round, all headers in the next, of every file of every build. GGUF: windows of all files at once until
every header is whole. Neither where the config already says what the index confirms: see `settled_by_config`.
"""

from __future__ import annotations

import json
from typing import Any

from fitcheck.catalogue.models import ComponentKind
from fitcheck.catalogue.provenance import Grade
from fitcheck.errors import DataError, FitcheckError, UnknownId
from fitcheck.frozen import frozen
from fitcheck.sources.config import decoder_of
from fitcheck.sources.families.fields import Fields, Unsettled
from fitcheck.sources.store import Span, Store, StoredFile, StoredTensor
from fitcheck.sources.stored.builds import Build, find_builds
from fitcheck.sources.stored.contents import Contents, Naming, StoredComponent, joined, tally
from fitcheck.sources.stored.formats import BuildFormat, gguf_format, hints_of, stored_format
from fitcheck.sources.stored.gguf import GgufHeader, read_ggufs
from fitcheck.sources.stored.index import read_index
from fitcheck.sources.stored.names import parts_of
from fitcheck.sources.stored.safetensors import LENGTH_BYTES, SafetensorsHeader, header_length, parse_header
from fitcheck.sources.stored.text import named
from fitcheck.sources.tensors.record import Part
from fitcheck.sources.weights import derive_components, missing_parts, parameters

_MOST_CONFIG_BYTES = 16 * 1024 * 1024
MOST_FILES = 10_000
MOST_HEADER_BYTES = 256 * 1024 * 1024
MOST_TENSORS = 1 << 20
"""Of all files read together. Kimi K3 has 497,220 tensors in 96 files, and headers of some 65 MB."""
_LEAST_OVERHEAD_BYTES = 64 * 1024
_OVERHEAD_SHARE = 100
"""What headers may take beside the tensors, for an index to be worth asking for: 64 KiB a file and one part in a hundred. They take some
120 bytes for each tensor, one part in 60,000 of DeepSeek V3."""


@frozen
class ReadBuild:
    """A build and what it holds.

    `read` says whether the files' own headers were read; if not, `contents` come from the config (`derived`), or, of pickles, are empty.
    `header` is that of a GGUF build's first file. `header_bytes` are those of all files' headers.
    """

    build: Build
    contents: Contents
    format: BuildFormat
    read: bool
    header: GgufHeader | None = None
    header_bytes: int = 0


def read_builds(store: Store, config: dict[str, Any] | None = None, only: str | None = None) -> tuple[ReadBuild, ...]:
    """What every whole build of a store holds, or the one of that id.

    `config` is the store's `config.json`; a build in a folder of its own takes the one that lies there. Raises `DataError` for files that
    are broken or missing and what the store raises; `UnknownId` for an id that is not there.
    """
    builds = [build for build in find_builds(store).builds if build.problem is None]
    if only is not None:
        chosen = [build for build in builds if build.id == only]
        if not chosen:
            raise UnknownId(f"{named(store.label)} has no build {named(only)!r}", nearest=tuple(named(build.id) for build in builds[:3]))
        builds = chosen
    there = {file.path for file in store.files()}
    configs = [_config_for(store, build, there, config) for build in builds]
    found: dict[str, ReadBuild] = {}
    for build, own in zip(builds, configs, strict=True):
        settled = settled_by_config(store, build, own) if own is not None else None
        if settled is not None or build.kind == "pickle":
            empty = Contents((), {}, None, {}, {}, 0, build.notes, ())
            found[build.id] = ReadBuild(build, settled or empty, stored_format(own, None), read=False)
    open_builds = [(build, own) for build, own in zip(builds, configs, strict=True) if build.id not in found]
    headers = _safetensors_headers(store, [file for build, _ in open_builds for file in _own(build, ".safetensors")])
    ggufs = _gguf_headers(store, [file for build, _ in open_builds for file in _own(build, ".gguf")])
    for build, own in open_builds:
        found[build.id] = _gguf(build, ggufs) if build.kind == "gguf" else _safetensors(build, own, headers)
    return tuple(found[build.id] for build in builds)


def settled_by_config(store: Store, build: Build, config: dict[str, Any]) -> Contents | None:
    """What a build holds by its config alone, where the index says the same, or None: then the headers must be read.

    It applies only where all of this holds: the config derives every tensor in its own format without a guess (`derived`, not `estimated`)
    and has no tower or other part that is not derived; the listing gives every file's size, and these exceed the derived bytes by no more
    than headers take; the index names exactly these files; its `metadata.total_size` equals the derived bytes to the byte; and by its
    tensors' names it has the same components. What then remains is chance: the components stay `derived`, never `published`.
    """
    if build.kind != "safetensors" or build.index is None or build.towers or build.drafters or build.bytes is None:
        return None
    try:
        if missing_parts(config):
            return None
        derived = derive_components(config, "native")
        total = sum(part.bytes for part in derived)
        over = build.bytes - total
        if any(
            part.grade is not Grade.DERIVED for part in derived
        ) or not 0 < over <= total // _OVERHEAD_SHARE + _LEAST_OVERHEAD_BYTES * len(build.files):
            return None
        counted = parameters(config, drafter=True)
    except FitcheckError:
        return None
    index = read_index(store, build.index)
    parts = set(parts_of(index.names, _layers(config)))
    named_parts = {part.component if part else ComponentKind.WEIGHTS for part in parts}
    if (
        index.total_bytes != total
        or set(index.shards) != {file.path for file in build.files}
        or named_parts != {part.kind for part in derived}
    ):
        return None
    note = f"the config's tensors add up to the index's total_size of {total:,} bytes"
    components = tuple(StoredComponent(part.kind, part.bytes, part.grade, part.formula, whole_bytes=part.whole_bytes) for part in derived)
    return Contents(components, {}, counted, {}, {}, len(index.names), (), (note,))


def _own(build: Build, ending: str) -> tuple[StoredFile, ...]:
    return tuple(file for file in (*build.files, *build.towers, *build.drafters) if file.path.endswith(ending))


def _safetensors_headers(store: Store, files: list[StoredFile]) -> dict[str, SafetensorsHeader]:
    """The headers of all files in two rounds. Raises `DataError` where they are more together than any model's."""
    wanted = list(dict.fromkeys(files))
    if len(wanted) > MOST_FILES:
        raise DataError(f"{named(store.label)} has {len(wanted):,} weight files, and {MOST_FILES:,} is the most that is read")
    if not wanted:
        return {}
    starts = store.spans([Span(file.path, 0, LENGTH_BYTES) for file in wanted])
    lengths = [header_length(raw, file.path, file.bytes) for raw, file in zip(starts, wanted, strict=True)]
    if sum(lengths) > MOST_HEADER_BYTES:
        raise DataError(f"{named(store.label)}: headers of {sum(lengths):,} bytes, and {MOST_HEADER_BYTES:,} is the most that is read")
    texts = store.spans([Span(file.path, LENGTH_BYTES, length) for file, length in zip(wanted, lengths, strict=True)])
    found, tensors = {}, 0
    for file, length, raw in zip(wanted, lengths, texts, strict=True):
        found[file.path] = header = parse_header(raw, file.path, length, file.bytes)
        tensors += len(header.tensors)
        if tensors > MOST_TENSORS:
            raise DataError(f"{named(store.label)} has more than {MOST_TENSORS:,} tensors, and that is the most that is read")
    return found


def _gguf_headers(store: Store, files: list[StoredFile]) -> dict[str, GgufHeader]:
    wanted = list(dict.fromkeys(files))
    return {header.file: header for header in read_ggufs(store, [(file.path, file.bytes) for file in wanted])} if wanted else {}


def _safetensors(build: Build, config: dict[str, Any] | None, headers: dict[str, SafetensorsHeader]) -> ReadBuild:
    hints = hints_of(config)

    def tensors(files: tuple[StoredFile, ...]) -> tuple[StoredTensor, ...]:
        return tuple(tensor for file in files for tensor in headers[file.path].tensors)

    main = tally(tensors(build.files), Naming(_layers(config)), hints)
    kinds = main.kinds
    if build.drafters:
        main = joined(main, tally(tensors(build.drafters), Naming(whole=Part.DRAFTER), hints, optional=True))
    size = sum(headers[file.path].header_bytes for file in (*build.files, *build.drafters))
    return ReadBuild(build, main, stored_format(config, kinds), read=True, header_bytes=size)


def _gguf(build: Build, headers: dict[str, GgufHeader]) -> ReadBuild:
    """A GGUF build: its series must be what its files say they are."""
    files = [headers[file.path] for file in build.files]
    first = files[0]
    if first.metadata.get("general.type") == "adapter":
        raise DataError(
            f"{named(first.file)} is an adapter (LoRA), which is added to a model and is not one", hint="name the model's own file"
        )
    tensors = tuple(tensor for header in files for tensor in header.tensors)
    for place, header in enumerate(files):
        split = header.split
        if (split or (place, 1, 0))[:2] != (place, len(files)) and (split or len(files) > 1):
            number, count, _ = split or (0, 1, 0)
            raise DataError(
                f"{named(header.file)} says that it is file {number + 1} of {count}, and its name says otherwise",
                hint="fetch the files again",
            )
    if first.split and first.split[2] not in (0, len(tensors)):
        raise DataError(f"{named(first.file)} says that there are {first.split[2]:,} tensors in all, and its files have {len(tensors):,}")
    naming = _gguf_naming(first)
    main = tally(tensors, naming, gguf=True)
    kinds = main.kinds
    towers = [tally(headers[file.path].tensors, Naming(whole=Part.VISION), gguf=True) for file in build.towers]
    drafters = [tally(headers[file.path].tensors, Naming(whole=Part.DRAFTER), gguf=True, optional=True) for file in build.drafters]
    every = (*build.files, *build.towers, *build.drafters)
    size = sum(headers[file.path].header_bytes for file in every)
    return ReadBuild(
        build, joined(main, *towers, *drafters), gguf_format(first.metadata, kinds), read=True, header=first, header_bytes=size
    )


def _gguf_naming(header: GgufHeader) -> Naming:
    """Layers without the draft layers that `block_count` includes (`nextn_predict_layers`)."""
    architecture = header.metadata.get("general.architecture")
    name = architecture if isinstance(architecture, str) else ""
    blocks, drafts = (header.metadata.get(f"{name}.{key}") for key in ("block_count", "nextn_predict_layers"))
    if type(blocks) is not int:
        return Naming(None, name)
    return Naming(blocks - (drafts if type(drafts) is int and 0 <= drafts < blocks else 0), name)


def _layers(config: dict[str, Any] | None) -> int | None:
    """Decoder layers by the config, or None."""
    if config is None:
        return None
    try:
        return Fields(decoder_of(config)[0]).layers()
    except Unsettled:
        return None


def _config_for(store: Store, build: Build, there: set[str], config: dict[str, Any] | None) -> dict[str, Any] | None:
    """The config beside the build, in a folder of its own, else the store's."""
    folder = build.files[0].path.rpartition("/")[0]
    if build.kind == "gguf" or not folder or f"{folder}/config.json" not in there:
        return config
    try:
        found = json.loads(store.read(f"{folder}/config.json", _MOST_CONFIG_BYTES))
    except (ValueError, RecursionError):
        return config
    return found if isinstance(found, dict) else config
