"""The Python API: the commands' verbs over the same records, light to import."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fitcheck.advise.report import RecommendReport
    from fitcheck.catalogue.load import Catalogue
    from fitcheck.catalogue.lookup import ClusterSpec
    from fitcheck.catalogue.models import ComponentKind, Model
    from fitcheck.cost.report import CostReport, PriceReport
    from fitcheck.fit.calibrated import Calibrated
    from fitcheck.fit.calibration import CalibrationCase, CalibrationReport
    from fitcheck.fit.engines.base import Ledger
    from fitcheck.fit.report import FitReport
    from fitcheck.sources.config import ConfigModel
    from fitcheck.sources.gguf_model import GgufModel


def load_catalogue(*overlays: str | Path) -> Catalogue:
    """The shipped catalogue with overlay files on top. Raises `fitcheck.errors.DataError` for a missing or unreadable file."""
    from fitcheck.catalogue.load import load_catalogue as load

    return load(*overlays)


def fit(
    model: str | Model | ConfigModel,
    *,
    cluster: str,
    context: str | int | None = None,
    users: int = 1,
    checkpoint: str | None = None,
    engine: str | None = None,
    kv_dtype: str | None = None,
    tp: int | None = None,
    dp: int = 1,
    dcp: int | None = None,
    ep: bool = False,
    usable: str | int | None = None,
    places: dict[ComponentKind, str] | None = None,
    calibrated: str | Path | None = None,
    as_of: date | None = None,
    catalogue: Catalogue | None = None,
) -> FitReport:
    """Whether a model fits a cluster, as `fitcheck fit` answers it.

    `model` is whatever `read_model` takes, or what it gave: of a config the builds are derived for the usual formats. `cluster` is text as
    on the command line: a name, a description such as `2x24GiB@936GB/s`, or `here` for this machine. `context` is tokens per
    user, a number or text such as `128k`; `tp`, `dp`, `dcp` and `ep` are tensor, data, decode-context and expert parallelism, and what
    they leave of the devices is pipeline parallel; `usable` is bytes per device or text such as `102GiB`; `as_of` is today (UTC) unless
    given; `calibrated` is a file whose measured overhead is taken: an engine's log, or what `fitcheck calibrate --yaml` wrote. Raises a
    `fitcheck.errors.FitcheckError` for names and values that make no sense.
    """
    from fitcheck.fit.ask import fit_case
    from fitcheck.fit.solve import fit as answer

    day = as_of or datetime.now(UTC).date()
    catalogue = catalogue or load_catalogue()
    machine = find_machine(catalogue, cluster)
    case = fit_case(
        catalogue,
        _as_record(catalogue, model, day, checkpoint),
        cluster=machine,
        as_of=day,
        context=context,
        users=users,
        checkpoint=checkpoint,
        engine=engine,
        kv_dtype=kv_dtype,
        tp=tp,
        dp=dp,
        dcp=dcp,
        ep=ep,
        usable=usable,
        places=places,
        calibrated=_calibrated(catalogue, calibrated, day, machine),
    )
    return answer(case)


def _calibrated(catalogue: Catalogue, file: str | Path | None, day: date, cluster: str | ClusterSpec) -> Calibrated | None:
    if file is None:
        return None
    from pathlib import Path

    from fitcheck.sources.logs.calibrated import read_calibrated

    return read_calibrated(catalogue, Path(file), day, cluster)


def calibrate(
    *logs: str | Path,
    model: str | Model | ConfigModel | None = None,
    cluster: str | None = None,
    engine: str | None = None,
    checkpoint: str | None = None,
    source: str | None = None,
    as_of: date | None = None,
    catalogue: Catalogue | None = None,
) -> CalibrationReport:
    """A prediction beside what an engine printed, as `fitcheck calibrate` answers it.

    `logs` are files of one run: start-up logs and benchmark results. `model` is a name, a record or what `read_model` made of a config,
    where the log's own name is not in the catalogue. Raises a `fitcheck.errors.FitcheckError` for files that are no such logs.
    """
    from fitcheck.fit.calibrate import calibrate as answer

    return answer(
        calibration_case(
            catalogue or load_catalogue(),
            logs,
            day=as_of or datetime.now(UTC).date(),
            model=model,
            cluster=cluster,
            engine=engine,
            checkpoint=checkpoint,
            source=source,
        )
    )


def calibration_case(
    catalogue: Catalogue,
    logs: Sequence[str | Path],
    *,
    day: date,
    model: str | Model | ConfigModel | None = None,
    cluster: str | None = None,
    engine: str | None = None,
    checkpoint: str | None = None,
    source: str | None = None,
) -> CalibrationCase:
    """The case of some logs, with what was named beside them; raises as `calibrate` does."""
    from pathlib import Path

    from fitcheck.catalogue.lookup import find_engine
    from fitcheck.fit.calibrate_ask import calibration_case as case_of
    from fitcheck.sources.logs import read_logs
    from fitcheck.sources.logs.printed import printed_of, source_url

    named = find_engine(catalogue, engine).id if engine is not None else None
    files = [Path(log) for log in logs]
    return case_of(
        catalogue,
        printed_of(read_logs(files), named),
        as_of=day,
        source=source_url(source, files[0]),
        model=_as_record(catalogue, model, day, checkpoint) if model is not None else None,
        cluster=find_machine(catalogue, cluster) if cluster is not None else None,
        checkpoint=checkpoint,
        forced_kv_dtype=getattr(model, "forced_kv_dtype", None),
    )


def recommend(
    *,
    cluster: str,
    context: str | int | None = None,
    users: int = 1,
    engine: str | None = None,
    as_of: date | None = None,
    catalogue: Catalogue | None = None,
) -> RecommendReport:
    """Which models suit a cluster, best first, and what just misses, as `fitcheck recommend` answers it.

    `context` is tokens per user, a number or text such as `128k`; without it 32,768, or a model's maximum if smaller. Raises a
    `fitcheck.errors.FitcheckError` for names and values that make no sense.
    """
    from fitcheck.advise.ask import recommend_case
    from fitcheck.advise.recommend import recommend as answer

    day = as_of or datetime.now(UTC).date()
    catalogue = catalogue or load_catalogue()
    machine = find_machine(catalogue, cluster)
    return answer(recommend_case(catalogue, cluster=machine, as_of=day, context=context, users=users, engine=engine))


def find_machine(catalogue: Catalogue, cluster: str) -> str | ClusterSpec:
    """A cluster's text as it is, or the machine this runs on where it asks for that (`here`, `2xhere`).

    Raises `UsageError` where `here` is not one sort of accelerator, or a processor, with known memory.
    """
    if "here" not in cluster.lower():
        return cluster
    from fitcheck.sources.host import read_host
    from fitcheck.sources.host.edge import this_machine
    from fitcheck.sources.host.here import asks_for_here, cluster_of

    machines = asks_for_here(cluster)
    return cluster if machines is None else cluster_of(catalogue, read_host(this_machine()), machines, datetime.now(UTC).date())


def _as_record(catalogue: Catalogue, model: str | Model | ConfigModel, day: date, build: str | None = None) -> str | Model:
    """A model that `fit_case` can look up or take as it is; what lies elsewhere is read there, with the headers of `build`."""
    from pathlib import Path

    if isinstance(model, str) and _lies_elsewhere(catalogue, model, day):
        model = read_model(model, build=build)
    path = getattr(model, "path", None)
    if path is None:
        return model  # type: ignore[return-value]
    from fitcheck.sources.record import config_record

    return config_record(Path(path), day)


def _lies_elsewhere(catalogue: Catalogue, text: str, day: date) -> bool:
    """Whether a text names a model outside the catalogue, as `fitcheck fit` takes it."""
    if not text.strip():
        return False
    from fitcheck.catalogue.lookup import find_model
    from fitcheck.errors import UnknownId
    from fitcheck.sources.hub_names import looks_like_repository
    from fitcheck.sources.outside import is_explicit, is_outside

    if is_explicit(text):
        return True
    try:
        find_model(catalogue, text, day)
    except UnknownId:
        return is_outside(text) or looks_like_repository(text)
    return False


def price(rate: str, *, at: str | datetime, input: int, output: int, cached: int = 0, catalogue: Catalogue | None = None) -> PriceReport:
    """What a request costs at an instant, as `fitcheck rates price` answers it.

    `cached` is the part of `input` that is read from cache; `at` is an aware `datetime` or text with time and zone. Raises `UnknownId` for
    a rate nobody catalogued and `UnknownFact` before its first date.
    """
    from fitcheck.cost.ask import find_tariff, read_instant, read_request
    from fitcheck.cost.quote import quote

    moment = read_instant(at if isinstance(at, str) else at.isoformat())
    return quote(find_tariff(catalogue or load_catalogue(), rate), moment, read_request(input, output, cached))


def cost(
    *models: str | Model | ConfigModel, tokens: str | int, as_of: date | None = None, catalogue: Catalogue | None = None, **options: Any
) -> CostReport:
    """Rent or own, as `fitcheck cost` answers it; `models` are as for `fit`.

    `options` are those of the command (`profile`, `cluster`, `offpeak`, `schedule`, …).
    Raises a `FitcheckError` for names and values that make no sense.
    """
    from fitcheck.cost.ask import cost_case
    from fitcheck.cost.compare import cost as answer

    catalogue = catalogue or load_catalogue()
    if isinstance(options.get("cluster"), str):
        options["cluster"] = find_machine(catalogue, options["cluster"])
    day = as_of or datetime.now(UTC).date()
    case = cost_case(catalogue, [_as_record(catalogue, model, day) for model in models], tokens=tokens, as_of=day, **options)
    return answer(case)


def read_model(path_or_id: str | Path, *, build: str | None = None, offline: bool = False) -> Model | ConfigModel:
    """A model to ask about, read where it lies.

    A model of the catalogue by any of its names; a Hugging Face `config.json`, or a folder that holds no weights besides one; a folder
    with weights, a `.gguf` or `.safetensors` file, an address, `ollama:NAME`, or `org/name[@revision]` on a hub. Of several GGUF builds
    the one named `build` is read exactly. With `offline` the network is never used. Raises `UnknownId` for a name that is nothing of
    these, `DataError` for files that cannot be read, `NetworkError` for a server that does not answer.
    """
    from pathlib import Path

    text, path = str(path_or_id), Path(path_or_id)
    if not text.strip():
        from fitcheck.errors import UsageError

        raise UsageError("the model is empty", hint="name one, such as glm-5.3-flash")
    if path.suffix == ".json" and "://" not in text:
        from fitcheck.sources.config import read_config

        return read_config(path)
    from fitcheck.sources.outside import is_explicit, is_outside, open_outside

    day = datetime.now(UTC).date()
    if not is_explicit(text):
        from fitcheck.catalogue.lookup import find_model
        from fitcheck.errors import UnknownId
        from fitcheck.sources.hub_names import looks_like_repository

        try:
            return find_model(load_catalogue(), text, day)
        except UnknownId:
            if not is_outside(text) and not looks_like_repository(text):
                raise
    from fitcheck.sources.store_record import read_store

    with open_outside(text, offline=offline) as store:
        reading = read_store(store, day, build)
    return reading.model


def kv_memory(
    model: Model | ConfigModel | GgufModel,
    *,
    engine: str,
    context: int,
    users: int = 1,
    kv_dtype: str = "auto",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    **engine_settings: Any,
) -> Ledger:
    """Cache and state that an engine allocates on the fullest device for `users` sequences of `context` tokens; weights are not in it.

    `kv_dtype` is one name or `K/V`; `auto` is what the config's own quantisation asks for in engines that heed it (`HEEDS_BUILD`), which
    the model of a catalogue, being all of its builds, does not say. Settings with the engine's own names win over `context`, `users` and
    the degrees; the spellings of its command line and of its logs are understood too. Raises `UnknownFact` for what the architecture does
    not settle and for what a GGUF file lost that an engine other than llama.cpp needs, `UsageError` for settings that make no sense,
    `UnknownId` for an engine that is not modelled.
    """
    from fitcheck.errors import UnknownFact
    from fitcheck.fit.engines.base import LLAMA_CPP, Settings, allocator, check_told, module_of
    from fitcheck.fit.engines.base import Ledger as Terms
    from fitcheck.fit.engines.names import check_words, understood
    from fitcheck.fit.serving import HEEDS_BUILD
    from fitcheck.fit.state import kv_dtype as named_dtype

    if model.architecture is None:
        reasons = "; ".join(getattr(model, "unknown", ())) or "the architecture is not published"
        raise UnknownFact(f"{model.name}: {reasons}")
    check_words({"context": context, "users": users, "tp": tp, "pp": pp, "dp": dp, "dcp": dcp}, {"engine": engine, "kv_dtype": kv_dtype})
    allocate, module = allocator(engine), module_of(engine) or ""
    lost = getattr(model, "lost", ())
    if lost and module not in LLAMA_CPP:
        raise UnknownFact(f"{model.name}: its GGUF file does not say {lost[0]}", hint="the model's config.json, or its hub id")
    check_told(model.architecture, engine)
    own = getattr(model, "forced_kv_dtype", None) if kv_dtype == "auto" and engine in HEEDS_BUILD else None
    settings = Settings(context, users, named_dtype(own or kv_dtype), tp, pp, dp, dcp, engine_settings)
    return Terms(allocate(model.architecture, understood(settings, module)))
