"""How devices and named clusters are listed and shown."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from fitcheck.catalogue.dated import in_force
from fitcheck.catalogue.hardware import Cluster, Device, Link, Overhead, Power, Price
from fitcheck.catalogue.provenance import BytesFigure
from fitcheck.units import GB, format_gib, gib
from fitcheck.views.document import Cell, Column, Document, Line, Table, cell, clean
from fitcheck.views.records import CITED, cited, known_by, plain_number, sources_table

_SCOPES = {"wall": "", "device": "the chip alone", "adapter": "the power supply"}
_KINDS = {"rental_per_hour": "rental"}


def hardware_list(devices: tuple[Device, ...], clusters: tuple[Cluster, ...], day: date) -> Document:
    """All devices and named clusters, with the prices in force on the day."""
    columns = (
        Column("device"),
        Column("names", rank=2, wrap=True),
        Column("sold", right=True, rank=1),
        Column("visible GiB", right=True),
        Column("GB/s", right=True, rank=2),
        Column("price", right=True, rank=3),
    )
    rows = tuple(
        (
            cell(device.id),
            cell(", ".join(device.aliases) or None),
            cell(_printed(device.memory.sold)),
            cell(f"{gib(device.memory.visible[0].value):,.2f}"),
            cell(_bandwidth(device)),
            cell(_amount(price) if (price := _price(device.prices, day)) else None),
        )
        for device in devices
    )
    named = tuple((cell(item.id), cell(f"{item.count}x {item.device}"), cell(item.joined_by)) for item in clusters)
    tables = (
        Table("devices", "Devices", columns, rows),
        Table("clusters", "Named clusters", (Column("cluster"), Column("devices"), Column("joined by", wrap=True, rank=1)), named),
    )
    return Document(f"{len(devices)} devices, {len(clusters)} clusters", tables, ("'fitcheck hardware ID' shows one with its sources",))


def _printed(figure: BytesFigure) -> str:
    return figure.printed or format_gib(figure.value)


def _bandwidth(device: Device) -> str | None:
    figure = device.memory.bandwidth_bytes_per_s
    return f"{figure.value / GB:,.0f}" if figure else None


def _price(prices: tuple[Price, ...], day: date) -> Price | None:
    """The latest list or street price in force: in US dollars, where there is one."""
    bought = [price for price in in_force(prices, day) if price.kind in ("list", "street")]
    return next((price for price in bought if price.currency == "USD"), bought[0] if bought else None)


def _amount(price: Price) -> str:
    return f"{plain_number(price.amount)} {price.currency}{'/h' if price.kind == 'rental_per_hour' else ''}"


def device_document(device: Device, day: date, note: str | None = None) -> Document:
    """One device: memory sold, visible, free and usable, overhead, power, prices, link, sources."""
    parts: list[Line | Table] = [*_device_facts(device, day), _memory_table(device)]
    if device.usable:
        parts.append(_usable_table(device))
    if device.overhead:
        parts.append(_overhead_table(device))
    if device.power:
        parts.append(_power_table(device.power))
    if device.prices:
        parts.append(_price_table("prices", f"Prices, as of {day.isoformat()}", device.prices, day))
    parts.append(sources_table(device.sources))
    return Document(clean(device.name), tuple(parts), tuple(clean(text) for text in (note, device.note) if text))


def _device_facts(device: Device, day: date) -> Iterator[Line]:
    memory = device.memory
    yield Line("id", clean(device.id))
    if device.aliases:
        yield Line("names", clean(", ".join(device.aliases)))
    yield Line("maker", clean(device.maker))
    yield Line("chip", device.chip)
    for name in device.detected_as:
        yield Line("detected", clean(f"as {name.name} ({'PCI device' if name.by == 'pci' else 'driver'}) {known_by(name)}"))
    if device.variant_of:
        yield Line("build of", clean(f"{device.variant_of}: what is not listed here is as there ('fitcheck hardware {device.variant_of}')"))
    shared = "one memory for processor and accelerator" if memory.unified else "memory of its own"
    shared = "the system's memory, in which the processor computes" if device.chip == "cpu" else shared
    yield Line("memory", clean(f"{_printed(memory.sold)} sold, {format_gib(memory.visible[0].value)} visible to software, {shared}"))
    if memory.bandwidth_bytes_per_s:
        yield Line("bandwidth", clean(f"{_bandwidth(device)} GB/s {known_by(memory.bandwidth_bytes_per_s)}"))
    price = _price(device.prices, day)
    words = f"{_amount(price)}, the {price.kind} price since {price.since} {known_by(price)}" if price else "not known"
    yield Line("price", clean(f"{words}, on {day.isoformat()}"))
    if device.link:
        yield Line("link", _link_words(device.link))


def _link_words(link: Link) -> str:
    measured = f", {link.measured_bytes_per_s / GB:,.2f} GB/s measured" if link.measured_bytes_per_s else ""
    note = f"; {link.note}" if link.note else ""
    return clean(f"{link.name}: {link.bytes_per_s / GB:,.1f} GB/s one way{measured} {known_by(link)}{note}")


def _memory_table(device: Device) -> Table:
    memory = device.memory
    rows = [("sold", memory.sold), ("visible", memory.visible[0])]
    rows += [("visible, others", figure) for figure in memory.visible[1:]]
    rows += [("free at boot", figure) for figure in memory.free_at_boot]
    rows += [("reclaimable", memory.reclaimable)] if memory.reclaimable else []
    columns = (Column("memory"), Column("size", right=True), Column("bytes", right=True, rank=2), *CITED)
    cells = tuple((cell(name), cell(_printed(figure)), cell(f"{figure.value:,}"), *cited(figure)) for name, figure in rows)
    return Table("memory", "Memory", columns, cells)


def _usable_table(device: Device) -> Table:
    visible = device.memory.visible[0].value
    columns = (Column("engine"), Column("share", right=True), Column("usable", right=True), *CITED)
    rows = tuple(
        (cell(share.engine), cell(f"{share.fraction:f}"), cell(format_gib(int(visible * share.fraction))), *cited(share))
        for share in device.usable
    )
    return Table("usable", f"Usable: the share of the visible {format_gib(visible)} that an engine takes", columns, rows)


def _overhead_table(device: Device) -> Table:
    columns = (Column("engine"), Column("GiB", right=True), Column("seen GiB"), *CITED)
    rows = []
    for figure in device.overhead:
        low, high = (f"{gib(end.value):,.2f}" if end else None for end in (figure.low, figure.high))
        span = f"{low} to {high}" if low and high else f"from {low}" if low else f"to {high}" if high else None
        rows.append((cell(_overhead_owner(figure)), cell(f"{gib(figure.value):,.2f}"), cell(span), *cited(figure)))
    return Table("overhead", "Overhead: what an engine holds besides weights and state", columns, tuple(rows))


def _overhead_owner(figure: Overhead) -> str:
    """The engine, with the versions and the number of devices that the figure is of."""
    words = figure.engine + (f" before {figure.until_version}" if figure.until_version else "")
    return words + (f", {figure.devices} devices" if figure.devices and figure.devices > 1 else ", one device" if figure.devices else "")


def _power_table(power: tuple[Power, ...]) -> Table:
    columns = (Column("state"), Column("W", right=True), Column("condition", wrap=True, width=16), *CITED)
    rows = tuple((cell(one.state), cell(plain_number(one.value)), cell(_condition(one)), *cited(one)) for one in power)
    return Table("power", "Power in watts, at the wall unless it says otherwise", columns, rows)


def _condition(power: Power) -> str | None:
    return ", ".join(words for words in (power.condition, _SCOPES[power.scope]) if words) or None


def _price_table(key: str, title: str, prices: tuple[Price, ...], day: date) -> Table:
    columns = (Column("price", right=True), Column("kind"), Column("from"), Column("until", rank=2), Column("seller", rank=3), *CITED)
    held = in_force(prices, day)
    rows = tuple(_price_row(price, in_force=price in held) for price in sorted(prices, key=lambda price: price.since))
    return Table(key, title, columns, rows)


def _price_row(price: Price, *, in_force: bool) -> tuple[Cell, ...]:
    amount = cell(_amount(price), "strong" if in_force else "plain")
    return (amount, cell(_KINDS.get(price.kind, price.kind)), cell(price.since), cell(price.until), cell(price.seller), *cited(price))


def cluster_document(cluster: Cluster, device: Device, day: date) -> Document:
    """A named cluster: what joins its devices, what that costs, what they draw together."""
    memory = device.memory
    parts: list[Line | Table] = [
        Line("id", clean(cluster.id)),
        Line("devices", clean(f"{cluster.count}x {device.id} ({device.name})")),
        Line("joined by", clean(cluster.joined_by)),
        Line("memory", clean(f"{_printed(memory.sold)} sold, {format_gib(memory.visible[0].value)} visible to software on each device")),
    ]
    if cluster.aliases:
        parts.insert(1, Line("names", clean(", ".join(cluster.aliases))))
    link = cluster.link or device.link
    if link:
        parts.append(Line("link", _link_words(link)))
    if cluster.default:
        parts.append(Line("meant by", clean(f"{cluster.count}x{device.id}, where nothing else is said")))
    if cluster.extras:
        title = f"Prices of what joins them, as of {day.isoformat()}"
        parts.append(_price_table("extras", title, cluster.extras, day))
    if cluster.power:
        parts.append(_power_table(cluster.power))
    parts.append(sources_table(cluster.sources))
    more = f"'fitcheck hardware {device.id}' shows one of the devices"
    return Document(clean(cluster.name), tuple(parts), tuple(clean(text) for text in (cluster.note, more) if text))
