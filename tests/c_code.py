"""C files that fmilin wrote, compiled and run: in this process, as 32-bit code, and on an ARM that qemu plays."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from fmilin.signals import FloatArray

WARNINGS = (
    *(
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Wsign-conversion",
        "-Wdouble-promotion",
        "-Wshadow",
    ),
    *("-Wcast-qual", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wundef", "-Werror"),
)
HAS_ZIG = importlib.util.find_spec("ziglang") is not None
ZIG = (sys.executable, "-m", "ziglang", "cc")  # clang, and a linker for many processors
COMPILERS = [
    pytest.param(("gcc",), marks=pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc"), id="gcc"),
    pytest.param(ZIG, marks=pytest.mark.skipif(not HAS_ZIG, reason="ziglang is not installed"), id="clang"),
]
BARE = ("-O1", "-ffreestanding", "-nostdlib", "-static")
PLACES = {  # how to compile without a C library, and what runs it
    "x86": ((*BARE, "-m32", "-fno-pie", "-no-pie", "-fno-stack-protector", "-fno-tree-loop-distribute-patterns"), ()),
    "arm": ((*BARE, "-target", "arm-freestanding-eabihf", "-mcpu=cortex_a9"), ("qemu-arm",)),
}
_SERVE = """
#include "{file}"
static long call(long number, long a, const void *b, long c)
{{
    long result;
#ifdef __arm__
    register long r7 __asm__("r7") = number;
    register long r0 __asm__("r0") = a;
    register const void *r1 __asm__("r1") = b;
    register long r2 __asm__("r2") = c;
    __asm__ volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
    result = r0;
#else
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
#endif
    return result;
}}
#ifdef __arm__ /* what clang calls where there is no C library */
void __aeabi_memclr8(void *to, __SIZE_TYPE__ size)
{{
    for (volatile unsigned char *at = to; size > 0; size--) *at++ = 0;
}}
void __aeabi_memcpy8(void *to, const void *from, __SIZE_TYPE__ size)
{{
    const unsigned char *source = from;
    for (volatile unsigned char *at = to; size > 0; size--) *at++ = *source++;
}}
#endif
/* Reads a whole row: a pipe may give a part of one, up to the end of what its writer has filled so far. */
static int read_row(void *to, long size)
{{
    long got = 0, more = 1;

    while (got < size && more > 0) {{
        more = call(3, 0, (char *)to + got, size - got);
        got += more > 0 ? more : 0;
    }}
    return got == size;
}}
void _start(void);
void _start(void)
{{
    static {name} one;
    static {real} in[{inputs}], out[{outputs}];
    {name}_init(&one);
    while (read_row(in, (long)sizeof in)) {{
        {name}_step(&one, in, out);
        call(4, 1, out, (long)sizeof out);
    }}
    call(1, 0, (void *)0, 0);
    for (;;) {{}}
}}
"""


def compiled(file: Path, *flags: str, compiler: Sequence[str] = ("gcc",)) -> Path:
    """Compile without a warning; return the object file."""
    built = file.with_suffix(".o")
    command = [*compiler, *WARNINGS, *(flags or ("-O1",)), "-c", file.name, "-o", built.name]
    answer = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    return built


class CCode:
    """A compiled file, loaded into this process; each has a struct of its own."""

    def __init__(self, file: Path) -> None:
        built, text = file.with_suffix(".so"), file.read_text("ascii")
        command = ["gcc", *WARNINGS, "-O1", "-fPIC", "-shared", file.name, "-o", built.name]
        command += ["-lm"] if "math.h" in text else []
        subprocess.run(command, cwd=file.parent, check=True)
        library = ctypes.CDLL(str(built))
        self._init, self._step = (getattr(library, f"{file.stem}_{name}") for name in ("init", "step"))
        self.type = np.float32 if "const float *in" in text else np.float64
        self.inputs, self.outputs = (int(re.findall(rf"{file.stem}_{n} (\d+)", text)[0]) for n in ("INPUTS", "OUTPUTS"))
        self.sample_time = float(re.findall(rf"{file.stem}_SAMPLE_TIME (\S+)", text)[0])
        kept = re.findall(
            r"^    (?:double|float) \w+\[(\d+)\];", text.partition("typedef struct")[2].partition("}")[0], re.M
        )
        self.memory = np.zeros(max(sum(map(int, kept)), 1), self.type)
        self.restart()

    def restart(self) -> None:
        """Begin again."""
        self._init(self.memory.ctypes.data_as(ctypes.c_void_p))

    def step(self, *values: float) -> FloatArray:
        """Return the outputs of the next step."""
        inputs, outputs = np.array(values, self.type), np.full(self.outputs, np.nan, self.type)
        self._step(*(a.ctypes.data_as(ctypes.c_void_p) for a in (self.memory, inputs, outputs)))
        return outputs.astype(np.float64)

    def run(self, rows: FloatArray) -> FloatArray:
        """Return the outputs of many steps, shape (steps, outputs)."""
        return np.array([self.step(*row) for row in rows]).reshape(len(rows), self.outputs)


def run_elsewhere(file: Path, rows: FloatArray, place: str) -> FloatArray:
    """Return the outputs of many steps as a 32-bit program gives them that has no C library; skip where none runs."""
    flags, runner = PLACES[place]
    if runner and shutil.which(runner[0]) is None:
        pytest.skip(f"{runner[0]} is not installed: apt install qemu-user")
    compiler = ZIG if place == "arm" else ("gcc",)
    if place == "arm" and not HAS_ZIG:
        pytest.skip("ziglang is not installed")
    text, name = file.read_text("ascii"), file.stem
    real = "float" if "const float *in" in text else "double"
    driver = file.with_name(f"{name}_{place}_serve.c")
    (file.parent / "math.h").write_text("#define sqrt __builtin_sqrt\n#define fabs __builtin_fabs\n")  # an instruction
    sizes = {"inputs": max(rows.shape[1], 1), "outputs": max(len(re.findall(r"^ \* out\[", text, re.M)), 1)}
    driver.write_text(_SERVE.format(file=file.name, name=name, real=real, **sizes))
    program = driver.with_suffix("")
    command = [*compiler, "-std=gnu99", "-I.", "-fno-math-errno", *flags, driver.name, "-o", program.name]
    subprocess.run(command, cwd=file.parent, check=True, capture_output=True, text=True)
    kind = np.float32 if real == "float" else np.float64
    answer = subprocess.run([*runner, str(program)], input=rows.astype(kind).tobytes(), capture_output=True, check=True)
    return np.frombuffer(answer.stdout, kind).reshape(len(rows), -1).astype(np.float64)


def stack_of(file: Path, flag: str) -> int:
    """Return the bytes that step and all that it calls take from the stack, as gcc counts them."""
    compiled(file, flag, "-fstack-usage")
    return sum(int(line.split("\t")[1]) for line in file.with_suffix(".su").read_text().splitlines())


def stated(file: Path) -> dict[str, int]:
    """Return what the comment says that the file needs."""
    text = " ".join(file.read_text("ascii").replace("\n *", " ").split())
    patterns = {
        "memory": r"Needs (\d+) bytes of memory",
        "stack": r"at most (\d+) bytes of stack",
        "constants": r"(\d+) bytes of flash for constants",
        "code": r"less than (\d+) for code",
        "operations": r"at most (\d+) operations",
    }
    return {name: int(re.findall(pattern, text)[0]) for name, pattern in patterns.items()}
