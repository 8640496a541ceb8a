"""llama.cpp's own log, as PyPI's `xllamacpp` prints it. Run as a program, in a process of its own.

`contexts`: reads `[file, [settings, …]]` pairs from standard input and writes a list of the same shape with what is printed when each
context is set up (nothing is allocated, as in `tests/fit/engines/llamacpp_engine.py`). `server FILE N_CTX PARALLEL TYPE`: starts a server
on a model with its weights; the log goes to standard error.
"""

import json
import os
import sys

from tests.fit.engines import llamacpp_engine as engine


def contexts(llama):
    printed = []

    @engine.write_log
    def keep(_level, text, _data):
        printed.append(text.decode(errors="replace"))

    llama.llama_log_set(keep, None)
    found = []
    for file, asked in json.load(sys.stdin):
        logs = []
        for settings in asked:
            printed.clear()
            ran = engine.sizes(llama, file, [settings])
            logs.append("".join(printed) if ran and ran[0] is not None else None)
        found.append(logs)
    print(json.dumps(found))


def server(file, n_ctx, parallel, cache_type):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = file
    params.n_ctx, params.n_parallel = int(n_ctx), int(parallel)
    params.verbosity, params.warmup = 5, False
    params.cache_type_k = params.cache_type_v = getattr(xllamacpp.ggml_type, f"GGML_TYPE_{cache_type.upper()}")
    started = xllamacpp.Server(params)
    assert started
    os._exit(0)  # it has printed all there is; shutting the server down in order may hang


if __name__ == "__main__":
    if sys.argv[1] == "contexts":
        contexts(engine.library())
    else:
        server(*sys.argv[2:])
