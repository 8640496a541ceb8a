"""From a store to a record that `fit` and `cost` can be asked about: what its config, its listing and its files' headers say.

Bytes are exact where a header or the listing was read. Of a store with many GGUF builds only one header is read, for the architecture;
the others count as whole files until they are asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from difflib import get_close_matches
from typing import Any

from fitcheck.catalogue.models import Architecture, Checkpoint, CheckpointEvent, Component, ComponentKind, Model, Parameters
from fitcheck.catalogue.provenance import CountFigure, DayFigure, Grade, Source
from fitcheck.errors import DataError, UnknownId
from fitcheck.frozen import frozen
from fitcheck.sources.config import MOST_BYTES, ConfigModel, config_model
from fitcheck.sources.gguf_model import GgufModel, read_metadata
from fitcheck.sources.record import architecture_of, counted_by_config, model_of_config, slug, with_bits
from fitcheck.sources.store import Store
from fitcheck.sources.store_config import WEIGHT_ENDINGS, shared_config
from fitcheck.sources.stored.ahead import asked_ahead
from fitcheck.sources.stored.builds import Build, Listing, find_builds
from fitcheck.sources.stored.reading import ReadBuild, read_builds
from fitcheck.sources.stored.series import OF_ANY_MODEL

FILES = "files"
"""The name of the source that a listing and headers are cited by."""

UNSETTLED_FORMAT = "unknown"


@frozen
class Reading:
    """What was understood of a store: its builds, those of them whose headers were read, its config, and the record of all that.

    `unknown` says what is not known and why, `notes` what a reader should know besides.
    """

    model: Model
    listing: Listing
    read: tuple[ReadBuild, ...]
    config: ConfigModel | None
    gguf: GgufModel | None
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


def read_store(store: Store, day: date, wanted: str | None = None, *, read_on: date | None = None) -> Reading:
    """Read a store for an answer as of a day, with the headers of the build `wanted` where there are several GGUF builds.

    `read_on` is the day of reading, where that is another.

    Raises `DataError` where there is nothing to read, `UnknownId` for a build that is not there, and what the store raises.
    """
    store = asked_ahead(store, MOST_BYTES)
    raw = shared_config(store)
    name, developer = _names(store)
    config = config_model(raw, name, store.url) if raw is not None else None
    listing = _listing(store, config)
    whole = [build for build in listing.builds if build.problem is None]
    if not whole:
        if config is None or raw is None or listing.builds:
            raise DataError(f"{store.label}: {_why_nothing(listing)}", hint="a model has .safetensors or .gguf files, or a config.json")
        return _by_config(store, day, raw, config, listing, developer, read_on or day)
    chosen = _chosen(whole, wanted)
    read = tuple(found for build in chosen for found in read_builds(store, raw, build.id)) if len(chosen) < len(whole) else None
    read = read if read is not None else read_builds(store, raw)
    gguf = _gguf(read, name)
    architecture = _architecture(raw, config, gguf, _expert_layers(read))
    unknown = _unknown(config, gguf, read)
    by_id = {found.build.id: found for found in read}
    layers = architecture.expert_layers if architecture is not None else None
    builds = tuple(_checkpoint(build, by_id.get(build.id), config, day, store.hub_id, layers) for build in whole)
    parameters = _parameters(raw, gguf, read)
    builds = with_bits(_distinct(builds), parameters.value if parameters else 0, FILES)
    told = (note for build in listing.builds for note in _build_notes(build))
    notes = (*listing.notes, *told, *(note for found in read for note in _f32_notes(found)), *store.notes)
    model = Model(
        kind="model",
        id=slug(name),
        name=name,
        developer=developer,
        license="not read",
        hub_id=store.hub_id,
        released=DayFigure(value=day.isoformat(), source=(FILES,), grade=Grade.ASSUMED, note="not read: the day that was asked about"),
        parameters=Parameters(total=parameters),
        architecture=architecture,
        checkpoints=builds,
        sources={FILES: Source(url=store.url, read=read_on or day, title=store.label)},
        note="; ".join([*unknown, *notes]) or None,
    )
    return Reading(model, listing, read, config, gguf, unknown, notes)


def _listing(store: Store, config: ConfigModel | None) -> Listing:
    """The builds of a store; where there are no weight files a config is enough, whose builds are then derived."""
    try:
        return find_builds(store)
    except DataError as error:
        if config is None or any(file.path.lower().endswith(WEIGHT_ENDINGS) for file in store.files()):
            raise
        return Listing((), (error.message,))


def _names(store: Store) -> tuple[str, str]:
    """The model's name and its publisher, as the store's own name tells them."""
    label = store.label.partition("@")[0].rstrip("/")
    parts = [part for part in label.split("/") if part]
    if len(parts) > 1 and OF_ANY_MODEL.fullmatch(parts[-1]) and not store.hub_id:
        parts.pop()
    name = parts[-1] if parts else "model"
    for ending in (".gguf", ".safetensors", ".json"):
        name = name.removesuffix(ending)
    return name, parts[-2] if store.hub_id and len(parts) > 1 else "not stated"


def _why_nothing(listing: Listing) -> str:
    problems = [build.problem for build in listing.builds if build.problem]
    return "; ".join([*problems, *listing.notes]) or "there is no model"


def _by_config(
    store: Store, day: date, raw: dict[str, Any], config: ConfigModel, listing: Listing, developer: str, read_on: date
) -> Reading:
    """A store whose weights are not there, or not whole: what its builds would take is derived."""
    source = Source(url=store.url, read=read_on, title=store.label)
    model = model_of_config(raw, config, source, day).model_copy(update={"developer": developer, "hub_id": store.hub_id})
    notes = (*listing.notes, *(build.problem for build in listing.builds if build.problem), *store.notes)
    return Reading(model, listing, (), config, None, config.unknown, notes)


def _chosen(builds: list[Build], wanted: str | None) -> list[Build]:
    """The builds whose headers are read. Raises `UnknownId` for a wanted build that is not there."""
    ggufs = [build for build in builds if build.kind == "gguf"]
    others = [build for build in builds if build.kind != "gguf"]
    if wanted is not None:
        found = [build for build in builds if slug(build.id) == slug(wanted)]
        found = found or [build for build in builds if slug(build.id).endswith(f"-{slug(wanted)}")]
        if len(found) != 1:
            ids = [slug(build.id) for build in builds]
            nearest = (
                tuple(get_close_matches(slug(wanted), ids, n=3, cutoff=0.0)) if not found else tuple(slug(build.id) for build in found[:3])
            )
            raise UnknownId(f"{wanted[:80]!a} is {'no' if not found else 'more than one'} build there", nearest=nearest)
        return [*others, *found] if found[0] in ggufs else builds if len(ggufs) < 2 else others
    if len(ggufs) < 2:
        return builds
    return [*others, min(ggufs, key=lambda build: build.bytes if build.bytes is not None else 1 << 62)]


def _gguf(read: Iterable[ReadBuild], name: str) -> GgufModel | None:
    """What the first GGUF file says of its model."""
    header = next((found.header for found in read if found.header is not None), None)
    if header is None:
        return None
    return read_metadata(header.metadata, {key: found.length for key, found in header.lengths.items()}, header.tensors, name=name)


def _architecture(
    raw: dict[str, Any] | None, config: ConfigModel | None, gguf: GgufModel | None, expert_layers: int | None
) -> Architecture | None:
    """The config's where it settles one, else that of the GGUF file, whose tensors' names tell in how many layers there are experts."""
    if config is not None and config.architecture is not None and raw is not None:
        return architecture_of(config.architecture, raw).model_copy(update={"source": (FILES,)})
    if gguf is None or gguf.architecture is None:
        return None
    return gguf.architecture.model_copy(update={"source": (FILES,), "only_llama_cpp": gguf.lost, "expert_layers": expert_layers})


def _expert_layers(read: Iterable[ReadBuild]) -> int | None:
    """How many layers of the first GGUF build have routed experts; None for none."""
    first = next((found for found in read if found.header is not None), None)
    parts = first.contents.components if first is not None else ()
    return next((len(part.by_layer) or None for part in parts if part.kind is ComponentKind.EXPERTS), None)


def _unknown(config: ConfigModel | None, gguf: GgufModel | None, read: Iterable[ReadBuild]) -> tuple[str, ...]:
    reasons = list(config.unknown) if config is not None else []
    if gguf is not None and (config is None or config.architecture is None):
        reasons += list(gguf.unknown)
    if config is None and gguf is None:
        reasons.append("there is no config.json of all builds, and weight files alone do not tell the architecture")
    for found in read:
        reasons += list(found.contents.unknown)
        if found.format.name is None:
            reasons.append(f"the format of {found.build.id}: {found.format.why}")
    return tuple(dict.fromkeys(reasons))


def _build_notes(build: Build) -> tuple[str, ...]:
    return (*build.notes, *((f"{build.id}: {build.problem}",) if build.problem else ()))


def _f32_notes(found: ReadBuild) -> tuple[str, ...]:
    """That a build is stored in twice the bytes that servers load (vLLM `_resolve_auto_dtype` and SGLang: F32 is read as 16 bits)."""
    kinds = found.contents.kinds
    if found.build.kind != "safetensors" or 2 * kinds.get("f32", 0) <= sum(kinds.values()):
        return ()
    halved = kinds["f32"] // 2
    return (f"{found.build.id or 'it'} is stored in F32 and counted so: vLLM and SGLang load 16 bits, which is {halved:,} bytes less",)


def _parameters(raw: dict[str, Any] | None, gguf: GgufModel | None, read: tuple[ReadBuild, ...]) -> CountFigure | None:
    """Parameters of the decoder: as its GGUF file counts them, else as stored in the build with most, else as the config has them."""
    if gguf is not None and gguf.parameters:
        return CountFigure(value=gguf.parameters, source=(FILES,), grade=Grade.PUBLISHED)
    counted = [
        found.contents.parameters - sum(found.contents.parameters_by_part.get(part, 0) for part in _kept_apart(found))
        for found in read
        if found.contents.parameters
    ]
    if counted:
        return CountFigure(value=max(counted), source=(FILES,), grade=Grade.PUBLISHED)
    figure = counted_by_config(raw) if raw is not None else None
    return figure.model_copy(update={"source": (FILES,)}) if figure is not None else None


def _kept_apart(found: ReadBuild) -> list[str]:
    """Parts that are no parameters of the decoder and that were counted with it: those in files of their own were not."""
    apart = (ComponentKind.DRAFTER, ComponentKind.VISION)
    return [part.kind.value for part in found.contents.components if part.kind in apart and not part.optional]


def _checkpoint(
    build: Build, read: ReadBuild | None, config: ConfigModel | None, day: date, hub_id: str | None, expert_layers: int | None
) -> Checkpoint:
    event = CheckpointEvent.model_validate({"status": "effective", "from": day.isoformat(), "source": FILES, "grade": "assumed"})
    form = "gguf" if build.kind == "gguf" else (read.format.name if read is not None else None) or UNSETTLED_FORMAT
    label = f"{read.format.label}, by {read.format.why}" if read is not None and read.format.label else None
    return Checkpoint(
        id=slug(build.id),
        hub_id=hub_id,
        format=form,
        kv_dtype=config.forced_kv_dtype if config is not None and build.kind == "safetensors" else None,
        components=_components(build, read, expert_layers),
        events=(event,),
        note=label,
    )


def _components(build: Build, read: ReadBuild | None, expert_layers: int | None) -> tuple[Component, ...]:
    """The parts of a build; bytes by layer where they are of as many layers as the architecture has experts in."""
    if read is not None and read.contents.components:
        return tuple(
            Component(
                kind=part.kind,
                value=part.bytes,
                source=(FILES,),
                grade=part.grade,
                note=part.note,
                optional=part.optional,
                layer_bytes=part.layer_bytes if len(part.layer_bytes) == expert_layers else (),
                whole_bytes=part.whole_bytes,
            )
            for part in read.contents.components
            if part.bytes
        )
    parts = (
        (ComponentKind.WEIGHTS, build.bytes, False),
        (ComponentKind.VISION, _bytes(build.towers), False),
        (ComponentKind.DRAFTER, _bytes(build.drafters), True),
    )
    return tuple(
        Component(kind=kind, value=size, source=(FILES,), grade=Grade.PUBLISHED, note="whole files, as listed", optional=optional)
        for kind, size, optional in parts
        if size
    )


def _bytes(files: tuple[Any, ...]) -> int | None:
    sizes = [file.bytes for file in files]
    return None if None in sizes else sum(sizes)


def _distinct(builds: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
    """Builds with ids of their own, where two names come to the same one."""
    seen: dict[str, int] = {}
    found = []
    for build in builds:
        seen[build.id] = seen.get(build.id, 0) + 1
        found.append(build if seen[build.id] == 1 else build.model_copy(update={"id": f"{build.id}-{seen[build.id]}"}))
    return tuple(found)
