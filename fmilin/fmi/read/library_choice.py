"""Which of an FMU's libraries is loaded, and what speaks to it."""

from __future__ import annotations

from pathlib import PurePosixPath

from fmilin.fmi.read.archive import FmuFile
from fmilin.fmi.read.description import Description
from fmilin.fmi.read.instance import Instance
from fmilin.fmi.read.platforms import library_suffix
from fmilin.ground.errors import ModelError

__all__ = ["class_of_instances", "must_be_compiled", "unexpected_library"]


def class_of_instances(description: Description) -> type[Instance]:
    """Return the class for model exchange in the description's version of the standard; no other is imported."""
    number = description.fmi_version.split(".")[0]
    if number == "3" and ("alpha" in description.fmi_version or "beta" in description.fmi_version):
        raise ModelError(
            f"'{description.source}' was made for a draft of FMI 3.0 ({description.fmi_version}), whose functions took "
            "other arguments than those of the standard, so its code is not called. Export it again as FMI 3.0 or 2.0."
        )
    if number == "1":
        from fmilin.fmi.read.instance1 import Instance1

        return Instance1
    if number == "2":
        from fmilin.fmi.read.instance2 import Instance2

        return Instance2
    from fmilin.fmi.read.instance3 import Instance3

    return Instance3


def unexpected_library(fmu: FmuFile, description: Description, kind: type[Instance]) -> str:
    """Return the only library for this platform, where none bears the name that the description gives; else ""."""
    library = description.model_identifier + library_suffix()
    if any(f"binaries/{folder}/{library}" in fmu.by_path for folder in kind.binaries):
        return ""
    for folder in kind.binaries:
        paths = [PurePosixPath(path) for path in fmu.by_path if path.startswith(f"binaries/{folder}/")]
        named = [p.name for p in paths if len(p.parts) == 3 and p.suffix == library_suffix()]
        if len(named) == 1:
            return named[0]
    return ""


def must_be_compiled(fmu: FmuFile, description: Description, kind: type[Instance]) -> bool:
    """Return whether the sources have to be compiled, and may be; nothing of that when a library is there."""
    library = description.model_identifier + library_suffix()
    if any(f"binaries/{folder}/{library}" in fmu.by_path for folder in kind.binaries):
        return False
    if unexpected_library(fmu, description, kind):
        return False
    if fmu.options.compile_sources and "C sources" in fmu.platforms:
        return True
    here = kind.binaries[0]
    inside = ", ".join(fmu.platforms) or "none at all"
    advice = "Ask for an export that includes this platform."
    if "C sources" in fmu.platforms:
        advice = "Its sources can be compiled with this machine's compiler: say so with --compile."
    elif any(folder in fmu.platforms for folder in kind.binaries):
        advice = f"The folder is there, but '{library}', the name that the model description gives, is not in it."
    raise ModelError(f"'{fmu.name}' has no library for this platform ({here}); inside are: {inside}. {advice}")
