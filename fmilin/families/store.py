"""A sweep on the disk while it is computed: what is killed goes on where it was.

A folder next to the file that the family goes into. ``rows.bin`` has one row of doubles per point at its place;
``points.jsonl`` is a journal, one line per message: points that are done, and what they refer to. ``plan.json`` says
which sweep it is. A power cut may lose any part of them: each line carries its checksum, begun with that of the plan,
and what stands behind the first that does not match counts for nothing; each point carries the checksum of its row.
"""

import contextlib
import json
import os
import shutil
import time
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmilin.diagnostics import Remark
from fmilin.errors import ModelError, UsageError
from fmilin.families.family_builder import NOTHING, FamilyBuilder
from fmilin.families.rows import Layout, OutcomeBlock, PointOutcome, Template
from fmilin.families.sweep_plan import SweepPlan
from fmilin.linear_model.arrays import LinearArrays
from fmilin.model.interface import ModelInfo
from fmilin.signals import FloatArray, Signal, Signals
from fmilin.support.files import append_to_name, keep_owner_rights

SYNC_SECONDS = 1.0  # seconds between two times that the system is asked to write what it holds back
_CHECKSUM = b', "checksum": '  # the last entry of every line
_BINARY = getattr(os, "O_BINARY", 0)  # Windows translates line ends without it


def get_store_folder(path: Path) -> Path:
    """Return where a sweep into ``path`` keeps what is done."""
    return append_to_name(path, ".sweep")


class Store(FamilyBuilder):
    """A family that grows on the disk, in the file ``path``; ``resume`` goes on with what is there."""

    def __init__(self, plan: SweepPlan, path: Path, *, resume: bool) -> None:
        super().__init__(plan.grid)
        if resume and plan.how.parameters:
            raise UsageError(
                "A sweep with derivatives by parameters cannot be resumed, because they are not stored for each point. "
                "Leave out resume=True, and all points are computed again."
            )
        self._folder, self._path = get_store_folder(path), path
        self.damaged = 0  # finished points with rows that differ from those written
        identity = json.dumps(plan.identity())
        self._seed = zlib.crc32(identity.encode())
        self._numbers: dict[Any, int] = {}
        self._meanings = 0  # choices and diagnostics that the journal has explained, counted from 1
        self._written: list[dict[str, Any]] = []
        self._synced = time.monotonic()
        old = self._folder.is_dir()
        if old and not resume:
            raise UsageError(
                f"An interrupted sweep into '{path}' is stored in '{self._folder}'. Continue it with resume=True, or "
                "remove that folder to start again."
            )
        try:
            self._folder.mkdir(exist_ok=True)
            keep_owner_rights(self._folder)
            if not old or not self._is_same(json.loads(identity)):
                (self._folder / "plan.json").write_text(identity, encoding="utf-8")
                keep_owner_rights(self._folder / "plan.json")
            rows = self._folder / "rows.bin"
            self._rows_file = os.open(rows, os.O_RDWR | os.O_CREAT | _BINARY, 0o666)
            keep_owner_rights(rows)
            self._read()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _BINARY
            self._journal = os.open(self._folder / "points.jsonl", flags, 0o666)
            keep_owner_rights(self._folder / "points.jsonl")
        except OSError as error:
            raise self._refusal(error) from None

    def _is_same(self, identity: dict[str, Any]) -> bool:
        """Reject the folder of another sweep; False when it does not say which one it is of."""
        try:
            before = json.loads((self._folder / "plan.json").read_bytes())
        except (ValueError, RecursionError, FileNotFoundError):
            return False
        if not isinstance(before, dict):
            return False
        if wrong := [name for name, value in identity.items() if before.get(name) != value]:
            what = {"content": "model file", "asked": "request"}.get(wrong[0], wrong[0])
            raise UsageError(
                f"The interrupted sweep in '{self._folder}' differs in its {what}. Repeat its command to continue it, "
                "or remove that folder to start again."
            )
        return True

    def add_all(self, outcomes: Iterable[PointOutcome]) -> None:
        """Take in what came of some points, and write it."""
        try:
            if isinstance(outcomes, OutcomeBlock):
                points = self._add_rows(outcomes)
            else:
                points = []
                for outcome in outcomes:
                    self.add(outcome)
                    points.append(self._entry(outcome))
            if points:
                self._written.append({"points": points})
                lines = b"".join(map(self._line, self._written))
                self._written = []
                rest = memoryview(lines)
                while rest:
                    rest = rest[os.write(self._journal, rest) :]
            if time.monotonic() - self._synced > SYNC_SECONDS:
                os.fsync(self._rows_file)
                os.fsync(self._journal)
                self._synced = time.monotonic()
        except OSError as error:
            raise self._refusal(error) from None

    def _add_rows(self, block: OutcomeBlock) -> list[list[Any]]:
        """Take in points that were linearized together; return what the journal says of each."""
        numbers: list[int] = block.numbers.tolist()
        why, layout = self._why_not(block.template), Layout(block.template)
        if why:
            self._reasons.update(dict.fromkeys(numbers, why))
            self.done[block.numbers] = True
            return [[k, why] for k in numbers]
        self._write_template()
        chosen = self._choice(block.states, block.method)
        choice, has_remarks = self._refer_to_choice(chosen), block.remarks.is_present
        entries: list[list[Any]] = []
        for part in block.models.list_blocks():
            rows = layout.join(block.models[part])
            self._write_rows(block.numbers[part], rows)
            for i, row in zip(range(part.start, part.stop), rows, strict=True):
                remarks = [self._refer_to_remark(r) for r in block.remarks[i]] if has_remarks[i] else ()
                entries.append([numbers[i], zlib.crc32(row), choice, *remarks])
        self._ok[block.numbers] = True
        self._chosen[block.numbers] = chosen
        self._remarks.add_block(block.numbers, block.remarks)
        self.done[block.numbers] = True
        return entries

    def _line(self, entry: dict[str, Any]) -> bytes:
        text = json.dumps(entry)[:-1].encode("ascii")
        return b"%s%s%d}\n" % (text, _CHECKSUM, zlib.crc32(text, self._seed))

    def _entry(self, outcome: PointOutcome) -> list[Any]:
        """Return what the journal says of a point: its number and a reason, or its row's checksum and references."""
        k = outcome.number
        if not self._ok[k] or outcome.row is None:
            return [k, self._reasons[k]]
        remarks = [self._refer_to_remark(remark) for remark in outcome.remarks]
        return [k, zlib.crc32(outcome.row.tobytes()), self._refer_to_choice(int(self._chosen[k])), *remarks]

    def _refer_to_choice(self, chosen: int) -> int:
        choice = self._kinds[chosen]
        return self._number(("choice", chosen), lambda: [_encode_signals(choice.states), list(choice.method)])

    def _refer_to_remark(self, remark: Remark) -> int:
        return self._number(("remark", remark), lambda: [remark.kind, remark.message])

    def _number(self, key: tuple[str, Any], text: Any) -> int:
        if key not in self._numbers:
            self._meanings += 1
            self._numbers[key] = self._meanings
            self._written.append({key[0]: text()})
        return self._numbers[key]

    def _put(self, number: int, row: FloatArray, layout: Layout) -> None:
        self._write_template()
        self._write_rows(np.array([number]), row[None])

    def _write_template(self) -> None:
        """Let the journal say what the linear models share, once."""
        if self.template is None or "template" in self._numbers:
            return
        self._numbers["template"] = -1
        t = self.template
        groups = [_encode_signals(g) for g in (t.full_states, t.inputs, t.outputs)]
        packed = [t.order, *groups, list(t.parameters), asdict(t.model), t.sample_time]
        self._written.insert(0, {"template": packed})

    def _write_rows(self, numbers: NDArray[np.intp], rows: FloatArray) -> None:
        """Write the rows (k, width) of points where they belong, those of consecutive points at once."""
        ends = np.flatnonzero(np.diff(numbers) != 1) + 1
        for first, end in pairwise((0, *ends.tolist(), len(numbers))):
            # One process writes, so that seeking is safe; Windows does not have os.pwrite.
            os.lseek(self._rows_file, int(numbers[first]) * rows[0].nbytes, os.SEEK_SET)
            rest = memoryview(rows[first:end].tobytes())
            while rest:
                rest = rest[os.write(self._rows_file, rest) :]

    def _collect(self, layout: Layout) -> LinearArrays:
        """Return the linear models where they lie, NaN where there is none."""
        if self.template is None:
            return super()._collect(layout)
        width = layout.width
        try:
            os.ftruncate(self._rows_file, self.grid.size * width * 8)
            nothing = np.full(width, np.nan)
            for k in np.flatnonzero(~self._ok).tolist():
                self._put(k, nothing, layout)
        except OSError as error:
            raise self._refusal(error) from None
        rows: FloatArray = np.memmap(self._folder / "rows.bin", np.float64, "r", shape=(self.grid.size, width))
        return layout.split(rows)

    def _read(self) -> None:
        """Read the complete entries of the journal on the points with complete rows."""
        journal = self._folder / "points.jsonl"
        content = journal.read_bytes() if journal.is_file() else b""
        meanings: list[Any] = []
        points: dict[int, list[Any]] = {}  # what was said of each last
        size = 0
        try:
            for line in content.splitlines(keepends=True):
                text, _, checksum = line.rpartition(_CHECKSUM)
                if checksum != b"%d}\n" % zlib.crc32(text, self._seed):
                    break
                size += len(line)
                entry = json.loads(text + b"}")
                self._explain(entry, meanings)
                points |= {k: fields for k, *fields in entry.get("points", ())}
            self._meanings = len(meanings)
            size_of_row = 8 * Layout(self.template or NOTHING).width
            for k, fields in points.items():
                self._replay(k, fields, meanings, size_of_row)
        except (ValueError, KeyError, IndexError, TypeError) as error:  # written by another version of fmilin
            raise ModelError(
                f"'{journal}' cannot be read ({error}). To start the sweep again, remove the folder '{self._folder}'."
            ) from None
        if size < len(content):
            os.truncate(journal, size)

    def _explain(self, entry: dict[str, Any], meanings: list[Any]) -> None:
        """Take in what points refer to."""
        if "template" in entry:
            order, *groups, parameters, info, sample_time = entry["template"]
            x, u, out = map(_signals, groups)
            self.template = Template(order, x, u, out, tuple(parameters), ModelInfo(**info), sample_time)
            self._numbers["template"] = -1
        elif "choice" in entry:
            states, method = entry["choice"]
            self._numbers["choice", len(self._kinds)] = len(meanings) + 1
            meanings.append(self._choice(_signals(states), tuple(method)))
        elif "remark" in entry:
            kind, message = entry["remark"]
            remark = Remark(kind, message, is_read=True)
            self._numbers["remark", remark] = len(meanings) + 1
            meanings.append(remark)

    def _replay(self, k: int, fields: list[Any], meanings: list[Any], size: int) -> None:
        """Take in a point, unless its row is not the one that was written."""
        if isinstance(fields[0], str):
            self._reasons[k] = fields[0]
        else:
            checksum, choice, *remarks = fields
            os.lseek(self._rows_file, k * size, os.SEEK_SET)
            if zlib.crc32(os.read(self._rows_file, size)) != checksum:
                self.damaged += 1
                return
            self._ok[k] = True
            self._chosen[k] = meanings[choice - 1]
            if remarks:
                meant = tuple(meanings[i - 1] for i in remarks)
                self._remarks.add(k, self._same.setdefault(meant, meant))
        self.done[k] = True

    def close(self) -> None:
        """Close the files; what is done stays."""
        for file in (self._rows_file, self._journal):
            with contextlib.suppress(OSError):
                os.close(file)

    def remove(self) -> None:
        """Remove the folder: the family is complete in its file."""
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _refusal(self, error: OSError) -> UsageError:
        count = int(self.done.sum())
        return UsageError(
            f"Cannot write '{self._folder}': {error.strerror or error}. {count} of {self.grid.size} points are stored "
            "there. Free disk space and continue with resume=True."
        )


def _encode_signals(signals: Signals) -> list[list[Any]]:
    return [[s.name, s.unit, s.nominal, s.start, s.description, list(s.aliases), s.turn] for s in signals]


def _signals(packed: list[list[Any]]) -> Signals:
    return Signals(
        Signal(name, unit, n, s, text, tuple(aliases), *turn)  # folders of earlier versions have no turn
        for name, unit, n, s, text, aliases, *turn in packed
    )
