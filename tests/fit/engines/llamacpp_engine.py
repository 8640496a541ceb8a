"""llama.cpp itself, as PyPI's `xllamacpp` carries it: what a context of a model takes, without allocating it.

Run as a program, in a process of its own, since an assertion of the engine ends the process: reads from standard input a list of
`[file, [settings, …]]`, writes a list of the same shape with the bytes of caches and states, or None where the engine refuses.
The C functions and structures are those of `include/llama.h`; `llama_model_init_from_user` makes the tensors that a file's metadata
asks for, `no_alloc` keeps them from being allocated, and `llama_get_memory_breakdown` (`src/llama-ext.h`) tells what they would take.
"""

import ctypes
import json
import sys
from pathlib import Path

TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "iq4_nl": 20, "bf16": 30}
FLASH = {"auto": -1, "off": 0, "on": 1}
DEFAULTS = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "type_k": 1,
    "type_v": 1,
    "offload_kqv": True,
    "kv_unified": False,
}
BREAKDOWN = "_Z26llama_get_memory_breakdownPK13llama_context"

void, int32, uint32, size, flag, number = (
    ctypes.c_void_p,
    ctypes.c_int32,
    ctypes.c_uint32,
    ctypes.c_size_t,
    ctypes.c_bool,
    ctypes.c_float,
)


def fields(kind, names):
    return [(name, kind) for name in names.split()]


class ModelParams(ctypes.Structure):
    _fields_ = [
        *fields(void, "devices tensor_buft_overrides"),
        *fields(int32, "n_gpu_layers split_mode load_mode lazy_mode main_gpu"),
        *fields(void, "tensor_split progress_callback progress_callback_user_data kv_overrides"),
        *fields(flag, "vocab_only check_tensors use_extra_bufts no_host no_alloc load_mtp"),
    ]


class ContextParams(ctypes.Structure):
    _fields_ = [
        *fields(uint32, "n_ctx n_batch n_ubatch n_seq_max n_rs_seq n_outputs_max n_outputs_max_per_seq"),
        *fields(int32, "n_threads n_threads_batch ctx_type rope_scaling_type pooling_type attention_type flash_attn_type"),
        *fields(number, "rope_freq_base rope_freq_scale yarn_ext_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow"),
        *fields(uint32, "yarn_orig_ctx"),
        *fields(number, "defrag_thold"),
        *fields(void, "cb_eval cb_eval_user_data"),
        *fields(int32, "type_k type_v"),
        *fields(size, "moe_cache_size"),
        *fields(void, "abort_callback abort_callback_data"),
        *fields(flag, "embeddings offload_kqv no_perf op_offload swa_full kv_unified"),
        *fields(void, "samplers"),
        *fields(size, "n_samplers"),
        *fields(void, "ctx_other"),
    ]


class FileParams(ctypes.Structure):
    _fields_ = [("no_alloc", flag), ("ctx", void)]


set_tensor = ctypes.CFUNCTYPE(None, void, void)
write_log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, void)


@set_tensor
def leave(_tensor, _data):
    """No tensor has memory, so none is filled."""


@write_log
def silence(_level, _text, _data):
    """The log is not read."""


SIGNATURES = {
    "llama_model_default_params": (ModelParams, []),
    "llama_context_default_params": (ContextParams, []),
    "gguf_init_from_file": (void, [ctypes.c_char_p, FileParams]),
    "llama_model_init_from_user": (void, [void, set_tensor, void, ModelParams]),
    "llama_init_from_model": (void, [void, ContextParams]),
    "llama_log_set": (None, [write_log, void]),
    "llama_free": (None, [void]),
    "llama_model_free": (None, [void]),
    "gguf_free": (None, [void]),
    BREAKDOWN: (None, [void, void]),
}


def library():
    import xllamacpp

    found = ctypes.CDLL(str(next(Path(xllamacpp.__file__).parent.glob("xllamacpp*.so"))))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    found.llama_log_set(silence, None)
    found.llama_backend_init()
    return found


def usable(llama):
    """Whether the structures above are those of this build: its defaults are where we look for them."""
    defaults = llama.llama_context_default_params()
    return all(getattr(defaults, name) == value for name, value in DEFAULTS.items()) and defaults.ctx_other is None


def context_bytes(llama, context):
    """The sum over a `std::map<buffer type, {model, context, compute}>`: nodes of colour, parent, left, right, key, value (libstdc++)."""
    header = (ctypes.c_uint64 * 6)()
    getattr(llama, BREAKDOWN)(ctypes.addressof(header), context)

    def word(address):
        return ctypes.c_uint64.from_address(address).value

    def total(node):
        return word(node + 48) + total(word(node + 16)) + total(word(node + 24)) if node else 0

    return total(header[2])


def sizes(llama, file, asked):
    metadata = llama.gguf_init_from_file(file.encode(), FileParams(True, None))
    params = llama.llama_model_default_params()
    params.no_alloc = params.load_mtp = True
    model = metadata and llama.llama_model_init_from_user(metadata, leave, None, params)
    if not model:
        return None
    found = []
    for settings in asked:
        wanted = llama.llama_context_default_params()
        wanted.swa_full = False
        for name, value in settings.items():
            if name == "fa":
                wanted.flash_attn_type = FLASH[value]
            else:
                setattr(wanted, name, TYPES[value] if name.startswith("type_") else value)
        context = llama.llama_init_from_model(model, wanted)
        found.append(context_bytes(llama, context) if context else None)
        if context:
            llama.llama_free(context)
    llama.llama_model_free(model)
    llama.gguf_free(metadata)
    return found


def main():
    llama = library()
    if not usable(llama):
        sys.exit("xllamacpp's structures are not those of include/llama.h at build 11549")
    print(json.dumps([sizes(llama, file, asked) for file, asked in json.load(sys.stdin)]))


if __name__ == "__main__":
    main()
