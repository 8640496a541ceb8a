"""One small change to good.yaml for each rule: what is written instead, and the line (by its text) at which lint must say so."""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """`old` stands in good.yaml exactly once. `at` is a piece of the line of the finding; without it, the first line of `new`."""

    id: str
    old: str
    new: str
    at: str = ""


_SECOND_DEVICE = "\n  device: pier-one\n  count: 3\n  joined_by: three cables\n"

MUTATIONS = (
    # the text
    Mutation("FC001", "name: Tern 8B\n  developer", "name: Tern: 8B\n  developer"),
    Mutation("FC002", "  maker: Quayside\n", "  maker: Quayside\n  maker: Bollard\n", "maker: Bollard\n  chip: nvidia\n  aliases"),
    Mutation("FC002", "pier-two:\n", "pier-one:\n", "pier-one:\n  kind: device\n  name: Pier Two"),
    Mutation("FC003", "maker: Bollard", "maker: Bollard\n  builder: Bollard", "builder:"),
    Mutation("FC003", "  maker: Bollard\n", "", "pier-two:"),
    Mutation("FC003", "count: 2\n  joined_by", "count: two\n  joined_by"),
    Mutation("FC003", 'value: "117 GiB"', 'value: "117 Gigs"'),
    Mutation("FC003", 'start: "09:00"', "start: 9"),
    Mutation("FC003", 'start: "09:00"', 'start: "9 am"'),
    Mutation("FC003", 'from: "2026-07-01T00:00Z"\n      offpeak', "from: 2026\n      offpeak"),
    Mutation("FC003", 'from: "2026-07-01T00:00Z"\n      offpeak', 'from: "2026-07-01"\n      offpeak'),
    Mutation("FC003", "aliases: [pier, p1]\n", "id: pier-uno\n  aliases: [pier, p1]\n"),
    Mutation("FC003", "chat:\n", "talk: 7\nchat:\n"),
    Mutation("FC003", "low_tok_per_s: 40,", "low_tok_per_s: 45,"),
    Mutation("FC004", 'released: {value: "2026-06", source: card}', "released: {value: *day, source: card}"),
    Mutation("FC005", "kind: cluster\n  name: Jetty ring", "kind: flotilla\n  name: Jetty ring"),
    Mutation("FC005", "  kind: cluster\n  name: Jetty ring", "  name: Jetty ring", "jetty-ring:"),
    Mutation("FC005", "kind: cluster\n  name: Jetty ring", 'kind: "cluster"\n  name: Jetty ring'),
    Mutation("FC006", "fraction: 0.9,", 'fraction: "1e-400",'),
    Mutation("FC006", "stored: {value: 8500000000,", "stored: {value: 85000000000000000000,"),
    Mutation("FC007", "name: Pier Two", 'name: "Pier \\x1b[31mTwo"'),
    Mutation("FC007", "name: Pier Two", "name: Pier \u202eowT"),
    Mutation("FC009", "aliases: [gull]", "aliases:\n    - gull", "- gull"),
    Mutation("FC009", "  provider: buoy\n", '  "provider": buoy\n'),
    # sources and references
    Mutation("FC101", "fraction: 0.87, source: boot", "fraction: 0.87, source: bot"),
    Mutation("FC101", "fraction: 0.87, source: boot", "fraction: 0.87"),
    Mutation("FC101", "fraction: 0.87, source: boot", "fraction: 0.87, source: []"),
    Mutation(
        "FC102",
        "  source: notice\n  sources:\n",
        '  source: notice\n  sources:\n    extra: {url: "https://example.org/x", read: "2026-11-01"}\n',
        "extra:",
    ),
    Mutation("FC103", "https://example.org/tern-8b-nvfp4", "https://example.org/tern-8b", "quant: {url"),
    Mutation("FC104", "model: tern-8b\n", "model: tern-8\n", "model: tern-8\n"),
    Mutation("FC104", "{model: tern-8b, source: page}", "{model: tern-8, source: page}"),
    Mutation("FC105", "checkpoint: nvfp4\n", "checkpoint: nvfp5\n"),
    Mutation("FC106", "device: pier-one\n  count: 2\n  joined_by", "device: pier-won\n  count: 2\n  joined_by"),
    Mutation("FC106", "device: pier-one\n  count: 2\n  engine", "device: pier-won\n  count: 2\n  engine"),
    Mutation("FC106", "variant_of: pier-one", "variant_of: pier-won"),
    Mutation("FC107", "engine: gullrun, fraction", "engine: gulrun, fraction"),
    Mutation("FC107", "engine: gullrun\n  setup", "engine: gulrun\n  setup"),
    Mutation("FC107", "engine: gullrun\n      value", "engine: gulrun\n      value"),
    Mutation("FC107", "devices: 2, engine: gullrun", "devices: 2, engine: gulrun"),
    Mutation("FC108", "schedule: buoy-peak", "schedule: buoy-peek"),
    Mutation("FC109", "holidays: harbour-days", "holidays: harbor-days"),
    Mutation("FC110", "successors: [nvfp4]", "successors: [nvfp5]"),
    Mutation("FC110", "successors: [nvfp4]", "successors: [nvfp4-broken]"),
    Mutation("FC111", "jetty-ring:", "p-1:"),
    Mutation("FC111", 'until: "2026-06-01"', 'until: "2026-06-02"', 'name: tern-fast, status: effective, from: "2026-06-01"'),
    Mutation("FC112", "jetty-ring:", "Jetty.Ring:"),
    Mutation("FC113", "    - id: bf16\n", "    - id: nv-fp4\n", "- id: nvfp4\n"),
    Mutation("FC114", "formats: [bf16, nvfp4]", "formats: [nvfp4]", "format: bf16"),
    # models
    Mutation(
        "FC201",
        "value: 16000000000, source: card",
        "value: 160000000000, source: card",
        "components:\n        - {kind: weights, value: 160000000000",
    ),
    Mutation(
        "FC202",
        "value: 16000000000, source: card",
        "value: 8000000000, source: card",
        "components:\n        - {kind: weights, value: 8000000000",
    ),
    Mutation("FC203", "bits_per_weight: {value: 4.5", "bits_per_weight: {value: 3.5"),
    Mutation("FC204", "{kind: recurrent, layers: 24,", "{kind: recurrent, layers: 23,", "groups:"),
    Mutation("FC204", "{kind: indexer, layers: 8,", "{kind: indexer, layers: 33,"),
    Mutation("FC205", "active: {value: 2000000000", "active: {value: 9000000000"),
    Mutation("FC205", "stored: {value: 8500000000", "stored: {value: 7900000000", "total: {value: 8000000000"),
    Mutation("FC206", 'from: "2026-04-01", source: quant', 'from: "2026-04-01", successors: [nvfp4], source: quant'),
    Mutation("FC207", ', note: "repeats tokens"', "", "status: withdrawn, from"),
    Mutation("FC208", 'status: withdrawn, from: "2026-05"', 'status: withdrawn, from: "2026-04-01"'),
    Mutation("FC209", 'from: "2026-03-10", until: "2026-06-01"', 'from: "2026-03-10", until: "2026-03-10"'),
    Mutation("FC210", "bits_per_weight: {value: 4.5", "bits_per_weight: {value: 4.1"),
    Mutation("FC210", '{value: "2.2 GiB", devices: 2', '{value: "2.25 GiB", devices: 2'),
    Mutation("FC210", '{value: "121.7 GiB", source: sheet}', '{value: "128 GiB", source: sheet}'),
    Mutation("FC211", 'printed: "121.69 GiB"', 'printed: "121.69 GB"'),
    Mutation("FC211", 'printed: "121.69 GiB"', 'printed: "121.71 GiB"'),
    Mutation("FC212", "state: idle, value: 25", "state: idle, value: 0"),
    Mutation(
        "FC212",
        "- {kind: drafter, value: 100000000,",
        "- {kind: vision, value: 100000000, source: card}\n        - {kind: drafter, value: 0,",
        "value: 0, source: quant}\n      resident",
    ),
    # prices
    Mutation("FC301", 'until: "2026-07-01T00:00Z"', 'until: "2026-07-01T00:01Z"', '- from: "2026-07-01T00:00Z"\n      offpeak'),
    Mutation("FC301", "status: withdrawn\n      offpeak", "status: effective\n      offpeak", '- from: "2026-08-01T00:00Z"'),
    Mutation(
        "FC302",
        "status: withdrawn\n      offpeak",
        "status: withdrawn\n      promotion: true\n      offpeak",
        '- from: "2026-08-01T00:00Z"',
    ),
    Mutation("FC303", "input_per_mtok: 0.05, cached_input_per_mtok: 0.01", "input_per_mtok: 0.05, cached_input_per_mtok: 0.06"),
    Mutation("FC303", "cached_input_per_mtok: 0.04", "cached_input_per_mtok: 0.21"),
    Mutation("FC303", "cached_input_per_mtok: 0.12", "cached_input_per_mtok: 0.61"),
    Mutation("FC304", "output_per_mtok: 1.00", "output_per_mtok: 0.49"),
    Mutation("FC305", "output_per_mtok: 1.50", "output_per_mtok: 0", "output_per_mtok: 0}"),
    Mutation("FC305", "amount: 4699", "amount: 0.0"),
    Mutation(
        "FC306",
        'from: "2026-07-01T00:00Z"\n      windows',
        'from: "2026-06-01T00:00Z"\n      windows',
        'from: "2026-06-01T00:00Z"\n      windows:\n',
    ),
    Mutation("FC307", "timezone: Asia/Shanghai", "timezone: Asia/Beijing"),
    Mutation("FC307", "timezone: Asia/Shanghai", "timezone: ../etc/passwd"),
    Mutation("FC307", "timezone: Asia/Shanghai", "timezone: Asia"),
    Mutation("FC308", 'end: "18:00"', 'end: "09:00"'),
    Mutation("FC309", '- "2026-10-02"', '- "2026-10-01"', '- "2026-10-01"\n  known_until'),
    Mutation("FC310", 'known_until: "2026-12-31"', 'known_until: "2026-10-01"', '- "2026-10-02"'),
    Mutation("FC311", "above_input_tokens: 65536", "above_input_tokens: 32768", "above_input_tokens: 32768, input_per_mtok: 0.60"),
    Mutation("FC312", '    - from: "2026-06-01T00:00Z"\n      until', "    - until", '- until: "2026-07-01T00:00Z"'),
    Mutation("FC312", 'amount: 3999, from: "2026-01-10"', 'amount: 3999, from: "2026-01-10", until: "2026-01-09"'),
    Mutation("FC313", '{model: plover-9b, from: "2026-10-01T00:00Z", source', "{model: plover-9b, source"),
    Mutation("FC314", 'from: "2026-02-20"', 'from: "2026-01-10"', "amount: 4699"),
    # devices, clusters, engines
    Mutation("FC401", '{value: "121.7 GiB", source: sheet}', '{value: "140 GiB", source: sheet}'),
    Mutation("FC402", 'value: "117 GiB"', 'value: "122 GiB"'),
    Mutation(
        "FC403",
        "    - {engine: gullrun, fraction: 0.87, source: boot}\n",
        "    - {engine: gullrun, fraction: 0.87, source: boot}\n" * 2,
        "- {engine: gullrun, fraction: 0.87, source: boot}\n  overhead",
    ),
    Mutation(
        "FC404",
        'sold: {value: "128 GB", source: sheet}\n    visible:\n      - {value: "121.7',
        'sold: {value: "192 GB", source: sheet}\n    visible:\n      - {value: "121.7',
    ),
    Mutation("FC405", "variant_of: pier-one", "variant_of: pier-two"),
    Mutation("FC406", _SECOND_DEVICE, _SECOND_DEVICE.replace("3", "2") + "  default: true\n", "default: true\n  sources: {}\ngullrun"),
    Mutation("FC407", "fraction: 0.87, source: boot", "fraction: 0.999, source: boot"),
    Mutation("FC408", 'low: {value: "0.4 GiB"', 'low: {value: "3.4 GiB"', 'value: "3.1 GiB"'),
    Mutation("FC409", "engine: gullrun, fraction", "engine: skua, fraction"),
    # recipes
    Mutation("FC501", "context_tokens: 65536", "context_tokens: 131073"),
    Mutation("FC502", "tp: 2\n", "tp: 4\n"),
    Mutation("FC503", 'date: "2026-05-20"', 'date: "2026-03-09"'),
    Mutation("FC504", "{phase: decode, users: 8,", "{phase: decode, users: 8, headline: true,"),
    Mutation("FC505", "{phase: decode, users: 8,", "{phase: decode, users: 1,"),
    Mutation("FC506", 'kv_bytes_per_device: "8 GiB"', 'kv_bytes_per_device: "8 TiB"'),
    Mutation("FC506", 'usable_bytes: "110 GiB"', 'usable_bytes: "122 GiB"'),
    Mutation("FC507", "engine: gullrun\n  setup", "engine: skua\n  setup"),
    Mutation("FC508", "engine: gullrun\n  setup", "engine: petrel\n  setup", "checkpoint: nvfp4"),
)
