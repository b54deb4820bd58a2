"""Data classes that are completed when they are used: everything that can be seen is as of ``dataclasses``."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, field
from functools import partial
from typing import Any, ClassVar

import pytest

from fmilin.support.dataclass import dataclass

Decorator = Callable[[type], type]
OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "repr": False, "kw_only": True},
    {"slots": True},
    {"eq": False},
    {"frozen": True, "order": True},
]


def plain(decorate: Decorator) -> Any:
    class Body:
        """A body."""

        name: str
        mass: float = 1.0
        labels: list[str] = field(default_factory=list)
        note: str = field(default="", repr=False, compare=False)
        length: float = field(default=2.0, init=False)
        count: int = field(default=0, kw_only=True)

    return decorate(Body)


def with_a_check(decorate: Decorator) -> Any:
    class Checked:
        """A class with all that is rare."""

        limit: ClassVar[float] = 3.0
        value: float
        scale: InitVar[float] = 1.0  # type: ignore[assignment]  # no decorator is seen here
        scaled: float = field(init=False)

        def __post_init__(self, scale: float) -> None:
            object.__setattr__(self, "scaled", self.value * scale)

        def __repr__(self) -> str:
            return f"<{self.scaled}>"

    return decorate(Checked)


def with_members_that_are_made(decorate: Decorator) -> Any:
    class Made:
        """A class without arguments."""

        members: dict[str, float] = field(default_factory=dict, init=False)

        def __post_init__(self) -> None:
            self.members["a"] = 1.0

    return decorate(Made)


def seen(call: Callable[[], Any]) -> str:
    """Return what comes of a call, or its error, as text."""
    try:
        return repr(call())
    except (TypeError, AttributeError) as error:  # FrozenInstanceError is one
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "none")
def test_objects_behave_as_those_of_dataclasses(options: dict[str, bool]) -> None:
    def looks(decorate: Decorator) -> list[str]:
        made, by_keyword = plain(decorate), options.get("kw_only", False)
        body = made(name="a", mass=2.0) if by_keyword else made("a", 2.0)
        other = made(name="a", mass=2.0, note="another")
        hashed = made(name="a", mass=2.0, labels=())
        return [
            seen(lambda: body) if options.get("repr", True) and options.get("eq", True) else "",
            *(seen(partial(getattr, body, name)) for name in ("name", "mass", "labels", "note", "length", "count")),
            seen(lambda: body == other),
            seen(lambda: body == "a"),
            seen(lambda: body < made(name="b")) if "order" in options else "",
            seen(lambda: hash(hashed) == hash(made(name="a", mass=2.0, labels=()))),
            seen(lambda: dataclasses.replace(body, mass=3.0).mass),
            seen(lambda: dataclasses.astuple(body)),
            seen(lambda: copy.deepcopy(body).mass),
            seen(lambda: setattr(body, "mass", 5.0)),
            seen(lambda: setattr(body, "other", 5.0)) if "slots" not in options else "",
            seen(lambda: delattr(body, "mass")),
            seen(made),
            seen(lambda: made(name="a", mas=1.0)),
            seen(lambda: inspect.signature(made)),
            seen(lambda: [f.name for f in dataclasses.fields(made)]),
            seen(lambda: made.__match_args__),
        ]

    assert looks(dataclass(**options)) == looks(dataclasses.dataclass(**options))


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"frozen": True, "slots": True}], ids=str)
def test_rare_fields_and_methods_that_are_written_stay(options: dict[str, bool]) -> None:
    def looks(decorate: Decorator) -> list[str]:
        checked, made = with_a_check(decorate), with_members_that_are_made(decorate)
        return [
            seen(lambda: checked(2.0, 4.0)),
            seen(lambda: checked(2.0) == checked(2.0, 1.0)),
            seen(lambda: checked.limit),
            seen(lambda: made().members),
            seen(lambda: made() == made()),
            seen(lambda: inspect.signature(checked)),
        ]

    assert looks(dataclass(**options)) == looks(dataclasses.dataclass(**options))


def test_classes_derived_from_one_have_its_fields_and_their_own_signature() -> None:
    @dataclass(frozen=True)
    class Base:
        """A base."""

        x: float

    @dataclasses.dataclass(frozen=True)
    class Derived(Base):
        y: float = 1.0

    class Simple(Base):
        def __init__(self, both: float) -> None:
            super().__init__(both)

    assert Derived(2.0) == Derived(2.0, 1.0)
    assert repr(Derived(2.0)).endswith("Derived(x=2.0, y=1.0)")
    assert list(inspect.signature(Simple).parameters) == ["both"]
    assert Simple(3.0).x == 3.0
    with pytest.raises(FrozenInstanceError):
        setattr(Simple(3.0), "x", 4.0)  # noqa: B010 - type checkers see that it is frozen
    with pytest.raises(TypeError, match="non-frozen"):
        dataclasses.dataclass(type("Loose", (Base,), {"__annotations__": {}}))


@pytest.mark.parametrize("options", [{}, {"frozen": True}, {"frozen": True, "slots": True}], ids=str)
def test_classes_derived_from_one_behave_as_those_of_dataclasses(options: dict[str, bool]) -> None:
    def looks(decorate: Decorator) -> list[str]:
        class Base:
            """A base."""

            x: float
            labels: list[str] = field(default_factory=list)

        base = decorate(Base)
        derived: Any = decorate(
            type("Derived", (base,), {"__annotations__": {"y": float}, "y": 1.0, "__doc__": "One more field."})
        )
        one = derived(2.0, y=3.0)
        return [
            seen(lambda: one),
            seen(lambda: base(2.0)),
            seen(lambda: one == derived(2.0, [], 3.0)),
            seen(lambda: one == base(2.0)),
            seen(lambda: hash(derived(1.0, ())) == hash(derived(1.0, ()))),
            seen(lambda: setattr(one, "x", 5.0)),
            seen(lambda: setattr(one, "y", 5.0)),
            seen(lambda: delattr(one, "y")),
            seen(lambda: inspect.signature(derived)),
            seen(lambda: inspect.signature(base)),
            seen(lambda: dataclasses.replace(derived(2.0), x=3.0).x),
            seen(lambda: copy.deepcopy(derived(2.0)).x),
            seen(lambda: [f.name for f in dataclasses.fields(derived)]),
        ]

    assert looks(dataclass(**options)) == looks(dataclasses.dataclass(**options))


@dataclass(frozen=True, slots=True)
class Point:
    """A class that pickle finds."""

    x: float
    y: float = 0.0


def test_objects_that_were_pickled_are_compared_in_a_process_that_has_made_none() -> None:
    assert pickle.loads(pickle.dumps(Point(1.0))) == Point(1.0)
    code = (
        "import pickle, sys; from tests.support.test_dataclass import Point\n"
        f"a, b = pickle.loads({pickle.dumps([Point(1.0), Point(1.0)])!r})\n"
        "print(a == b, len({a, b}), a)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True 1 Point(x=1.0, y=0.0)\n"
