from __future__ import annotations

import os
import shutil
import stat
import struct
import subprocess
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fmilin.errors import ModelError
from fmilin.fmi.read import FmuFile, open_fmu, read_description
from fmilin.options import FmuOptions
from tests.fmi.read.conftest import Zoo
from tests.fmus.make import description_of, pack

XML = description_of("no_states")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file '.*absent.fmu'"):
        read_description(tmp_path / "absent.fmu")


def test_directory(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a file"):
        read_description(tmp_path)


def test_file_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "text.fmu"
    path.write_text("no zip")
    with pytest.raises(ModelError, match="is not an FMU: the zip archive is missing or incomplete") as caught:
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
    with pytest.raises(ModelError, match=r"contains no modelDescription.xml at its top level. Check that it is an FMU"):
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
        ("../evil.txt", "lies outside of the archive"),
        ("resources/../../evil.txt", "lies outside of the archive"),
        ("..\\evil.txt", "lies outside of the archive"),
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
        "binaries/darwin64/no_states.dylib": "x",
        "binaries/irix/no_states.so": "x",
    }
    with pytest.raises(
        ModelError, match=r"no library for this platform \(.*\); inside are: darwin64, irix\. Request an export"
    ):
        open_fmu(pack(tmp_path / "m.fmu", members))


def test_sources_can_be_compiled(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, "sources/model.c": "x"})
    with pytest.raises(ModelError, match=r"inside are: C sources. Compile its sources with"):
        open_fmu(path)


def test_libraries_under_other_names(tmp_path: Path, zoo: Zoo) -> None:
    platform = FmuFile(zoo("no_states")).platforms[0]
    others = {f"binaries/{platform}/{name}.so": "x" for name in ("one", "another")}
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, **others})
    with pytest.raises(ModelError, match=r"The folder exists, but lacks 'no_states"):
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


def test_encrypted_member(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x03\x04") + 6] |= 1  # the flag in the local header
    content[content.index(b"PK\x01\x02") + 8] |= 1  # and in the directory
    path.write_bytes(bytes(content))
    with pytest.raises(ModelError, match=r"'modelDescription.xml' is encrypted, which FMI does not allow"):
        read_description(path)


def with_two_descriptions(path: Path, second_name: str, second: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("modelDescription.xml", XML)
        archive.writestr(second_name, second)
    return path


def test_two_different_members_of_one_name(tmp_path: Path) -> None:
    other = XML.replace("no_states", "another")
    with pytest.raises(ModelError, match="it has two different members"):
        read_description(with_two_descriptions(tmp_path / "m.fmu", "./modelDescription.xml", other))


def test_the_same_member_twice_is_tolerated(tmp_path: Path) -> None:
    path = with_two_descriptions(tmp_path / "m.fmu", "modelDescription.xml", XML)
    assert read_description(path).model_name == "no_states"


def test_zip_bomb_is_not_unpacked(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", XML)
        for i in range(4):
            archive.writestr(f"resources/{i}", bytes(2**20))
    assert path.stat().st_size < 20_000
    small = FmuFile(path, FmuOptions(most_bytes=3 * 2**20))
    assert small.description.model_name == "no_states"
    with pytest.raises(ModelError, match=r"would take 4.0 MiB, more than the 3.0 MiB .* fmu=FmuOptions\(most_bytes="):
        small.unpack(["resources"])
    assert list(scratch.iterdir()) == []
    shutil.rmtree(FmuFile(path, FmuOptions(most_bytes=5 * 2**20)).unpack(["resources"]))


def test_description_that_is_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", bytes(2**20))
    with pytest.raises(ModelError, match=r"its member 'modelDescription.xml' would take"):
        _ = FmuFile(path, FmuOptions(most_bytes=2**20)).description


def test_member_that_lies_about_its_size_gives_no_more_than_it_declares(tmp_path: Path, scratch: Path) -> None:
    path = tmp_path / "m.fmu"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("modelDescription.xml", XML)
        archive.writestr("resources/bomb", bytes(2**20))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\x01\x02")
    content[at + 24 : at + 28] = (100).to_bytes(4, "little")  # the uncompressed size in the directory
    path.write_bytes(bytes(content))
    with pytest.raises(ModelError, match="cannot be unpacked"):
        FmuFile(path).unpack(["resources"])
    assert list(scratch.iterdir()) == []


def test_too_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fmilin.fmi.read.archive.MAX_MEMBERS", 10)
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, **{f"documentation/{i}": "" for i in range(10)}})
    with pytest.raises(ModelError, match="it has 11 members, more than the 10 that are allowed"):
        read_description(path)


def test_a_hundred_thousand_members_are_refused_before_they_are_listed(tmp_path: Path) -> None:
    """Only the end of the archive is there: it announces them, as large archives do."""
    path = tmp_path / "m.fmu"
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    large = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, 100_000, 100_000, 6_000_000, 0)
    path.write_bytes(large + struct.pack("<4sIQI", b"PK\6\7", 0, 0, 1) + end)
    with pytest.raises(ModelError, match="it has 100000 members, more than the 50000 that are allowed"):
        read_description(path)


def test_an_archive_that_announces_few_members_in_a_long_list_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.fmu"
    path.write_bytes(bytes(64) + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 3, 3, 1 << 30, 0, 0))
    with pytest.raises(ModelError, match=r"the list of its members takes 1\.0 GiB, more than 8\.0 MiB"):
        read_description(path)


def test_member_that_is_both_file_and_folder(tmp_path: Path, scratch: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, "resources": "x", "resources/y": "z"})
    with pytest.raises(ModelError, match="cannot be unpacked"):
        FmuFile(path).unpack(["resources"])
    assert list(scratch.iterdir()) == []


def test_name_that_is_no_utf_8(tmp_path: Path) -> None:
    path = pack(tmp_path / "m.fmu", {"modelDescription.xml": XML, "resources/\u00e4": "x"})
    content = path.read_bytes().replace("\u00e4".encode(), b"\xff\xfe")
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is a damaged zip archive"):
        read_description(path)


def test_names_with_spaces_quotes_and_unicode(tmp_path: Path) -> None:
    names = [
        "resources/a b.txt",
        'resources/it\'s "x".txt',
        "resources/\u03b8 \U0001f600.txt",
        "resources/" + "n" * 200,
    ]
    path = pack(tmp_path / "m \u00e4 'o'.fmu", {"modelDescription.xml": XML, **dict.fromkeys(names, "1")})
    folder = FmuFile(path).unpack(["resources"])
    assert all((folder / name).read_text() == "1" for name in names)
    shutil.rmtree(folder)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_archives_with_random_damage_end_in_one_sentence(data: st.DataObject) -> None:
    """A flipped, cut or overwritten archive is read correctly or refused; nothing else, and nothing stays behind."""
    content = bytearray(_ARCHIVE)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 3)) == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.fmu"
        path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))] if cut else content))
        try:
            fmu = FmuFile(path)
            _ = fmu.description
            shutil.rmtree(fmu.unpack(["resources"]))
        except ModelError as error:
            assert str(error).count("\n") == 0  # noqa: PT017 - any kind of damage is allowed
        assert [p.name for p in Path(folder).iterdir()] == ["m.fmu"]


def _archive() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        members: dict[str, bytes | str] = {
            "modelDescription.xml": XML,
            "resources/t.txt": "1 2 3",
            "sources/a.c": "int a;",
        }
        return pack(Path(folder) / "m.fmu", members).read_bytes()


_ARCHIVE = _archive()


def test_what_the_system_says_of_a_library_may_be_in_any_encoding(zoo: Zoo, tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "empty.c").write_text("int nothing;", encoding="utf-8")
    other = os.fsencode(tmp_path) + b"/li\xff.so"
    make = ["cc", "-shared", "-fPIC", str(tmp_path / "empty.c"), "-o"]
    subprocess.run([*make, other, b"-Wl,-soname,li\xff.so"], check=True)
    subprocess.run([*make, str(tmp_path / "m.so"), "-Wl,--no-as-needed", other], check=True)
    library = next(m.filename for m in FmuFile(zoo("no_states")).members if m.filename.startswith("binaries/"))
    content: dict[str, bytes | str] = {"modelDescription.xml": XML, library: (tmp_path / "m.so").read_bytes()}
    with pytest.raises(ModelError, match="li\ufffd"):
        open_fmu(pack(tmp_path / "m.fmu", content))
    assert list(scratch.iterdir()) == []
