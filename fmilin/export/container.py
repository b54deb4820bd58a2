"""Containers: formats of files that hold results of several kinds, as names with arrays, numbers and texts.

To add a container, add a file to ``fmilin/export/codecs`` with a class that derives from :class:`Container` and is
decorated with :func:`register_container`. The command line imports these files before it parses its arguments: imports
of numpy stand inside methods.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fmilin.formats import Codec, Holds, Writing, register_codec
from fmilin.support.dataclass import dataclass

if TYPE_CHECKING:
    from fmilin.export.record import Record, Stored

    ToArrays = Callable[[Any], Record]
    FromArrays = Callable[[Stored, str], Any]


@dataclass(frozen=True)
class Content:
    """One kind of result in a container: the attributes of a :class:`~fmilin.formats.Codec`."""

    holds: Holds
    position: int
    audience: str
    content: str


class Container(Codec[Any]):
    """A format that knows no kind of result. It converts a record to bytes, and bytes to what is stored in them."""

    contents: ClassVar[tuple[Content, ...]]
    is_complete = True
    is_readable = True
    limits: ClassVar[str] = ""  # which of such files are read, for messages: "(MATLAB 5 to 7)"

    def __init__(self, content: Content) -> None:
        self.holds = content.holds
        self.position = content.position
        self.audience = content.audience
        self.content = content.content

    def encode(self, record: Record) -> bytes:
        """Return the content of a file."""
        raise NotImplementedError

    def decode(self, content: bytes) -> Stored:
        """Return what stands in a file. Any error of damaged data may be raised."""
        raise NotImplementedError

    def dumps(self, result: Any, writing: Writing) -> bytes:
        """Return the content of a file."""
        return self.encode(find_conversions(self.holds)[0](result))

    def loads(self, content: bytes, origin: str) -> Any:
        """Return the result from the content of a file. Raises ModelError if it is damaged, or holds another kind."""
        with self.describe_decoding_errors(origin):
            stored = self.decode(content)
        return self.restore(stored, origin)

    def restore(self, stored: Stored, origin: str) -> Any:
        """Return the result from what stands in a file. Raises ModelError if the checksum in it does not fit."""
        from fmilin.export.checksum import require_intact

        require_intact(stored.integrity, origin)
        return find_conversions(self.holds)[1](stored, origin)

    def describe_decoding_errors(self, origin: str) -> AbstractContextManager[None]:
        """Raise ModelError, which names the file, for errors of damaged data."""
        from fmilin.export.archives import describe_read_errors

        return describe_read_errors(origin, f"{self.holds} that fmilin reads{self.limits}")


ContainerClass = TypeVar("ContainerClass", bound=type[Container])


def register_container(container_class: ContainerClass) -> ContainerClass:
    """Add a format for each kind of result that a container holds, as a decorator of its class."""
    for content in container_class.contents:
        register_codec(container_class(content))
    return container_class


def find_conversions(holds: Holds) -> tuple[ToArrays, FromArrays]:
    """Return ``to_arrays`` and ``from_arrays`` of a kind of result."""
    if holds == "linear model":
        from fmilin.export import delayed_record, linear_record

        return linear_record.to_arrays, delayed_record.restore_linear_model
    if holds == "delayed linear model":
        from fmilin.export import delayed_record

        return delayed_record.to_arrays, delayed_record.from_arrays
    if holds == "descriptor system":
        from fmilin.export import linear_record

        return linear_record.descriptor_to_arrays, linear_record.descriptor_from_arrays
    if holds == "family":
        from fmilin.export import family_record

        return family_record.to_arrays, family_record.from_arrays
    if holds == "periodic model":
        from fmilin.export import periodic_record

        return periodic_record.to_arrays, periodic_record.from_arrays
    raise ValueError(f"Results of the kind '{holds}' have no description as arrays.")
