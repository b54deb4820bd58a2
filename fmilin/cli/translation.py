"""Messages of the core name Python keywords; the command line prints the options that do the same.

``keep_inaccurate=True`` becomes ``--keep-inaccurate``, ``free=["torque"]`` becomes ``--free torque``, and
``fl.audit(loop)`` becomes ``'fmilin audit'``. Text written to files keeps the Python form.
"""

from __future__ import annotations

import ast
import logging
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import click

from fmilin.support.dataclass import dataclass


@dataclass(frozen=True)
class Meaning:
    """The equivalent of a keyword on the command line."""

    option: str
    kind: str  # of its values, as in :mod:`fmilin.options`


UNDESCRIBED: Mapping[str, Meaning] = {
    "deviation": Meaning("--deviation", "switch"),
    "excite": Meaning("--excite", "number"),
    "model": Meaning("--against", "text"),
    "modelica": Meaning("--modelica", "choice"),
    "points": Meaning("--points", "integer"),
    "resume": Meaning("--resume", "switch"),
    "start": Meaning("--set", "assignments"),
    "trim": Meaning("--trim", "switch"),
    "values": Meaning("--set", "assignments"),
}
"""Keywords of functions that no dataclass of :mod:`fmilin.options` describes."""

LIMITS: Mapping[str, Meaning] = {
    "environment": Meaning("--allow-env", "texts"),
    "memory": Meaning("--memory", "number"),
    "network": Meaning("--allow-network", "switch"),
    "processes": Meaning("--allow-processes", "any"),
    "read": Meaning("--allow-read", "texts"),
    "seconds": Meaning("--timeout", "number"),
    "unrestricted": Meaning("--no-isolation", "switch"),
}
"""Keywords of :class:`fmilin.Limits`."""

CONDITIONING: Mapping[str, Meaning] = {
    "balance": Meaning("--balance", "choice"),
    "frequencies": Meaning("--keep-frequencies", "range"),
    "hold": Meaning("--discretize", "choice"),
    "minimal": Meaning("--minimal", "switch"),
    "modal": Meaning("--modal", "switch"),
    "order": Meaning("--reduce", "integer"),
    "sample_time": Meaning("--sample-time", "number"),
    "states": Meaning("--keep-states", "names"),
}
"""Keywords of :class:`fmilin.reduction.minimal.Conditioning`."""


@dataclass(frozen=True)
class Call:
    """The equivalent of a function call on the command line."""

    command: str = ""  # the command that does the same
    option: str = ""  # its option, where the present command has it
    within: str = ""  # the command that has the option, where the present one does not
    positions: Sequence[str] = ()  # keywords of the arguments behind the first one
    keywords: Mapping[str, Meaning] | None = None  # those that mean something else elsewhere


_SIMULATE_TO = {"times": Meaning("--simulate-to", "numbers"), "stop_time": Meaning("--simulate-to", "number")}
_BALANCE = {"by": CONDITIONING["balance"]}
_ORDER = {"order": CONDITIONING["order"]}
_SAMPLE_TIME = {"sample_time": CONDITIONING["sample_time"]}
CALLS: Mapping[str, Call] = {
    "fmilin.adapters.installed_adapters": Call("adapters"),
    "fl.audit": Call("audit"),
    "fl.discover": Call("discover", "--discover"),
    "fl.explain": Call("explain"),
    "fl.explain_zeros": Call("explain"),
    "fl.linearize": Call("linearize"),
    "fl.load": Call(),
    "fl.operating_point": Call(positions=["values"]),
    "lin.plot.eigenvalues": Call("plot"),
    "lin.save_report": Call("report"),
    "fmilin.discovery.tangent.linearize_on_tangent": Call(option="--tangent-only"),
    "fl.periodic_orbit": Call("floquet"),
    "fl.reduction.balance": Call(within="linearize", positions=["by"], keywords=_BALANCE),
    "fl.reduction.balanced_truncation": Call(within="linearize", positions=["order"], keywords=_ORDER),
    "fl.reduction.discretize": Call(
        option="--discretize zoh", within="linearize", positions=["sample_time"], keywords=_SAMPLE_TIME
    ),
    "fl.reduction.keep_frequencies": Call(option="--keep-frequencies LOW:HIGH", within="linearize"),
    "fl.reduction.minimal_realization": Call(option="--minimal", within="linearize"),
    "fl.sandbox_report": Call("info MODEL --verbose"),
    "fl.simulate": Call("simulate"),
    "fl.snapshots": Call(keywords=_SIMULATE_TO),
    "fl.sweep": Call("sweep", positions=["vary"]),
    "fl.trim": Call("trim", "--trim"),
    "fl.verify": Call("verify"),
    "fl.Limits": Call(keywords=LIMITS),
    "fl.Stepping": Call(),
    "FmuOptions": Call(),
    "Conditioning": Call(keywords=CONDITIONING),
}
"""The text printed for a call: the option where the present command has it, else the command with its options."""

_FORM = re.compile(
    r"(?<![\w.`-])(?:"
    r"'(?P<quoted>[^'\n]*)'(?!\w)"
    r"|(?:(?:stepping|limits|fmu)=)?(?P<call>[A-Za-z_][\w.]*)\("
    r"|(?P<keyword>[a-z_]+)="
    r")"
)
_OPTION_BEFORE = re.compile(r"--[a-z][\w-]*[ =](?:[^\s,]+,)*$")
_BARE = re.compile(r"(?:True|False|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Z][A-Z_0-9]*|\.\.\.)(?![\w=(]|\.\w)")
_NOTHING = re.compile(r"(?=$|[\s),;:.`])")
_CLOSING = {"[": "]", "{": "}", "(": ")"}


@cache
def meanings() -> Mapping[str, Sequence[Meaning]]:
    """Return what each keyword may mean on the command line; the first meaning that takes a value holds."""
    from fmilin.options import DESCRIBED, describe

    table: dict[str, list[Meaning]] = {}
    for options in DESCRIBED:
        for described in describe(options):
            if described.option is not None:
                table.setdefault(described.keyword, []).append(Meaning(described.option, described.kind))
    for keyword, meaning in UNDESCRIBED.items():
        table.setdefault(keyword, []).append(meaning)
    return table


def in_options(text: str) -> str:
    """Return a text with Python forms of known keywords and calls as options; names in quotes stay as they are."""
    parts, position = [], 0
    while (match := _FORM.search(text, position)) is not None:
        parts.append(text[position : match.start()])
        end, translated = match.end(), None
        if match["call"]:
            end, translated = _translate_call(text, match)
        elif match["keyword"] and not _OPTION_BEFORE.search(text, 0, match.start()):
            end, translated = _translate_keyword(text, match)
        parts.append(text[match.start() : end] if translated is None else translated)
        position = end
    return "".join((*parts, text[position:]))


class _LogFilter(logging.Filter):
    """Words what is logged in options."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = in_options(record.getMessage()), ()
        return True


_LOG_FILTER = _LogFilter()


@contextmanager
def log_in_options() -> Iterator[None]:
    """Word what the sandbox logs in options, as long as a command runs."""
    logger = logging.getLogger("fmilin.sandbox")
    logger.addFilter(_LOG_FILTER)
    try:
        yield
    finally:
        logger.removeFilter(_LOG_FILTER)


def _translate_keyword(text: str, match: re.Match[str]) -> tuple[int, str | None]:
    """Return where ``keyword=value`` ends, and its option; None where it is not one."""
    keyword, begin = match["keyword"], match.end()
    possible = _present_meanings(keyword) or meanings().get(keyword, ())
    end = _end_of_value(text, begin)
    if end is None:
        return begin, None
    if end == begin:
        return end, possible[0].option if possible else None
    value = _parse(text[begin:end])
    if value is None:
        return begin, None
    return end, _adapter_options(value) if keyword == "options" else _option(possible, value)


def _present_meanings(keyword: str) -> Sequence[Meaning]:
    """Return what a keyword means for the options that only the present command has: there they come first."""
    from fmilin.cli.derive import DerivedOption

    context = click.get_current_context(silent=True)
    if context is None:
        return ()
    return [
        Meaning(option.flag, option.kind)
        for option in context.command.params
        if isinstance(option, DerivedOption) and option.is_of_commands_only and option.keyword == keyword
    ]


def _translate_call(text: str, match: re.Match[str]) -> tuple[int, str | None]:
    """Return where a call ends, and what the command line has for it; None where it has nothing."""
    name, opening = match["call"], match.end() - 1
    end = _end_of_brackets(text, opening)
    call = CALLS.get(name) or CALLS.get(f"fl.{name}")
    if end is None:
        return match.end(), None
    if call is None:  # maybe words, as in "the orbit(s)"; keywords in a call of another function stay
        return end, None
    parsed = _parse(f"call{text[opening:end]}")
    if not isinstance(parsed, ast.Call):
        return match.end(), None
    arguments = list(zip(call.positions, parsed.args[1:], strict=False))
    arguments += [(keyword.arg, keyword.value) for keyword in parsed.keywords if keyword.arg is not None]
    options = []
    for keyword, value in arguments:
        own_meaning = (call.keywords or {}).get(keyword)
        option = _adapter_options(value) if keyword == "options" else _option(_possible(keyword, own_meaning), value)
        if option is None:
            return end, None
        options.append(option)
    words = " ".join((call.option, *options) if call.option else options)
    if call.within and words and not _has_option(words.split()[0]):
        return end, f"'fmilin {call.within} {words}'"
    if call.option and (not call.command or _has_option(call.option)):
        return end, words
    if call.command:
        return end, f"'{' '.join((f'fmilin {call.command}', *options))}'"
    return end, " ".join(options) or None


def _possible(keyword: str, own_meaning: Meaning | None) -> Sequence[Meaning]:
    return meanings().get(keyword, ()) if own_meaning is None else [own_meaning]


def _adapter_options(value: ast.expr) -> str | None:
    """Return the options that a mapping of an adapter's options stands for."""
    if not isinstance(value, ast.Dict):
        return None
    pairs = zip(value.keys, value.values, strict=True)
    options = [None if key is None else _option(meanings().get(_plain(key), ()), item) for key, item in pairs]
    return None if None in options else " ".join(filter(None, options))


def _has_option(option: str) -> bool:
    """Whether the present command has it; outside of any command yes."""
    context = click.get_current_context(silent=True)
    return context is None or any(option in parameter.opts for parameter in context.command.params)


def _option(possible: Sequence[Meaning], value: ast.expr) -> str | None:
    """Return the option with such a value; None where none of the meanings takes it."""
    for meaning in possible:
        words = _words(value, meaning.kind)
        if words is not None:
            return " ".join(f"{meaning.option} {word}".rstrip() for word in words)
    return None


def _words(value: ast.expr, kind: str) -> list[str] | None:
    """Return what stands behind an option, which is repeated for several; None for a value of another kind."""
    match value, kind:
        case (_, "any"):
            return [""]
        case (ast.List(elts=items), _):
            return _words_of_list(items, kind)
        case (ast.Dict(keys=keys, values=values), "assignments" | "assignment lists" | "special"):
            pairs = zip(keys, values, strict=True)
            return [_quote_word(f"{_name(key)}{_side(item)}") for key, item in pairs if key is not None] or None
        case (ast.Tuple(elts=[low, high]), "range"):
            return [f"{_plain(low)}:{_plain(high)}"]
        case _:
            word = _word(value, kind)
            return None if word is None else [word]


def _words_of_list(items: Sequence[ast.expr], kind: str) -> list[str] | None:
    match kind:
        case "names" | "texts" | "numbers" if [_plain(item) for item in items] == ["Ellipsis"]:
            return [""]
        case "texts":
            return [_quote_word(_plain(item)) for item in items]
        case "names":
            return [_quote_word(",".join(_name(item) for item in items))]
        case "numbers":
            return [",".join(_plain(item) for item in items)]
        case _:
            return None


def _word(value: ast.expr, kind: str) -> str | None:
    """Return a single value as it stands behind an option: nothing behind a switch, None for another kind."""
    match value, kind:
        case (ast.Constant(value=bool(truth)), "switch" | "off"):
            return "" if truth == (kind == "switch") else None
        case (ast.Constant(value=bool() | None), _):
            return None
        case (ast.Constant(value=dots), "choice" | "text" | "path" | "number" | "integer") if dots is ...:
            return ""
        case (ast.Constant(value=str(word)), "choice" | "text" | "path" | "names" | "texts"):
            return _quote_word(word)
        case (ast.Constant(value=int() | float()) | ast.UnaryOp(), "number" | "integer"):
            return _plain(value)
        case (ast.Name() | ast.BinOp(left=ast.Name()), "choice" | "text" | "path" | "number" | "integer"):
            return _plain(value).partition(" ")[0]  # of a placeholder such as GIB * 2**30 the unit of the option
        case _:
            return None


def _side(value: ast.expr) -> str:
    """Return what stands behind a name: nothing for dots, else ``=`` with a value, LO:HI, or a list of values."""
    match value:
        case ast.Constant(value=dots) if dots is ...:
            return ""
        case ast.Tuple(elts=sides):
            return f"={':'.join(_plain(side) for side in sides)}"
        case ast.List(elts=items):
            return f"=[{','.join(_plain(item) for item in items)}]"
        case _:
            return f"={_plain(value)}"


def _plain(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)


def _name(value: ast.expr) -> str:
    """Return a name as the command line reads it: in backquotes where a comma would end it."""
    name = _plain(value)
    return f"`{name}`" if "," in re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", name) else name


def _quote_word(word: str) -> str:
    """Return a word as a shell reads it."""
    if shlex.quote(word) == word or not word:
        return word
    return shlex.quote(word) if set(word) & set('"$`\\!') else f'"{word}"'


def _parse(source: str) -> ast.expr | None:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _end_of_value(text: str, begin: int) -> int | None:
    """Return where the Python value ends that begins there, ``begin`` for none; None for anything else."""
    if bare := _BARE.match(text, begin):
        return bare.end()
    if _NOTHING.match(text, begin):
        return begin
    if text[begin] in _CLOSING:
        return _end_of_brackets(text, begin)
    return _end_of_string(text, begin) if text[begin] in "'\"" else None


def _end_of_string(text: str, begin: int) -> int | None:
    position = begin + 1
    while position < len(text) and text[position] != text[begin]:
        position += 2 if text[position] == "\\" else 1
    return position + 1 if position < len(text) else None


def _end_of_brackets(text: str, begin: int) -> int | None:
    """Return where brackets end that begin there; brackets in strings do not count."""
    expected, position = [_CLOSING[text[begin]]], begin + 1
    while position < len(text):
        character = text[position]
        if character in "'\"":
            end = _end_of_string(text, position)
            if end is None:
                return None
            position = end
            continue
        if character in _CLOSING:
            expected.append(_CLOSING[character])
        elif character == expected[-1]:
            expected.pop()
            if not expected:
                return position + 1
        position += 1
    return None
