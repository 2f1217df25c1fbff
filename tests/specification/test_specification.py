"""The specification is complete, agrees with the classes, and checks what it specifies."""

from __future__ import annotations

import ast
import dataclasses
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hopefold.errors import InvalidParameter
from hopefold.specification import METHODS, RENAMED, check_parameters, method_of
from hopefold.specification.parameter import accept

ROOT = Path(__file__).parents[2]
ALL = [
    pytest.param(method, parameter, id=f"{method.name}-{parameter.name}")
    for method in METHODS.values()
    for parameter in method.parameters
]


def test_the_specification_imports_nothing_heavy():
    code = (
        "import sys, hopefold.specification;"
        "heavy = {'torch', 'sklearn', 'numpy', 'scipy'} & {*sys.modules};"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_fields_of_a_class_are_those_of_the_specification(method):
    fields = dataclasses.fields(method.load_class())
    declared = {field.name: (field.default, field.type) for field in fields}
    assert declared == {one.name: (one.default, one.annotation) for one in method.parameters}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_class_writes_out_all_fields_and_sections_in_its_source(method):
    """So that an editor shows them: nothing is added to a docstring or a signature at run time."""
    source = Path(find_spec(method.module).origin).read_text(encoding="utf-8")
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    (found,) = (node for node in classes if node.name == method.name)
    annotated = [node for node in found.body if isinstance(node, ast.AnnAssign)]
    names = [node.target.id for node in annotated if "ClassVar" not in ast.unparse(node.annotation)]
    assert names == [one.name for one in method.parameters]
    docstring = ast.get_docstring(found)
    for one in method.parameters:
        assert f"\n{one.name} : {one.kind}, default=" in docstring
    for section in ("Parameters", "Attributes", "References", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in docstring


def test_docstrings_and_fields_are_up_to_date():
    """If this fails: ``make parameters``."""
    tool = [sys.executable, ROOT / "tools" / "write_parameters.py", "--check"]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("method", METHODS)
def test_the_defaults_are_accepted(method):
    check_parameters(method, {})


@pytest.mark.parametrize(("method", "parameter"), ALL)
def test_a_parameter_is_described(method, parameter):
    assert parameter.prose.endswith(".")
    assert parameter.kind
    assert parameter.annotation


@pytest.mark.parametrize(
    ("method", "parameter"), [one for one in ALL if one.values[1].check is not accept]
)
def test_a_value_of_no_use_is_refused_by_its_name(method, parameter):
    with pytest.raises(InvalidParameter, match=f"^{parameter.name}="):
        check_parameters(method.name, {parameter.name: object()})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"augment": "affine"}, "augment='affine' needs the shape of the images"),
        ({"objective": "spread", "exemplars": None}, "set exemplars='joint'"),
        ({"order": (2, 2)}, r"order=\(2, 2\) is for 2 layers, but n_units='auto' for 1"),
        ({"n_units": (8, 8), "n_factors": (4,)}, r"n_factors=\(4,\) is for 1 layer, but"),
        ({"n_units": (8, 0)}, "n_units of a layer=0"),
        ({"n_units": ()}, r"n_units=\(\) is empty"),
        ({"order": (21,)}, "order of a layer=21: give a whole number from 1 to 20"),
        ({"structure": 1.5}, "structure=1.5: give a number from 0 to 1, or 'auto'"),
        ({"missing_label": [1]}, r"missing_label=\[1\]: give the one number or text"),
        ({"hidden": 1}, "SHOPE has no parameter hidden"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(values, message):
    with pytest.raises(InvalidParameter, match=message):
        check_parameters("SHOPE", values)


def test_layers_agree_with_their_sizes():
    check_parameters("SHOPE", {"order": (2, 1), "n_units": (8, 4), "n_factors": 5})


def test_old_names_are_not_in_use():
    names = {one.name for method in METHODS.values() for one in method.parameters}
    assert not RENAMED.keys() & names
    assert set(RENAMED.values()) <= names


def test_a_subclass_has_the_parameters_of_its_base():
    base = METHODS["LDA"].load_class()
    assert method_of(type("Mine", (base,), {})) is METHODS["LDA"]
