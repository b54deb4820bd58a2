"""One self-contained C99 file of something that runs in steps: what models, filters, regulators and schedules share.

C text that is handed in names things of the file with ``@``: ``@real`` is the type of numbers, ``@self`` the struct's
type, ``@A`` the constant or function A of this file (``NAME_A``).
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Literal

import numpy as np

from fmilin.codegen.statements import WIDTH, wrap_items
from fmilin.errors import UsageError
from fmilin.signals import FloatArray, Signal
from fmilin.version import __version__

Precision = Literal["double", "single"]
_TYPES = {"double": ("double", 8), "single": ("float", 4)}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")  # 31 characters are significant in C99
_KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|main|"
    "register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while|"
    "class|delete|namespace|new|operator|private|protected|public|template|this|try|using|virtual"
)
MAX_COMMENT_CHARACTERS = 2000  # characters of a comment
BYTES_PER_CALL = 256  # bytes of return addresses, saved registers and counters, for a call that calls one function


def runtime(name: str) -> str:
    """Return C text that is written by hand."""
    return (files("fmilin.codegen") / "runtime" / name).read_text("utf-8")


ACCUMULATE = runtime("accumulate.c")  # ``sum += matrix vector``, the matrix by rows


@dataclass(frozen=True)
class Constant:
    """A table in read-only memory, by rows."""

    name: str
    values: FloatArray
    about: str


@dataclass(frozen=True)
class Memory:
    """Numbers that are kept from one step to the next: an array of the struct."""

    name: str
    start: FloatArray  # shape (n,), after NAME_init
    about: Sequence[str]  # of each number


@dataclass(frozen=True)
class CComponent:
    """The contents of a C component's file."""

    name: str
    about: Sequence[str]  # paragraphs of the comment
    inputs: Sequence[str]  # name and unit of each number of ``in``
    outputs: Sequence[str]  # of each number of ``out``
    memory: Sequence[Memory]
    constants: Sequence[Constant]
    step: str  # the statements of NAME_step
    operations: int  # additions, multiplications, divisions, comparisons of numbers in a step, at most
    sample_time: float
    functions: Sequence[str] = (ACCUMULATE,)  # what the statements call; written where their names occur
    locals: int = 0  # numbers on the stack at once, at most
    calls: int = BYTES_PER_CALL  # further bytes of the stack
    code: int = 1024  # bytes of machine code, less than
    precision: Precision = "double"
    sizes: Mapping[str, int] = field(default_factory=dict)  # numbers that ``@NAME`` stands for
    headers: Sequence[str] = field(default=())  # what is included: ``"math.h"``

    def __post_init__(self) -> None:
        check_c_name(self.name)
        if self.precision not in _TYPES:
            raise UsageError(f"The precision is 'double' or 'single', not {str(self.precision)[:40]!r}.")
        texts = re.sub(r"/\*.*?\*/", "", " ".join(("self in out i", self.step, *self.functions)), flags=re.DOTALL)
        if re.search(rf"(?<![\w@.>]){self.name}\b", texts):
            raise UsageError(
                f"The C code of '{self.name}.c' uses the name '{self.name}' itself. Choose another name for the file."
            )
        for c in self.constants:
            if not np.isfinite(c.values).all():
                raise UsageError(
                    f"'{self.name}.c' cannot be written: {c.about} has an entry that is infinite or not a number. "
                    "Compute the model again at a point where it is defined."
                )
            if self.precision == "single" and np.abs(c.values).max(initial=0.0) > float(np.finfo(np.float32).max):
                raise UsageError(
                    f"'{self.name}.c' cannot be written in single precision: {c.about} has an entry beyond 3.4e38. "
                    "Write it in double precision, or choose other units."
                )

    def text(self) -> str:
        """Return the file."""
        return "\n".join([*self._head(), *self._declarations(), *self._definitions()]) + "\n"

    def number(self, value: float) -> str:
        """Return a literal of the type of numbers."""
        return _literal(value, self.precision)

    def _head(self) -> Iterator[str]:
        paragraphs = [*self.about, self._use(), self._needs()]
        yield f"/* {self.name}: {_comment(paragraphs[0])}"
        for paragraph in paragraphs[1:]:
            yield " *"
            for line in paragraph.split("\n"):
                yield from (f" * {part}" for part in textwrap.wrap(_comment(line), WIDTH - 4) or [""])
        for array, signals in (("in", self.inputs), ("out", self.outputs)):
            yield " *"
            yield from (f" * {array}[{i}]: {_comment(s)}" for i, s in enumerate(signals))
        yield f" *\n * Written by fmilin {__version__}.\n */"

    def _use(self) -> str:
        interval = f"every {self.sample_time!r} s" if self.sample_time > 0 else "as often as it is needed"
        return (
            f"Call {self.name}_init once and {self.name}_step {interval}; in and out are different "
            f"arrays. The file declares itself to others: define {self.name}_DECLARATIONS_ONLY and include it."
        )

    def _needs(self) -> str:
        size = _TYPES[self.precision][1]
        flash = size * (sum(c.values.size for c in self._used_constants()) + sum(_table(m) for m in self.memory))
        ram = size * sum(m.start.size for m in self.memory)
        return (
            f"Needs {ram} bytes of memory for each object, at most {size * self.locals + self.calls} bytes of stack, "
            f"{flash} bytes of flash for constants and less than {self.code} for code, and at most {self.operations} "
            "operations on numbers in a step. No heap, no files, no variables outside the struct, no recursion; all "
            "loops have fixed bounds."
        )

    def _declarations(self) -> Iterator[str]:
        guard, real = f"{self.name}_DECLARED", _TYPES[self.precision][0]
        yield f"#ifndef {guard}\n#define {guard}\n"
        yield f"#define {self.name}_INPUTS {len(self.inputs)}"
        yield f"#define {self.name}_OUTPUTS {len(self.outputs)}"
        if self.sample_time > 0:
            yield f"#define {self.name}_SAMPLE_TIME {self.sample_time!r} /* s */"
        yield ""
        yield "typedef struct {"
        memory_with_start = [m for m in self.memory if m.start.size]
        for m in memory_with_start:
            yield f"    {real} {m.name}[{m.start.size}];"
            yield from (f"    /* {m.name}[{i}]: {_comment(s)} */" for i, s in enumerate(m.about))
        if not memory_with_start:
            yield "    unsigned char nothing; /* is kept: a struct has one member at least */"
        yield f"}} {self.name};\n"
        yield f"void {self.name}_init({self.name} *self);"
        yield f"void {self.name}_step({self.name} *self, const {real} *in, {real} *out);\n"
        yield f"#endif /* {guard} */\n\n#ifndef {self.name}_DECLARATIONS_ONLY"

    def _definitions(self) -> Iterator[str]:
        for header in self.headers:
            yield f"#include <{header}>"
        for c in self._used_constants():
            yield self._own(f"\n/* {_comment(c.about)} */\nstatic const @real @{c.name}[{c.values.size}] = {{")
            yield textwrap.indent(wrap_items(map(self.number, c.values.ravel().tolist())), "    ") + "\n};"
        starts = [m for m in self.memory if _table(m)]
        for m in starts:
            yield self._own(f"\nstatic const @real @{m.name}_start[{m.start.size}] = {{")
            yield textwrap.indent(wrap_items(map(self.number, m.start.tolist())), "    ") + "\n};"
        for function in self.functions:
            if self._mentions(re.findall(r"@(?!real|self)(\w+)", function)[0]):
                yield "\n" + self._own(function).rstrip()
        yield f"\nvoid {self.name}_init({self.name} *self)\n{{"
        if not any(m.start.size for m in self.memory):
            yield "    self->nothing = 0U;"
        for m in self.memory:
            if m.start.size:
                value = f"@{m.name}_start[i]" if _table(m) else self.number(float(m.start[0]))
                yield self._own(
                    f"    for (int i = 0; i < {m.start.size}; i++) {{\n        self->{m.name}[i] = {value};\n    }}"
                )
        yield f"}}\n\n{self._own('void @step(@self *self, const @real *in, @real *out)')}\n{{"
        yield self._own(self.step).rstrip("\n")
        yield f"}}\n\n#endif /* {self.name}_DECLARATIONS_ONLY */"

    def _used_constants(self) -> list[Constant]:
        return [c for c in self.constants if c.values.size and self._mentions(c.name)]

    def _mentions(self, name: str) -> bool:
        """Whether the step or a function of it uses a name of the file; compilers warn of unused names."""
        bodies = [self.step, *(f.partition("{")[2] for f in self.functions)]
        return any(re.search(rf"@{name}\b", body) for body in bodies)

    def _own(self, text: str) -> str:
        return resolve_names(text, self.name, _TYPES[self.precision][0], self.sizes)


def resolve_names(text: str, name: str, real: str, sizes: Mapping[str, int] | None = None) -> str:
    """Return C text with the names that ``@`` stands before as those of a file, ``real`` as its type of numbers."""
    replacements = {"real": real, "self": name, **{n: str(v) for n, v in (sizes or {}).items()}}
    return re.sub(r"@(\w+)", lambda m: replacements.get(m[1], f"{name}_{m[1]}"), text)


def check_c_name(name: str) -> None:
    """Reject what C, or C++, cannot call a struct."""
    if not _NAME.fullmatch(name) or _KEYWORDS.fullmatch(name):
        raise UsageError(
            f"'{name[:70]}' is not a valid name of a C struct: use at most 31 letters, digits and '_', a letter "
            "first, and not a keyword. Choose such a name for the .c file."
        )


def describe(signal: Signal, value: float | None = None) -> str:
    """Return what a comment says of a signal: its name, its unit and its value at the operating point."""
    unit = f" in {signal.unit}" if signal.unit else ""
    return f"{signal.name}{unit}" + ("" if value is None else f", {value:.6g} at the operating point")


def operations(*matrices: FloatArray) -> int:
    """Return how many multiplications and additions the products with these matrices take; with zeros alone none."""
    return sum(2 * m.size for m in matrices if m.any())


def loop(count: int, statement: str) -> str:
    """Return a loop over i, or nothing."""
    return f"    for (int i = 0; i < {count}; i++) {{\n        {statement}\n    }}\n" if count else ""


def product(name: str, matrix: FloatArray, vector: str, result: str) -> str:
    """Return the call that adds a constant matrix times a vector; nothing where the matrix is zero."""
    rows, columns = matrix.shape
    return f"    @accumulate({rows}, {columns}, @{name}, {vector}, {result});\n" if matrix.any() else ""


def _table(m: Memory) -> int:
    """Return how many numbers the start values take: none where all are the same."""
    return m.start.size if m.start.size and (m.start != m.start[0]).any() else 0


def _literal(value: float, precision: Precision) -> str:
    text = repr(float(value)) if precision == "double" else f"{float(str(np.float32(value)))!r}f"
    return text if "." in text or "e" in text else f"{text}.0"


def _comment(text: str) -> str:
    """Return text that neither ends a comment nor begins another one; what ASCII lacks becomes a question mark."""
    plain = (
        "".join(c if c.isprintable() else " " for c in text)
        .encode("ascii", "replace")
        .decode()[:MAX_COMMENT_CHARACTERS]
    )
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??", "? ?").rstrip("\\")
