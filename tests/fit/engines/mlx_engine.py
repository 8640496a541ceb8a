"""mlx-lm itself, asked what its caches hold: a program that runs where mlx-lm is installed.

Reads a JSON list of `[config, [asked, ...]]` from its standard input, builds each model of random BF16 weights with mlx-lm's own classes
and runs `generate_step` (one user) or the server's `BatchGenerator` (more) over a prompt of the whole context. Prints, for each asked,
`{"cache": bytes, "state": bytes}` after the call of the model when most is held, or `{"error": why}`.

Bytes are those of every array in every cache: keys, values, scales, states; not the few integers that a batch keeps of its positions.
"""

import json
import sys
from importlib import import_module

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import cache as caches
from mlx_lm.utils import _get_classes

generate = import_module("mlx_lm.generate")
"""By its path: the package has a function of that name."""

quantise = generate.maybe_quantize_kv_cache

mx.disable_compile()
"""Fused kernels are built by a C++ compiler on the CPU, which takes longer than the run."""

_gather_mm = mx.gather_mm


def _gather_wide(a, b, *args, **named):
    """The experts' product in FP32 and cut back: the CPU has no other, and no cache is in it."""
    return _gather_mm(a.astype(mx.float32), b.astype(mx.float32), *args, **named).astype(a.dtype)


mx.gather_mm = _gather_wide

POSITIONS = {"offset", "left_padding", "lengths", "_lengths", "_right_padding"}


def build(config):
    """The model that mlx-lm makes of a config, in BF16 but for what `convert` leaves as it is."""
    mx.random.seed(7)
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    keep = getattr(model, "cast_predicate", lambda _: True)
    cast = [
        (name, value.astype(mx.bfloat16) if keep(name) and mx.issubdtype(value.dtype, mx.floating) else value)
        for name, value in tree_flatten(model.parameters())
    ]
    model.load_weights(cast, strict=False)
    mx.eval(model.parameters())
    return model


def held(prompt_cache):
    """Bytes of growing caches and of fixed states."""
    total = {"cache": 0, "state": 0}

    def add(value, sort):
        if isinstance(value, mx.array):
            total[sort] += value.nbytes
        elif isinstance(value, dict):
            for each in value.values():
                add(each, sort)
        elif isinstance(value, (list, tuple)):
            for each in value:
                add(each, sort)
        elif hasattr(value, "__dict__"):
            fixed = isinstance(value, caches.ArraysCache)
            for name, each in vars(value).items():
                if name not in POSITIONS:
                    add(each, "state" if fixed else sort)

    add(list(prompt_cache), "cache")
    return total


def alone(model, asked):
    """The most that one request holds, before or after a check whether to quantise."""
    named = {name: value for name, value in asked.items() if name not in ("context", "users", "decode")}
    prompt_cache = caches.make_prompt_cache(model, named.pop("max_kv_size", None))
    decode = asked.get("decode", 0)
    seen = []

    def look(*_):
        seen.append(held(prompt_cache))

    def check(*checked, **how):
        look()
        quantise(*checked, **how)
        look()

    prompt = mx.arange(asked["context"] - decode) % 50 + 3
    generate.maybe_quantize_kv_cache = check
    for _ in generate.generate_step(prompt, model, max_tokens=decode, prompt_cache=prompt_cache, **named):
        pass
    mx.eval([each.state for each in prompt_cache])
    return max(seen, key=both)


def both(seen):
    """Caches and states together."""
    return seen["cache"] + seen["state"]


def together(model, asked):
    """The most that a batch of requests holds, between calls of the model."""
    named = {name: value for name, value in asked.items() if name not in ("context", "users")}
    batch = generate.BatchGenerator(model, max_tokens=1, **named)
    batch.insert([[3 + number % 50 for number in range(asked["context"])] for _ in range(asked["users"])])
    seen = []
    for _ in range(asked["context"] + 4):
        _, made = batch.next()
        seen.append(held([*batch._prompt_batch.prompt_cache, *batch._generation_batch.prompt_cache]))
        if made:
            break
    batch.close()
    return max(seen, key=both)


def answer(config, questions):
    """What the engine holds for each question, or why it does not run."""
    try:
        model = build(config)
    except Exception as error:
        return [{"error": f"{type(error).__name__}: {str(error)[:300]}"}] * len(questions)
    found = []
    for asked in questions:
        try:
            found.append((together if asked.get("users", 1) > 1 else alone)(model, asked))
        except Exception as error:
            found.append({"error": f"{type(error).__name__}: {str(error)[:300]}"})
    return found


if __name__ == "__main__":
    for line in sys.stdin:
        config, questions = json.loads(line)
        print(json.dumps(answer(config, questions)), flush=True)
