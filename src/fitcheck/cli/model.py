"""The model that a command was given: a record of the catalogue, or one read where it lies."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fitcheck.cli.common import day_of_answer
from fitcheck.errors import UnknownId, UsageError

if TYPE_CHECKING:
    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.models import Model
    from fitcheck.sources.store_record import Reading

OfflineOption = Annotated[
    bool,
    typer.Option("--offline", help="Never use the network; what was read before is taken from the cache.", rich_help_panel="Output"),
]

_LOOKS_OUTSIDE = ("/", "\\", "@", ":", ".json", ".gguf", ".safetensors", "~")
"""What every name outside the catalogue has somewhere, but a folder's plain name: the readers are not even imported without it."""


def asked_model(catalogue: Catalogue, name: str, day: date, *, checkpoint: str | None = None, offline: bool = False) -> str | Model:
    """A name that the catalogue has, as it is; else the record of what lies there. Raises a `FitcheckError` where there is nothing.

    A path, an address, `ollama:NAME` and `org/name@revision` are read where they lie; a plain `org/name`, `name:tag` or folder only if the
    catalogue does not know it.
    """
    if in_catalogue(catalogue, name, day):
        return name
    return read_outside(name, day, wanted=checkpoint, offline=offline).model


def in_catalogue(catalogue: Catalogue, name: str, day: date) -> bool:
    """Whether a name means a model of the catalogue. Raises `UnknownId` for one that means nothing else either, `UsageError` for none."""
    if not name.strip():
        raise UsageError("the model is empty", hint="name one, such as glm-5.3-flash; 'fitcheck models' lists them")
    if not any(part in name for part in _LOOKS_OUTSIDE) and not Path(name).is_dir():
        return True
    from fitcheck.sources.hub_names import looks_like_repository
    from fitcheck.sources.outside import is_explicit, is_outside

    if is_explicit(name):
        return False
    from fitcheck.catalogue.lookup import find_model

    try:
        find_model(catalogue, name, day)
    except UnknownId:
        if not is_outside(name) and not looks_like_repository(name):
            raise
        return False
    return True


def asked_build(model: str | Model, checkpoint: str | None) -> str | None:
    """The whole id of a build that was named by its end (`q4-k-m` for `my-model-q4-k-m`) of a model read where it lies; else as it is."""
    if checkpoint is None or isinstance(model, str):
        return checkpoint
    from fitcheck.sources.record import slug

    wanted = slug(checkpoint)
    ends = [build.id for build in model.checkpoints if build.id.endswith(f"-{wanted}")]
    exact = any(build.id == wanted for build in model.checkpoints)
    return ends[0] if len(ends) == 1 and not exact else checkpoint


def read_outside(name: str, day: date, *, wanted: str | None, offline: bool) -> Reading:
    """What lies at a path, an address, a hub or in Ollama's folder; a bar on standard error while the network is read."""
    from fitcheck.cli.progress import network_progress
    from fitcheck.sources.outside import open_outside
    from fitcheck.sources.store_record import read_store

    with network_progress() as progress, open_outside(name, offline=offline, progress=progress) as store:
        return read_store(store, day, wanted, read_on=day_of_answer(None))
