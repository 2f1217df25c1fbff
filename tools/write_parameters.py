"""Write the parameters of every method into its class: docstring sections and dataclass fields.

``make parameters`` runs this after a change of `hopefold.specification`. With ``--check`` nothing
is written: the exit status is 1 if a file is not up to date.

In the class of each method it replaces

- the sections of the docstring from ``Parameters`` up to ``Examples`` (or up to its end);
- the fields between the two marker comments. If there are no markers, it removes fields with names
  of parameters and adds the block below the docstring.

Imports that the fields need are added. Sorting them is left to ruff.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SOURCE))

from hopefold.specification import METHODS, Method, Parameter  # noqa: E402

BEGIN = "    # Parameters, written by `make parameters`."
END = "    # End of the parameters."
INDENT, WIDTH = " " * 4, 100

#: Where names in annotations come from.
IMPORTS = {"field": "dataclasses", "Any": "typing", "Sequence": "collections.abc"}


def main() -> int:
    """Rewrite all classes, or check them; return the exit status."""
    checking = "--check" in sys.argv[1:]
    stale = []
    for path in dict.fromkeys(path_of(method) for method in METHODS.values()):
        before = path.read_text(encoding="utf-8")
        after = before
        for method in METHODS.values():
            if path_of(method) == path:
                after = with_parameters(after, method)
        if after != before:
            stale.append(path)
            if not checking:
                path.write_text(after, encoding="utf-8")
    for path in stale:
        name = path.relative_to(SOURCE.parent)
        print(f"{name} is not up to date: run make parameters." if checking else f"wrote {name}")
    return int(checking and bool(stale))


def path_of(method: Method) -> Path:
    """Return the file that defines the class of a method."""
    return SOURCE.joinpath(*method.module.split(".")).with_suffix(".py")


def with_parameters(source: str, method: Method) -> str:
    """Return a module's source with the docstring and the fields of a class made anew."""
    fields = [field_line(parameter) for parameter in method.parameters]
    source = with_fields(source, method, fields)
    source = with_docstring(source, method)
    for name, module in IMPORTS.items():
        if any(name in line for line in fields):
            source = with_import(source, module, name)
    return source


def field_line(parameter: Parameter) -> str:
    """Return the dataclass field of a parameter; ``n_components`` alone is positional."""
    value = literal(parameter.default)
    if parameter.name == "n_components":
        value = f"field(default={value}, kw_only=False)"
    return f"{INDENT}{parameter.name}: {parameter.annotation} = {value}"


def literal(value: Any) -> str:
    """Return a default as ruff writes it."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def with_fields(source: str, method: Method, fields: list[str]) -> str:
    """Return the source with the block of fields replaced, or added below the docstring."""
    block = [BEGIN, *fields, END]
    lines = source.splitlines()
    node = class_of(source, method)
    places = [n for n in range(node.lineno, node.end_lineno or 0) if lines[n] in (BEGIN, END)]
    if len(places) == 2:
        lines[places[0] : places[1] + 1] = block
        return "\n".join(lines) + "\n"
    names = {parameter.name for parameter in method.parameters}
    written = [
        one
        for one in node.body
        if isinstance(one, ast.AnnAssign)
        and isinstance(one.target, ast.Name)
        and one.target.id in names
    ]
    for one in reversed(written):
        del lines[one.lineno - 1 : one.end_lineno]
    end = docstring_of(node).end_lineno or 0
    if any(line.strip() for line in lines[end : end + 1]):
        block = [*block, ""]
    lines[end:end] = ["", *block]
    return "\n".join(lines) + "\n"


def with_docstring(source: str, method: Method) -> str:
    """Return the source with the generated sections of the docstring replaced."""
    docstring = docstring_of(class_of(source, method))
    lines = source.splitlines()
    first, end = docstring.lineno - 1, docstring.end_lineno or 0
    sections = {
        lines[n].strip(): n for n in range(first, end - 1) if set(lines[n + 1].strip()) == {"-"}
    }
    stop = sections.get("Examples", end - 1)
    start = min((n for n in sections.values()), default=stop)
    made = sections_of(method)
    if "Examples" not in sections and lines[stop].strip() != '"""':
        raise SystemExit(f"{method.name}: end the docstring with a line of its own.")
    lines[start:stop] = made
    return "\n".join(lines) + "\n"


def sections_of(method: Method) -> list[str]:
    """Return the lines of the sections Parameters, Attributes and References."""
    made = heading("Parameters")
    for parameter in method.parameters:
        made.append(
            f"{INDENT}{parameter.name} : {parameter.kind}, default={literal(parameter.default)}"
        )
        made += wrapped(parameter.prose, INDENT * 2)
    made += ["", *heading("Attributes")]
    for attribute in method.attributes:
        made.append(f"{INDENT}{attribute.names} : {attribute.kind}")
        made += wrapped(attribute.prose, INDENT * 2)
    if method.references:
        made += ["", *heading("References")]
    for number, reference in enumerate(method.references, start=1):
        made += wrapped(f".. [{number}] {' '.join(reference.split())}", INDENT, INDENT + "   ")
    return [*made, ""]


def heading(title: str) -> list[str]:
    """Return the title of a section, and the line below it."""
    return [INDENT + title, INDENT + "-" * len(title)]


def wrapped(prose: str, first: str, others: str | None = None) -> list[str]:
    """Return prose as lines of at most 100 characters."""
    return fill(
        " ".join(prose.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    ).splitlines()


def with_import(source: str, module: str, name: str) -> str:
    """Return the source with ``from module import name``, if it does not bind the name yet."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    if any(alias.name == name and node.module == module for node in found for alias in node.names):
        return source
    lines = source.splitlines()
    after = next(node.end_lineno or 0 for node in found if node.module == "__future__")
    lines[after:after] = ["", f"from {module} import {name}"]
    return "\n".join(lines) + "\n"


def class_of(source: str, method: Method) -> ast.ClassDef:
    """Return the definition of a method's class."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == method.name:
            return node
    raise SystemExit(f"{method.module} does not define the class {method.name}.")


def docstring_of(node: ast.ClassDef) -> ast.Expr:
    """Return the docstring of a class."""
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return first
    raise SystemExit(f"{node.name} has no docstring.")


if __name__ == "__main__":
    sys.exit(main())
