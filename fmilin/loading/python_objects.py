"""Models in Python files and packages: ``path/to/file.py:name`` and ``package.module:name``, with literal keywords."""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fmilin.adapters.registry import convert_object
from fmilin.errors import FmilinError, ModelError, UnknownNameError, UsageError, missing_file
from fmilin.model.interface import Model

_PYTHON = re.compile(
    r"(?P<where>.+?\.py|[A-Za-z_]\w*(?:\.\w+)*):(?P<name>[A-Za-z_]\w*)\s*(?P<arguments>\(.*\))?", re.DOTALL
)


def names_python(source: str) -> bool:
    """Whether a text names something in Python, rather than a file."""
    return _PYTHON.fullmatch(source) is not None


def model_in_python(source: str) -> Model:
    """Return the model that ``path/to/file.py:name`` or ``package.module:name`` names; see :func:`fmilin.load`."""
    model = python_object(source)
    if not isinstance(model, Model):
        model = convert_object(model, Path(source.rpartition(":")[0]).stem)
    if not isinstance(model, Model):
        raise ModelError(f"'{source}' is a {type(model).__name__}, not a fmilin Model or a function that returns one.")
    return model


def python_object(source: str) -> Any:
    """Return what ``path/to/file.py:name`` or ``package.module:name`` names, functions called; None for other texts."""
    match = _PYTHON.fullmatch(source)
    if match is None:
        return None
    where, name = match["where"], match["name"]
    arguments = _arguments(name, match["arguments"] or "")
    with _explain_errors(match[0]):
        module = _file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    try:
        with _explain_errors(match[0], but=AttributeError):
            named = getattr(module, name)  # a package may import lazily here
    except AttributeError:
        public = [n for n in dir(module) if not n.startswith("_")]
        raise UnknownNameError.among(name, public, f"defined in '{where}'") from None
    if callable(named) and not isinstance(named, Model):
        _require_callable(named, f"{where}:{name}", arguments)
        with _explain_errors(match[0]):
            named = named(**arguments)
    elif match["arguments"]:
        raise UsageError(f"'{where}:{name}' takes no arguments: it is not a function but a {type(named).__name__}.")
    return named


def _require_callable(function: Callable[..., Any], name: str, arguments: Mapping[str, Any]) -> None:
    """Reject keywords that a function does not take, before the blame falls on its file."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of builtins nothing may be known
        return
    try:
        signature.bind(**arguments)
    except TypeError as error:
        parameters = signature.parameters.values()
        keywords = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if unknown := [argument for argument in arguments if argument not in keywords]:
            raise UnknownNameError.among(unknown[0], keywords, f"a keyword of '{name}'") from None
        raise UsageError(
            f"'{name}{signature}' cannot be called with these arguments: {error}. Write arguments as NAME=VALUE."
        ) from None


def _arguments(name: str, text: str) -> dict[str, Any]:
    """Return the literal keyword arguments; the text is parsed, never evaluated."""
    if not text:
        return {}
    try:
        call = ast.parse(f"f{text}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or any(k.arg is None for k in call.keywords):
            raise ValueError  # noqa: TRY301 - one message for all that is wrong with the text
        return {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        raise UsageError(
            f"The arguments of '{name}{text}' cannot be read: only keywords with literal values are allowed, as in "
            f"'{name}(loops=20, damping=0.5)'."
        ) from None


def _file(path: Path) -> Any:
    """Import a file as a module of its own, with its folder importable meanwhile, as if it were run."""
    location = path.absolute()
    if not location.is_file():
        raise missing_file(path)
    name = f"fmilin_user_{re.sub(r'[^0-9A-Za-z]', '_', path.stem)}"
    spec = importlib.util.spec_from_file_location(name, location)
    if spec is None or spec.loader is None:  # pragma: no cover - cannot happen for a file that ends with .py
        raise ModelError(f"'{path}' cannot be imported as Python code.")
    module = importlib.util.module_from_spec(spec)
    folder = str(location.resolve().parent)
    sys.modules[name] = module  # dataclasses and pickle look their module up there
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    return module


@contextlib.contextmanager
def _explain_errors(source: str, but: type[Exception] = FmilinError) -> Iterator[None]:
    """Turn what goes wrong in the user's own code into one paragraph; our own errors and ``but`` pass.

    A wrong use of fmilin in that code is a model that cannot be read, unless the arguments came with the request.
    """
    try:
        yield
    except UsageError as error:
        if source.endswith(")"):
            raise
        raise ModelError(str(error)) from error
    except (FmilinError, but):
        raise
    except (Exception, SystemExit) as error:
        last = traceback.format_exception_only(error)[-1].strip()
        where = _where(error)
        what = "that file" if where else "its arguments"
        raise ModelError(
            f"'{source}' cannot be loaded: {last}{where}. Correct {what} and try to load it again."
        ) from error


def _where(error: BaseException) -> str:
    """Return file and line of the user's code; empty where fmilin's own was called."""
    if isinstance(error, SyntaxError):
        return f" ({error.filename}, line {error.lineno})"
    ours = f"{Path(__file__).parents[1]}{os.sep}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    theirs = [frame for frame in frames if not frame.filename.startswith(ours)]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs and frames[0] is theirs[0] else ""
