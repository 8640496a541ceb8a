"""What a matrix takes in the formats of safetensors checkpoints: weights, scales and zero points.

Layouts: DeepSeek-V3 `inference/fp8_cast_bf16.py` (`weight_scale_inv`, FP32, one for each block); vLLM 0.33.0 `layers/quantization/`
(`fp8.py`, `awq.py`, `gptq.py`, `modelopt.py`, `mxfp4.py`); AutoAWQ `modules/linear/gemm.py`; compressed-tensors 0.15
`compressors/` (`pack_quantized`, `nvfp4_pack_quantized`, `mxfp4_pack_quantized`); exllamav3 0.0.20 `modules/quant/exl3.py`.
"""

from __future__ import annotations

from fitcheck.frozen import frozen


@frozen
class Scheme:
    """How a matrix is stored.

    `kind` is one of `bf16`, `fp8`, `int`, `nvfp4`, `mxfp4`, `mxfp8`, `exl3`. `bits` are those of an element, `group` how many elements of a
    row share a scale, `block` the rows x columns that share one in FP8 (one scale a row where it is absent and `per_row`, else one in all),
    `scale_bytes` the size of a scale. `zeros` are packed zero points; `extra_bytes` what a matrix has once (global scales, a shape),
    `column_bytes` what each column has (GPTQ's `g_idx`).
    """

    kind: str
    bits: int = 16
    group: int = 0
    block: tuple[int, int] | None = None
    per_row: bool = False
    scale_bytes: int = 2
    zeros: bool = False
    extra_bytes: int = 0
    column_bytes: int = 0

    @property
    def name(self) -> str:
        """As it is shown: `fp8 128x128`, `int4 group 128`."""
        if self.block:
            return f"{self.kind} {self.block[0]}x{self.block[1]}"
        if self.kind == "int":
            return f"int{self.bits} group {self.group}"
        return f"{self.kind} {self.bits} bit" if self.kind == "exl3" else self.kind

    def size(self, rows: int, columns: int) -> int:
        """Bytes of a matrix with its scales."""
        elements = -(-rows * columns * self.bits // 8)
        return elements + self._scales(rows, columns) + self.extra_bytes + self.column_bytes * columns

    def _scales(self, rows: int, columns: int) -> int:
        if self.block:
            return self.scale_bytes * -(-rows // self.block[0]) * -(-columns // self.block[1])
        if self.group:
            groups = rows * -(-columns // self.group)
            return self.scale_bytes * groups + (-(-groups * self.bits // 8) if self.zeros else 0)
        return self.scale_bytes * rows if self.per_row else 0


BF16 = Scheme("bf16")
F32 = Scheme("f32", bits=32)
FP8_ROW = Scheme("fp8", bits=8, per_row=True)
"""compressed-tensors `FP8_DYNAMIC`: a BF16 scale for each row."""
FP8_TENSOR = Scheme("fp8", bits=8, extra_bytes=8)
"""ModelOpt `FP8` and Mistral's: an FP32 scale of the weights and one of the input."""
NVFP4 = Scheme("nvfp4", bits=4, group=16, scale_bytes=1, extra_bytes=8)
"""An FP8 scale for every 16 elements; `weight_scale_2` and `input_scale` in FP32."""
MXFP4 = Scheme("mxfp4", bits=4, group=32, scale_bytes=1)
MXFP8 = Scheme("mxfp8", bits=8, group=32, scale_bytes=1)


def fp8_block(block: tuple[int, int] = (128, 128), scale_bytes: int = 4) -> Scheme:
    """FP8 with a scale for each block, FP32 but in DeepSeek V4 (E8M0)."""
    return Scheme("fp8", bits=8, block=block, scale_bytes=scale_bytes)


def awq(bits: int = 4, group: int = 128, *, zero_point: bool = True) -> Scheme:
    """AWQ (`qweight`, `qzeros` in INT32, `scales` in FP16): AutoAWQ always stores zero points."""
    return Scheme("int", bits=bits, group=group, zeros=zero_point)


def gptq(bits: int = 4, group: int = 128) -> Scheme:
    """GPTQ: as AWQ, with the group of each column (`g_idx`, INT32)."""
    return Scheme("int", bits=bits, group=group, zeros=True, column_bytes=4)


def packed(bits: int, group: int, *, symmetric: bool = True) -> Scheme:
    """compressed-tensors `pack-quantized`: INT32 words, BF16 scales, `weight_shape`; zero points only where it is not symmetric."""
    return Scheme("int", bits=bits, group=group, zeros=not symmetric, extra_bytes=8)


def exl3(bits: int) -> Scheme:
    """EXL3: a trellis of whole bits, and FP16 signs for each row and column (`suh`, `svh`)."""
    return Scheme("exl3", bits=bits, per_row=True, column_bytes=2)
