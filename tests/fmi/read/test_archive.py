from __future__ import annotations

import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from fmilin.errors import ModelError
from fmilin.fmi.read import FmuFile, open_fmu, read_description
from tests.fmi.read.conftest import Zoo
from tests.fmus.make import description_of, pack

XML = description_of("no_states")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file '.*absent.fmu'"):
        read_description(tmp_path / "absent.fmu")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is no file"):
        read_description(tmp_path)


def test_file_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "text.fmu"
    path.write_text("no zip")
    with pytest.raises(ModelError, match="is no FMU: it is no zip archive") as caught:
        read_description(path)
    assert caught.value.exit_status == 3


def test_file_that_may_not_be_read(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = zoo("no_states")
    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(ModelError, match=r"no_states.fmu' cannot be read: Permission denied"):
        read_description(path)


def test_disk_that_is_full(zoo: Zoo, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    path = zoo("no_states")
    monkeypatch.setattr(shutil, "copyfileobj", refuse)
    with pytest.raises(ModelError, match=r"no_states.fmu' cannot be unpacked: No space left on device"):
        open_fmu(path)
    assert list(scratch.iterdir()) == []


def test_archive_without_description(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"readme.txt": "hello"})
    with pytest.raises(ModelError, match=r"contains no modelDescription.xml at its top level. Is it an FMU"):
        read_description(path)


def test_archive_of_a_folder_says_so(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"model/modelDescription.xml": XML})
    with pytest.raises(ModelError, match="the folder was zipped instead of its content"):
        read_description(path)


def test_damaged_member(tmp_path: Path, zoo: Zoo, scratch: Path) -> None:
    path = tmp_path / "damaged.fmu"
    content = bytearray(zoo("no_states").read_bytes())
    at = content.index(b"\x7fELF") if b"\x7fELF" in content else len(content) // 2
    content[at + 100] ^= 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(ModelError, match=r"cannot be unpacked: Bad CRC-32"):
        open_fmu(path)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.txt", "leads out of the archive"),
        ("resources/../../evil.txt", "leads out of the archive"),
        ("..\\evil.txt", "leads out of the archive"),
        ("/tmp/evil.txt", "is an absolute path"),
        ("C:/evil.txt", "has a drive letter"),
    ],
)
def test_members_that_would_leave_the_directory(tmp_path: Path, scratch: Path, name: str, reason: str) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, name: "evil"})
    with pytest.raises(ModelError, match=f"was not unpacked: its member .* {reason}"):
        FmuFile(path).unpack(["resources"])
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "evil.txt").exists()


def test_symbolic_link(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", XML)
        link = zipfile.ZipInfo("resources/link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ModelError, match="is a symbolic link"):
        FmuFile(path).unpack(["resources"])
    assert list(scratch.iterdir()) == []


def test_unpacked_directory_is_private_and_holds_only_what_is_needed(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "modelDescription.xml": XML,
        "resources\\data\\table.txt": "1",
        "binaries/linux64/m.so": "2",
        "binaries/win64/m.dll": "3",
        "resources/empty/": "",
    }
    folder = FmuFile(pack(tmp_path / "m.fmu", members)).unpack(["resources", "binaries/linux64"])
    assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0
    assert (folder / "resources/data/table.txt").read_text() == "1"
    assert (folder / "resources/empty").is_dir()
    assert (folder / "binaries/linux64/m.so").read_text() == "2"
    assert not (folder / "binaries/win64").exists()
    shutil.rmtree(folder)


def test_no_library_for_this_platform_says_which_are_inside(tmp_path: Path) -> None:
    members: dict[str, bytes | str] = {
        "modelDescription.xml": XML,
        "binaries/win32/no_states.dll": "x",
        "binaries/irix/no_states.so": "x",
    }
    with pytest.raises(ModelError, match=r"no library for this platform \(.*\); inside are: win32, irix\. Ask for"):
        open_fmu(pack(tmp_path / "m.fmu", members))


def test_sources_can_be_compiled(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, "sources/model.c": "x"})
    with pytest.raises(ModelError, match=r"inside are: C sources. Its sources can be compiled: python -m fmpy compile"):
        open_fmu(path)


def test_library_under_another_name(tmp_path: Path, zoo: Zoo) -> None:
    platform = FmuFile(zoo("no_states")).platforms[0]
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, f"binaries/{platform}/other.so": "x"})
    with pytest.raises(ModelError, match="The folder is there, but not 'no_states"):
        open_fmu(path)


def test_library_that_lacks_functions(zoo: Zoo, scratch: Path) -> None:
    before = Path.cwd()
    with pytest.raises(ModelError, match=r"library of 'half_a_library.fmu' cannot be loaded: .*lack functions"):
        open_fmu(zoo("half_a_library"))
    assert list(scratch.iterdir()) == []
    assert Path.cwd() == before


def test_library_that_is_none(tmp_path: Path, zoo: Zoo, scratch: Path) -> None:
    library = next(m.filename for m in FmuFile(zoo("no_states")).members if m.filename.startswith("binaries/"))
    before = Path.cwd()
    with pytest.raises(ModelError, match=r"library of 'm.fmu' cannot be loaded: .*Failed to load shared library"):
        open_fmu(pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, library: b"no library"}))
    assert list(scratch.iterdir()) == []
    assert Path.cwd() == before


def test_constraints_travel_inside(tmp_path: Path) -> None:
    inside = {"modelDescription.xml": XML, "extra/org.fmilin/constraints.toml": "[[constraint]]"}
    assert FmuFile(pack(tmp_path / "a.fmu", inside)).constraints == b"[[constraint]]"
    assert FmuFile(pack(tmp_path / "b.fmu", {"modelDescription.xml": XML})).constraints is None
