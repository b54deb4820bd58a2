"""Code as users write it, in one folder for type checkers: a module for each page of documentation and each example.

Every line keeps its number, so that a complaint about a module is one about the page or the example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tests.documentation.blocks import blocks_of

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"
PAGES = ("README.md", "docs/*.md", "docs/*/*.md", "adapters/README.md", "adapters/*/README.md")
EXAMPLES = ("examples/*/*.py", "adapters/*/example/*.py")


def write_sources(folder: Path) -> dict[str, Path]:
    """Write the modules into a folder; return the page, example or case that each of them is made of, by file name."""
    sources: dict[str, Path] = {}
    for name, text, source in (*page_modules(), *example_modules(), *case_modules()):
        assert name not in sources, f"{name} is written twice: {sources[name]} and {source}"
        (folder / name).write_text(text, encoding="utf-8")
        sources[name] = source
    return sources


def page_modules() -> Iterator[tuple[str, str, Path]]:
    """Return the Python blocks of each page as one module, and Python files that a page shows as modules of theirs."""
    for pattern in PAGES:
        for page in sorted(ROOT.glob(pattern)):
            lines: list[str] = []
            for block in blocks_of(page.read_text(encoding="utf-8")):
                if block.language != "python":
                    continue
                named = re.match(r"# (\w+\.py)\n", block.body)  # the comment that names a file
                if block.caption or named:
                    yield named[1] if named else block.caption, block.body, page
                    continue
                lines += [""] * (block.line - len(lines))
                lines += block.body.splitlines()
            if lines and not needs_missing_package("\n".join(lines)):
                yield module_name(page), "\n".join(lines) + "\n", page


def example_modules() -> Iterator[tuple[str, str, Path]]:
    """Return the programs of the examples; their imports of each other name the modules written here."""
    for pattern in EXAMPLES:
        for program in sorted(ROOT.glob(pattern)):
            if needs_missing_package("".join(p.read_text(encoding="utf-8") for p in program.parent.glob("*.py"))):
                continue
            text = program.read_text(encoding="utf-8")
            for sibling in program.parent.glob("*.py"):
                written = module_name(sibling).removesuffix(".py")
                text = re.sub(rf"(?m)^( *)from {sibling.stem} import", rf"\1from {written} import", text)
                text = re.sub(rf"(?m)^import {sibling.stem}$", f"import {written} as {sibling.stem}", text)
            yield module_name(program), text, program


def case_modules() -> Iterator[tuple[str, str, Path]]:
    """Return the deliberate mistakes and the right uses."""
    for case in sorted(CASES.glob("*.py")):
        yield case.name, case.read_text(encoding="utf-8"), case


def needs_missing_package(text: str) -> bool:
    """Whether code imports an adapter or an engine that is not installed here: examples run with them only."""
    names = re.findall(r"(?m)^ *(?:from|import) ((?:fmilin_)?(?:mujoco|pinocchio|jsbsim|modelica|exudyn))\b", text)
    return any(find_spec(name) is None for name in names)


def module_name(path: Path) -> str:
    """Return the file name of the module made of a page or of an example."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return "_".join(part.replace("-", "_") for part in parts) + ".py"
