"""Transformations of Modelica text before the front end reads it, where that rejects or miscounts correct Modelica.

Each one is a function from text to text that keeps every line where it stands, so that messages name the right one.
``UPSTREAM.md`` lists the faults of the front end behind them, with the smallest model of each.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fmilin_modelica.class_reader import read_classes
from fmilin_modelica.libraries import SKIPPED

__all__ = [
    "EVALUATE_FAULT",
    "edit_text",
    "mask_comments_and_strings",
    "rewrite",
    "write_evaluations_of_parameters",
]

EVALUATE_FAULT = "annotation Evaluate is only allowed on parameter"

_KEYWORDS = (
    "algorithm|and|else|elseif|equation|extends|for|if|import|in|loop|model|not|or|protected|public|return|then|type|"
    "when|while"
)
_TYPE = rf"(?!(?:{_KEYWORDS})\b)[A-Za-z_][\w.]*"
_GROUP = r"\((?:[^;()]|\((?:[^;()]|\([^;()]*\))*\))*\)"  # parentheses, three deep
_DECLARED = re.compile(rf"(?<![\w.])(?:(parameter)\s+)?{_TYPE}\s+([A-Za-z_]\w*)\s*(?:{_GROUP}\s*)?(?==(?!=))")
_SECTION = re.compile(r"\b(?:public|protected)\b")
_DERIVATIVE = re.compile(r"(?<![\w.])der\s*\(")
_REFERENCE = re.compile(r"\s*\.?[A-Za-z_]\w*(?:\s*\[[^\[\]]*\])?(?:\s*\.\s*[A-Za-z_]\w*(?:\s*\[[^\[\]]*\])?)*\s*")
_SUM = re.compile(rf"\s*[+-]?{_REFERENCE.pattern}(?:[+-]{_REFERENCE.pattern})*")
_ARRAY = re.compile(rf"{{({_REFERENCE.pattern}(?:,{_REFERENCE.pattern})*)}}")
_LOOP = re.compile(r"\bfor\s+(\w+)\s+in\b")
_SECTION_OR_CLASS = re.compile(
    r"\b(?:initial\s+)?equation\b|\b(?:public|protected)\b|\b(?:model|block|class)\s+\w+"
    r"|\bend\s+(?!if\b|for\b|when\b|while\b)\w+\s*;"
)
_CLASS = r"(?:model|block|class|record|package|function|connector|operator|type)"
_CLASS_BEGIN_OR_END = re.compile(rf"\bend\s+(?!(?:if|for|when|while)\b)(\w+)\s*;|\b{_CLASS}\s+(?:extends\s+)?(\w+)")
_CONSTANT_DECLARATION = r"\b(?:parameter|constant)\s+[^;=(]*?(?<![\w.]){}\b\s*[\[(=;,]"
_LOCAL_BASE = re.compile(r"\bencapsulated\s+partial\s+(?:model|block|class)\s+(\w+)")
_ANNOTATION = re.compile(r"\bannotation\s*\(")
_TABLE_VALUE = re.compile(r"\bget(?:Table1D|Table2D|TimeTable)Value\w*\s*\(")


def rewrite(text: str, *, splits_sums: bool = True) -> str:
    """Return a text that the front end reads as the language means it; ``splits_sums`` of ``der(a - b)``."""
    text = unwrap_local_bases(write_table_values_as_equations(write_pade_delay_as_equations(text)))
    return write_derivatives_of_variables(text, splits_sums=splits_sums)


_PADE_FUNCTION = re.compile(r"\bfunction\s+padeCoefficients2\b.*?\bend\s+padeCoefficients2\s*;\s*equation\b", re.DOTALL)
_PADE_CALL = re.compile(r"\([^();=]*\)\s*=\s*padeCoefficients2\s*\([^();]*\)\s*;")
_PADE_PARAMETER = re.compile(
    r"\bparameter\s+(Real\s+(?:a1|b11|c|d|s)\b(?:\s*\[[^\[\]]*\])?)\s*\((?:\s*each)?\s*fixed\s*=\s*false\s*\)"
)
_PADE_EQUATIONS = (
    "Real alpha[n + 1], beta[n + 1]; equation alpha[1] = 1; beta[1] = 1; "
    "for i in 1:n loop alpha[i + 1] = alpha[i]*delayTime*(n - i + 1)/((n + m - i + 1)*i); "
    "beta[i + 1] = -beta[i]*delayTime*(if i <= m then (m - i + 1)/((n + m - i + 1)*i) else 0); "
    "a1[i] = -alpha[n + 1 - i]/alpha[n + 1]; c[i] = beta[n + 1 - i] - d*alpha[n + 1 - i]; end for; "
    "for i in 1:n - 1 loop s[i] = 1; end for; b11 = 1/alpha[n + 1]; d = beta[n + 1]/alpha[n + 1]; "
)


def write_pade_delay_as_equations(text: str) -> str:
    """Return a text in which the block PadeDelay of the Standard Library has equations for its coefficients.

    The front end rejects the function that computes them, with a condition in a loop. They are those of the textbook,
    alpha_k = (n + m - k)! n! T^k / ((n + m)! k! (n - k)!). States are not scaled, with ``balance=true`` neither.
    """
    if "padeCoefficients2" not in text:
        return text
    code = mask_comments_and_strings(text)
    function = _PADE_FUNCTION.search(code)
    call = None if function is None else _PADE_CALL.search(code, function.end())
    if function is None or call is None:
        return text
    edits = [(*call.span(), "\n" * code.count("\n", *call.span()))]
    edits += [(*found.span(), found[1]) for found in _PADE_PARAMETER.finditer(code, 0, function.start())]
    lines = "\n" * code.count("\n", *function.span())
    edits.append((*function.span(), lines + _PADE_EQUATIONS))
    return edit_text(text, edits)


def write_table_values_as_equations(text: str) -> str:
    """Return a text in which values that are looked up in tables are variables with equations of their own.

    That is, ``parameter Real mu0 = getTable1DValue(id, 1, 0)`` and parameters that depend on it. The front end counts
    the equation of such a declaration twice, and that of a parameter without an unknown: clutches, brakes and gears
    with losses are "unbalanced" then.
    """
    if _TABLE_VALUE.search(text) is None:
        return text
    code = mask_comments_and_strings(text)
    values = _TABLE_VALUE
    names: list[str] = []
    edits: list[tuple[int, int, str]] = []
    for declaration in _DECLARED.finditer(code):
        end = code.find(";", declaration.end())
        is_value = _TABLE_VALUE.search(code, declaration.end(), end) is not None
        if end < 0 or not (is_value or (declaration[1] and values.search(code, declaration.end(), end))):
            continue
        names.append(declaration[2])
        values = re.compile(rf"{_TABLE_VALUE.pattern}|(?<![\w.])(?:{'|'.join(names)})\b(?!\s*[=(])")
        if declaration[1]:
            edits.append((*declaration.span(1), ""))
        section = [found[0] for found in _SECTION.finditer(code, 0, declaration.start())][-1:]
        edits.append((declaration.end(), declaration.end(), f"; equation {declaration[2]} "))
        edits.append((end + 1, end + 1, f" {''.join(section) or 'public'}"))
    return edit_text(text, edits)


def unwrap_local_bases(text: str) -> str:
    """Return a text in which classes have the elements of encapsulated partial ones that they declare and extend.

    The front end looks a name that such a class inherits up in the class around it, and rejects it there.
    """
    if "encapsulated" not in text:
        return text
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    for base in _LOCAL_BASE.finditer(code):
        name = base[1]
        end = re.compile(rf"\bend\s+{name}\s*;").search(code, base.end())
        clauses = list(re.finditer(rf"\bextends\s+{name}\s*;", code))
        if end is None or len(clauses) != 1 or len(re.findall(rf"(?<!\w){name}\b", code)) != 3:
            continue
        edits += [(*clauses[0].span(), ""), (*base.span(), ""), (*end.span(), "public")]
        edits += _remove_description(text, code, base.end())
        edits += _remove_annotation(code, base.end(), end.start())
    return edit_text(text, edits)


def _remove_description(text: str, code: str, place: int) -> list[tuple[int, int, str]]:
    """Return the edit that removes the description behind the name of a class."""
    begin = place + len(text[place:]) - len(text[place:].lstrip())
    if not text.startswith('"', begin):
        return []
    end = begin + len(code[begin:]) - len(code[begin:].lstrip())
    last = text.rfind('"', begin, end)
    return [(begin, last + 1, "\n" * text.count("\n", begin, last))]


def _remove_annotation(code: str, begin: int, end: int) -> list[tuple[int, int, str]]:
    """Return the edit that removes the annotation of a class, the last thing in it."""
    for annotation in _ANNOTATION.finditer(code, begin, end):
        closing = _closing_parenthesis(code, annotation.end() - 1)
        if code[closing + 1 : end].strip() == ";":
            lines = "\n" * code.count("\n", annotation.start(), end)
            return [(annotation.start(), end, lines)]
    return []


def write_derivatives_of_variables(text: str, *, splits_sums: bool = True) -> str:
    """Return a text in which ``der`` has variables as arguments, no expressions: the front end takes nothing else.

    ``der({a, b})`` becomes ``{der(a), der(b)}``, and ``der(a - b)`` ``(der(a) - der(b))``, which holds for arrays as
    well; parameters and constants of the class are left out. Another expression, ``der(m*v)``, has to be a scalar: it
    becomes a variable of its own, declared before the equations or the declaration with ``der``. Without
    ``splits_sums`` so does a sum, since it may contain parameters that are declared in other classes, ``der(x -
    body.L)``: the front end does not differentiate those.
    """
    if _DERIVATIVE.search(text) is None:
        return text
    code = mask_comments_and_strings(text)
    edits: list[tuple[int, int, str]] = []
    count = 0
    for derivative in _DERIVATIVE.finditer(code):
        end = _closing_parenthesis(code, derivative.end() - 1)
        argument = code[derivative.end() : end].strip()
        if end < 0 or not argument or _REFERENCE.fullmatch(argument):
            continue
        if _SUM.fullmatch(argument) and splits_sums:
            edits.append((derivative.start(), end + 1, _differentiate_sum(argument, code, derivative.start())))
            continue
        entries = _ARRAY.fullmatch(argument)
        if entries is not None:
            differentiated = ", ".join(f"der({entry.strip()})" for entry in _split_entries(entries[1]))
            edits.append((derivative.start(), end + 1, f"{{{differentiated}}}"))
            continue
        place, opening = _place_of_declaration(code, derivative.start())
        loops = _LOOP.findall(code, place, derivative.start())
        if "der" in argument or any(re.search(rf"\b{index}\b", argument) for index in loops):
            continue
        count += 1
        name = f"der_argument_{count}"
        edits.append((place, place, f"{opening}Real {name} = {' '.join(argument.split())}; "))
        edits.append((derivative.start(), end + 1, f"der({name})"))
    return edit_text(text, edits)


def _split_entries(entries: str) -> list[str]:
    """Return what stands between commas outside of subscripts."""
    return re.split(r",(?![^\[\]]*\])", entries)


def _differentiate_sum(argument: str, code: str, place: int) -> str:
    """Return ``(der(a)-der(b))`` of ``a - b``; parameters and constants that the class declares have no derivative."""
    signs = re.findall(r"[+-]", re.sub(r"\[[^\[\]]*\]", "", argument))
    references = [term[0].strip() for term in _REFERENCE.finditer(re.sub(r"^\s*[+-]", "", argument))]
    names = [re.split(r"\W", reference)[0] for reference in references]  # none of ``.A.b``
    signs = ["+", *signs] if len(signs) < len(references) else signs
    scope = _find_enclosing_class(code, place)
    terms = [
        f"{sign}der({reference})"
        for sign, reference, name in zip(signs, references, names, strict=True)
        if "." in reference or not re.search(_CONSTANT_DECLARATION.format(name), scope)
    ]
    if not terms:  # of parameters alone, which may be arrays
        return f"(0*({argument}))"
    return f"({''.join(terms).removeprefix('+')})"


def _find_enclosing_class(code: str, place: int) -> str:
    """Return the text of the innermost class around a place, with blanks for the classes inside of it."""
    begins: list[tuple[str, int]] = []
    nested: list[tuple[int, int]] = []
    for found in _CLASS_BEGIN_OR_END.finditer(code):
        if found[2]:
            begins.append((found[2], found.end()))
            continue
        names = [name for name, _ in begins]
        if found[1] not in names:
            continue
        while begins[-1][0] != found[1]:  # short definitions, ``model A = B``, do not end
            begins.pop()
        begin = begins.pop()[1]
        if begin <= place < found.start():
            inner = [(first - begin, last - begin) for first, last in nested if first >= begin]
            return _blank(code[begin : found.start()], inner)
        nested.append((begin, found.start()))
    return code


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
    """Return a text with blanks at some places."""
    for begin, end in spans:
        text = f"{text[:begin]}{' ' * (end - begin)}{text[end:]}"
    return text


def _place_of_declaration(code: str, place: int) -> tuple[int, str]:
    """Return where a variable can be declared for a place in a text, and what has to stand before it."""
    beginnings = list(_SECTION_OR_CLASS.finditer(code, 0, place))
    last = beginnings[-1] if beginnings else None
    if last is not None and "equation" in last[0]:
        return last.start(), "protected "
    begin = max(code.rfind(";", 0, place) + 1, 0 if last is None else last.end())
    return begin + len(code[begin:]) - len(code[begin:].lstrip()), ""  # after the description of a class


def _closing_parenthesis(code: str, begin: int) -> int:
    """Return the place of the parenthesis that closes the one at ``begin``; -1 without any."""
    depth = 0
    for place in range(begin, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return place
    return -1


@lru_cache(maxsize=4)  # several transformations of one text, one after the other
def mask_comments_and_strings(text: str) -> str:
    """Return a text of the same length with blanks for comments and strings; the ends of lines stay."""
    return SKIPPED.sub(_blank_line_by_line, text)


def _blank_line_by_line(skipped: re.Match[str]) -> str:
    return "\n".join(" " * len(line) for line in skipped[0].split("\n"))


def edit_text(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return a text with other words at some places, given by begin and end."""
    parts = []
    place = len(text)
    for begin, end, words in sorted(edits, reverse=True):
        parts += [text[end:place], words]
        place = begin
    return "".join([text[:place], *reversed(parts)])


def write_evaluations_of_parameters(text: str) -> str:
    """Return a text in which variables have no annotation ``Evaluate``: the front end allows it on parameters alone.

    It becomes an annotation of this adapter, ``__fmilin_Evaluate``, which tools ignore.
    """
    if "Evaluate" not in text:
        return text
    tokens, classes = read_classes(text)
    places: set[int] = set()
    for found in (inner for top in classes for inner in top.list_all()):
        for component in found.components.values():
            if not component.prefixes & {"parameter", "constant"}:
                clause = range(component.token, component.clause_end)
                places |= {tokens[place].begin for place in clause if tokens[place].text == "Evaluate"}
    return edit_text(text, [(place, place, "__fmilin_") for place in places])
