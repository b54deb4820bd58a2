"""Makes a Python for Windows that runs under wine: .ci/windows_python.py FOLDER PACKAGE...

The parts come from PyPI alone: the wheel of panda3d for Windows has python311.dll and the compiled modules of the
standard library, whose other modules are those of the Python 3.11 that runs this script. MinGW-w64, or ziglang, which
takes minutes the first time, compiles what is missing: python.exe, python3.dll, and what wine 8 lacks: random numbers
for programs in Rust, and functions of complex numbers of the C library, of which the sources are in ziglang.
"""

import os
import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import ziglang

PANDA3D = "panda3d==1.10.16"
MINGW = "x86_64-w64-mingw32-gcc"
COMPILER = (
    [MINGW, "-static-libgcc"]
    if shutil.which(MINGW)
    else [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu"]
)
COMPILE = [*COMPILER, "-O1", "-w", "-s"]
COMPLEX_SOURCES = Path(ziglang.__file__).parent / "lib" / "libc" / "mingw" / "complex"
PIP = [sys.executable, "-m", "pip"]
FOR_WINDOWS = ["--platform", "win_amd64", "--python-version", "3.11", "--only-binary", ":all:"]
LEFT_OUT = ("test", "idlelib", "lib2to3", "ensurepip", "tkinter", "turtledemo", "dist-packages", "site-packages")

MATH = "api-ms-win-crt-math-l1-1-0.dll"
OUR_MATH = "fml-ms-win-crt-math-l1-1-0.dll"  # as long, since it takes the place of the other in libraries
OF_COMPLEX_NUMBERS = re.compile(r"(c(?:abs|a?cosh?|arg|a?sinh?|a?tanh?|exp|imag|log|pow|proj|real|sqrt)|conj)([fl]?)")

PROGRAM = """
#include <wchar.h>
__declspec(dllimport) int Py_Main(int argc, wchar_t **argv);
int wmain(int argc, wchar_t **argv) { return Py_Main(argc, argv); }
"""


class Library:
    """A library of Windows: names that it exports and imports."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()
        (header,) = struct.unpack_from("<I", self._content, 0x3C)
        (count,) = struct.unpack_from("<H", self._content, header + 6)
        (size,) = struct.unpack_from("<H", self._content, header + 20)
        directories = header + 24 + 112
        self._exports, _, self._imports = struct.unpack_from("<3I", self._content, directories)
        self._sections = [struct.unpack_from("<8s4I", self._content, header + 24 + size + 40 * i) for i in range(count)]

    def exports(self) -> list[str]:
        """Return the names."""
        start = self._locate(self._exports)
        (count,) = struct.unpack_from("<I", self._content, start + 24)
        (names,) = struct.unpack_from("<I", self._content, start + 32)
        return [self._text(a) for a in struct.unpack_from(f"<{count}I", self._content, self._locate(names))]

    def imports(self, library: str) -> Iterator[str]:
        """Yield the names that it imports from another one."""
        position = self._locate(self._imports) if self._imports else None
        while position is not None:
            table, _, _, name, addresses = struct.unpack_from("<5I", self._content, position)
            if not name:
                return
            if self._text(name) == library:
                yield from self._imported(self._locate(table or addresses))
            position += 20

    def _imported(self, position: int) -> Iterator[str]:
        while entry := struct.unpack_from("<Q", self._content, position)[0]:
            if not entry >> 63:  # else it is a number
                yield self._text(entry + 2)
            position += 8

    def _locate(self, address: int) -> int:
        for _, size, start, stored, position in self._sections:
            if start <= address < start + max(size, stored):
                return address - start + position
        raise ValueError(address)

    def _text(self, address: int) -> str:
        start = self._locate(address)
        return self._content[start : self._content.index(b"\0", start)].decode("ascii")


def compile_library(path: Path, exports: list[str], sources: Mapping[str, str], libraries: Sequence[str] = ()) -> None:
    """Compile a library with exports as in a module definition file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        definition = folder / "exports.def"
        definition.write_text("\n".join([f"LIBRARY {path.name}", "EXPORTS", *exports, ""]))
        entry = "int DllMain(void *library, unsigned reason, void *unused) { return 1; }"
        for file, text in {"entry.c": entry, **sources}.items():
            (folder / file).write_text(text)
        command = [
            *COMPILE,
            f"-I{COMPLEX_SOURCES}",
            "-shared",
            "-o",
            folder / path.name,
            *folder.glob("*.c"),
            definition,
            *libraries,
        ]
        subprocess.run(command, check=True)
        shutil.copyfile(folder / path.name, path)


def make_interpreter(folder: Path) -> None:
    """Put python.exe and the standard library into a folder."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        subprocess.run([*PIP, "download", "--quiet", "--no-deps", *FOR_WINDOWS, "--dest", work, PANDA3D], check=True)
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                file = Path(member)
                if file.parent.name == "deploy_libs" and not file.name.startswith("api-ms-"):
                    (folder / file.name).write_bytes(archive.read(member))
        source = work / "python.c"
        source.write_text(PROGRAM)
        command = [*COMPILE, "-municode", "-o", work / "python.exe", source, folder / "python311.dll"]
        subprocess.run(command, check=True)
        shutil.copyfile(work / "python.exe", folder / "python.exe")
    stable = [name for name in Library(folder / "python311.dll").exports() if name.startswith(("Py", "_Py"))]
    compile_library(folder / "python3.dll", [f"{name}=python311.{name}" for name in stable], {})
    make_standard_library(folder / "python311.zip")


def make_standard_library(path: Path) -> None:
    """Pack the modules of this Python: thousands of files are slow under wine."""
    root = Path(sysconfig.get_path("stdlib"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in LEFT_OUT and name != "__pycache__"]
            for name in files:
                if name.endswith(".py"):
                    archive.write(Path(folder, name), Path(folder, name).relative_to(root))


def add_random_numbers(folder: Path) -> None:
    """Add the library from which programs in Rust, such as pydantic's, take random numbers: wine 8 lacks it."""
    source = (
        "__declspec(dllimport) unsigned char __stdcall SystemFunction036(void *bytes, unsigned long count);\n"
        "int fill(unsigned char *bytes, unsigned long long count) { return SystemFunction036(bytes, count); }\n"
    )
    compile_library(folder / "bcryptprimitives.dll", ["ProcessPrng=fill"], {"random.c": source}, ["-ladvapi32"])


def replace_complex_functions(folder: Path) -> None:
    """Let all libraries take mathematical functions from ours, which has those that wine lacks."""
    libraries = [path for path in folder.rglob("*") if path.suffix in (".pyd", ".dll")]
    names: set[str] = set()
    for path in libraries:
        imported = set(Library(path).imports(MATH))
        if imported:
            names |= imported
            path.write_bytes(path.read_bytes().replace(MATH.encode(), OUR_MATH.encode()))
    exports = []
    sources = {}
    for name in sorted(names):
        function = OF_COMPLEX_NUMBERS.fullmatch(name)
        if function is None:
            exports.append(f"{name}=ucrtbase.{name}")
            continue
        base, kind = function.groups()
        precision = "FLOAT" if kind == "f" else "DOUBLE"  # as long double is with Microsoft's compiler
        internal = f"our_{name}"
        exports.append(f"{name}={internal}")
        sources[f"{name}.c"] = (
            f"#define _NEW_COMPLEX_{precision} 1\n"
            '#include "complex_internal.h"\n'
            f"#define {base}{'f' if kind == 'f' else ''} {internal}\n"
            f'#include "{base}.def.h"\n'
        )
    compile_library(folder / OUR_MATH, exports, sources)


def main(folder: Path, packages: list[str]) -> None:
    """Make it, with packages, and with the folder ``tree`` on the import path."""
    if sys.version_info[:2] != (3, 11):
        sys.exit("The standard library of Python 3.11 is needed: run this script with Python 3.11.")
    folder.mkdir(parents=True)
    make_interpreter(folder)
    site = folder / "site-packages"
    subprocess.run([*PIP, "install", "--quiet", "--no-compile", "--target", site, *FOR_WINDOWS, *packages], check=True)
    replace_complex_functions(folder)
    add_random_numbers(folder)
    (folder / "python311._pth").write_text("python311.zip\n.\nsite-packages\n..\\tree\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
