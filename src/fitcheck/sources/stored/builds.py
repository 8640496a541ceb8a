"""Which files of a listing make a build, from their names alone and, where names leave it open, an index.

Rules, in order:

1. What is not a language model is left out: diffusion pipelines (`model_index.json`), folders such as `onnx`, training state.
2. `*.gguf`: a file, or a series `-00001-of-0000N`, is a build. `mmproj` files are the vision tower of each; `imatrix` files are
   not models.
3. `*.safetensors`: an index's files are a build. Without one, a series, or all single files of a precision together, as engines load them.
4. `consolidated*.safetensors` (Mistral) beside other shards are the same weights once more, and so is a folder with a `dtypes.json` below
   them (OpenAI's own layout of gpt-oss): left out with a note.
5. Files and folders named as a drafter (`mtp`, `eagle`, `draft`, ...) belong to the builds as drafters that are loaded on demand, unless
   the index of a build names them.
6. `adapter_model.safetensors` (LoRA) is not a model; pickles (`pytorch_model*.bin`) cannot be read without running code, so only their size
   is told, and only where there is nothing else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from fitcheck.errors import DataError
from fitcheck.frozen import frozen
from fitcheck.sources.store import Store, StoredFile
from fitcheck.sources.stored.index import Index, read_index
from fitcheck.sources.stored.series import PRECISIONS, Series, missing_in, quant_in, series_of
from fitcheck.sources.stored.text import named

Kind = Literal["safetensors", "gguf", "pickle"]


@frozen
class Build:
    """Files that are loaded together. `id` is unique within the listing.

    `bytes` are those of `files` by the listing, or None where it does not say them; `towers` and `drafters` come on top. `index` is the
    index that names the files, read or not. `problem` says why the build is not whole.
    """

    id: str
    kind: Kind
    files: tuple[StoredFile, ...]
    towers: tuple[StoredFile, ...] = ()
    drafters: tuple[StoredFile, ...] = ()
    index: str | None = None
    notes: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def bytes(self) -> int | None:
        """Bytes of all its files, exact where the listing says them all."""
        sizes = [file.bytes for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size is not None)


@frozen
class Listing:
    """The builds of a store, whole ones first, and what else was found there."""

    builds: tuple[Build, ...]
    notes: tuple[str, ...]


_NOT_MODELS = frozenset(
    ["onnx", "unet", "vae", "scheduler", "text_encoder", "text_encoder_2", "text_encoder_3", "safety_checker", "image_encoder",
     "feature_extractor", "optimizer", "runs", "logs", "openvino", "coreml", "tokenizer"]
)  # fmt: skip
_NOT_WEIGHTS = re.compile(r"^(?:optimizer|scheduler|rng_state|training_args|diffusion_pytorch_model|pytorch_lora_weights)", re.IGNORECASE)
_DRAFTER = re.compile(r"(?:^|[-_. /])(?:mtp|nextn|eagle[23]?|draft(?:er)?|dflash2?|dspark|medusa|speculator)(?=$|[-_. /])", re.IGNORECASE)
_DRAFTER_FOLDER = re.compile(rf"{_DRAFTER.pattern}|(?:^|/)assistant(?=$|/)", re.IGNORECASE)
_DRAFTER_SHARE = 4
"""A file named as a drafter that is a quarter of the largest build or more is a build with its draft layers in it."""
_INDEX = re.compile(r"^(?P<stem>.*?)(?:\.safetensors\.index)(?:\.(?P<variant>[\w-]+))?\.json$")


def find_builds(store: Store) -> Listing:
    """The builds of a store. Indexes are read where names do not settle which files belong together.

    Raises `DataError` where there is none, or none that is whole: for a missing shard it is named.
    """
    files = store.files()
    kept, notes = _models_only(files)
    builds = [*_gguf_builds(kept), *_safetensors_builds(store, kept, notes)]
    if not builds:
        builds = _pickle_builds(kept)
    if not builds:
        raise DataError(
            f"{named(store.label)} has no weights that are read", hint="; ".join(notes) or "safetensors or GGUF files are needed"
        )
    builds = _unique(builds)
    whole = [build for build in builds if build.problem is None]
    if not whole:
        raise DataError(f"{named(store.label)}: {builds[0].problem}", hint="fetch the missing files")
    return Listing((*whole, *(build for build in builds if build.problem)), tuple(notes))


def _unique(builds: list[Build]) -> list[Build]:
    """The builds, with a number behind an id that another has too."""
    seen: Counter[str] = Counter()
    found = []
    for build in builds:
        seen[build.id] += 1
        found.append(build if seen[build.id] == 1 else replace(build, id=f"{build.id}#{seen[build.id]}"))
    return found


def _models_only(files: tuple[StoredFile, ...]) -> tuple[list[StoredFile], list[str]]:
    """Files that may be weights, and what was left out."""
    notes, kept = [], []
    pipeline = any(file.path == "model_index.json" for file in files)
    if pipeline:
        notes.append("a diffusion pipeline (model_index.json), which is not a language model")
    for file in files:
        folder, _, name = file.path.rpartition("/")
        parts = folder.lower().split("/")
        if any(part in _NOT_MODELS or part.startswith("checkpoint-") for part in parts) or pipeline:
            continue
        if name in ("adapter_model.safetensors", "adapter_model.bin"):
            notes.append(f"{named(file.path)} is an adapter (LoRA), which is added to a model and is not one")
        elif not _NOT_WEIGHTS.match(name):
            kept.append(file)
    return kept, notes


def _gguf_builds(files: Iterable[StoredFile]) -> list[Build]:
    weights = [file for file in files if file.path.lower().endswith(".gguf")]
    towers = tuple(file for file in weights if "mmproj" in _name(file).lower())
    others = [file for file in weights if "mmproj" not in _name(file).lower() and not _is_imatrix(_name(file))]
    groups = series_of(others)
    said = [bool(_DRAFTER.search(_name(group.files[0])) or _DRAFTER_FOLDER.search(_folder(group.files[0]))) for group in groups]
    largest = max((_size(group) for group, draft in zip(groups, said, strict=True) if not draft), default=0)
    apart = [draft and _DRAFTER_SHARE * _size(group) < largest for group, draft in zip(groups, said, strict=True)]
    drafters = tuple(file for group, draft in zip(groups, apart, strict=True) if draft for file in group.files)
    tower, notes = _chosen_tower(towers)
    whole = [group for group, draft in zip(groups, apart, strict=True) if not draft]
    return [Build(group.stem, "gguf", group.files, tower, drafters, None, notes, missing_in(group)) for group in whole]


def _is_imatrix(name: str) -> bool:
    """An importance matrix, not a build that was made with one and says so."""
    return "imatrix" in name.lower() and quant_in(name) is None


def _size(group: Series) -> int:
    return sum(file.bytes or 0 for file in group.files)


def _chosen_tower(towers: tuple[StoredFile, ...]) -> tuple[tuple[StoredFile, ...], tuple[str, ...]]:
    """One of several precisions of the same tower: F16, else BF16, else the first by name."""
    if len(towers) < 2:
        return towers, ()
    order = [
        next((place for place, word in enumerate(("bf16", "f16", "q8_0", "f32")) if word in _name(tower).lower()), 9) for tower in towers
    ]
    ranks = [{0: 1, 1: 0}.get(place, place) for place in order]
    chosen = towers[ranks.index(min(ranks))]
    return (chosen,), (f"of {len(towers)} files of the vision tower {named(chosen.path)} is taken",)


def _safetensors_builds(store: Store, files: list[StoredFile], notes: list[str]) -> list[Build]:
    by_folder: dict[str, list[StoredFile]] = defaultdict(list)
    for file in files:
        if file.path.endswith((".safetensors", ".json")):
            by_folder[_folder(file)].append(file)
    builds: list[Build] = []
    apart: list[StoredFile] = []
    for folder, found in sorted(by_folder.items()):
        weights = [file for file in found if file.path.endswith(".safetensors")]
        if weights and folder and builds and any(_name(file) == "dtypes.json" for file in found):
            notes.append(f"{named(folder)} ({_sized(weights)}) holds the same weights in OpenAI's layout: not counted")
            continue
        if folder and _DRAFTER_FOLDER.search(folder) and any(not _folder(build.files[0]) for build in builds):
            apart += weights
        elif weights:
            made, drafters = _folder_builds(store, folder, weights, [file.path for file in found if _INDEX.match(_name(file))], notes)
            builds += made
            apart += drafters if made else []
    if not apart:
        return builds
    return [_with_drafters(build, tuple(apart)) for build in builds]


def _with_drafters(build: Build, apart: tuple[StoredFile, ...]) -> Build:
    own = {file.path for file in build.files}
    return replace(build, drafters=tuple(file for file in apart if file.path not in own))


def _folder_builds(
    store: Store, folder: str, weights: list[StoredFile], indexes: list[str], notes: list[str]
) -> tuple[list[Build], list[StoredFile]]:
    """The builds of one folder, and drafters that lie in it as files of their own."""
    mistral = [file for file in weights if _name(file).startswith("consolidated")]
    rest = [file for file in weights if not _name(file).startswith("consolidated")]
    if mistral and rest:
        notes.append(f"{named(_name(mistral[0]))} ({_sized(mistral)}) holds the same weights in Mistral's layout: not counted")
        indexes = [path for path in indexes if not path.rpartition("/")[2].startswith("consolidated")]
    else:
        rest = mistral or rest
    groups = series_of(rest)
    if len(groups) == 1 and len(indexes) <= 1 and (groups[0].count > 1 or not indexes):  # names settle it
        index = indexes[0] if indexes else None
        return [_build(folder, groups[0].stem, groups[0].files, index, missing_in(groups[0]))], []
    builds, used = [], set[StoredFile]()
    for path in indexes:
        build = _indexed(read_index(store, path), rest, folder)
        builds.append(build)
        used |= set(build.files)
    left = [group for group in groups if not used & set(group.files)]
    drafters = [file for group in left for file in group.files if builds or len(left) > 1 if _DRAFTER.search(_name(file))]
    left = [group for group in left if not set(group.files) & set(drafters)]
    return [*builds, *_unindexed(folder, left, alone=not builds)], drafters


def _indexed(index: Index, files: list[StoredFile], folder: str) -> Build:
    there = {file.path: file for file in files}
    absent = [name for name in index.shards if name not in there]
    problem = f"{named(index.path)} names {_some(absent)}, which {'is' if len(absent) == 1 else 'are'} missing" if absent else None
    found = _INDEX.match(index.path.rpartition("/")[2])
    stem = f"{found['stem']}.{found['variant']}" if found and found["variant"] else found["stem"] if found else ""
    return _build(folder, stem, tuple(there[name] for name in index.shards if name in there), index.path, problem)


def _unindexed(folder: str, groups: list[Series], *, alone: bool) -> list[Build]:
    """Series are builds; single files are one build for each precision that their names tell, as engines load all that lie there."""
    builds = [_build(folder, group.stem, group.files, None, missing_in(group)) for group in groups if group.count > 1]
    by_precision: dict[str, list[Series]] = defaultdict(list)
    for group in groups:
        if group.count == 1:
            word = PRECISIONS.search(group.stem)
            by_precision[word[0].lower() if word else ""].append(group)
    for same in by_precision.values():
        files = tuple(file for group in same for file in group.files)
        if len(same) == 1 or not alone or builds:
            builds += [_build(folder, group.stem, group.files, None, None) for group in same]
        else:
            builds.append(
                _build(folder, same[0].stem, files, None, None, f"{len(files)} files without an index, taken together as engines do")
            )
    return builds


def _build(folder: str, stem: str, files: tuple[StoredFile, ...], index: str | None, problem: str | None, *notes: str) -> Build:
    name = stem.rpartition("/")[2]
    return Build(f"{folder}/{name}" if folder else name, "safetensors", files, index=index, notes=notes, problem=problem)


def _pickle_builds(files: list[StoredFile]) -> list[Build]:
    """Pickles: their bytes by the listing, and nothing else."""
    pickles = [file for file in files if re.search(r"(?:^|/)(?:pytorch_model[^/]*\.bin|consolidated[^/]*\.pth?|model\.pth?)$", file.path)]
    folders = sorted({_folder(file) for file in pickles})
    note = "pickled weights: reading them runs code, so only their size is known"
    return [
        Build(
            f"{folder}/pickle" if folder else "pickle", "pickle", tuple(file for file in pickles if _folder(file) == folder), notes=(note,)
        )
        for folder in folders
    ]


def _name(file: StoredFile) -> str:
    return file.path.rpartition("/")[2]


def _folder(file: StoredFile) -> str:
    return file.path.rpartition("/")[0]


def _sized(files: list[StoredFile]) -> str:
    return f"{len(files)} file{'' if len(files) == 1 else 's'}, {sum(file.bytes or 0 for file in files):,} bytes"


def _some(names: list[str]) -> str:
    shown = ", ".join(named(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5:,} more"
