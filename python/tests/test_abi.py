"""The definitions for ctypes are those of the header."""

import ctypes
import pathlib
import runpy
import shutil
import subprocess

import pytest

from vlp import _abi as abi

STRUCTS = {name: kind for name, kind in vars(abi).items() if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
CONSTANTS = {name: value for name, value in vars(abi).items() if name.startswith("VLP_")}


def test_generated_file_is_that_of_the_header(source):
    made = runpy.run_path(str(source / "python" / "generate.py"))
    header = made["Header"]((source / "include" / "vlp.h").read_text())
    assert made["python"](header) == pathlib.Path(abi.__file__).read_text()


def scalars(value):
    """The numbers of a struct, in order; pointers as whether they are set."""
    if isinstance(value, ctypes.Structure):
        return [number for name, _ in value._fields_ for number in scalars(getattr(value, name))]
    if isinstance(value, ctypes.Array):
        return [number for each in value for number in scalars(each)]
    if isinstance(value, bytes):
        return [value[0] if value else 0]
    return [float(value)] if isinstance(value, (bool, int, float)) else [float(bool(value))]


@pytest.fixture(scope="module")
def printed(source, tmp_path_factory):
    """What a C program says about the header: line by line, a name and numbers."""
    compiler = shutil.which("gcc")
    if not compiler or not (source / "include" / "vlp.h").exists():
        pytest.skip("there is no compiler here")
    lines = ['#include <stdio.h>', '#include <string.h>', '#include "vlp.h"', "int main(void) {"]
    for name, kind in STRUCTS.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in kind._fields_:
            lines.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));')
        if hasattr(kind, "default"):
            lines.append(f"{{ {name} value; memset(&value, 0, sizeof value); value = ({name}){name.upper()}_INIT;")
            lines.append(f'printf("{name}_INIT"); for (size_t i = 0; i < sizeof value; i++) printf(" %d", ((unsigned char *)&value)[i]);')
            lines.append('printf("\\n"); }')
    lines += [f'printf("{name} %.17g\\n", (double)({name}));' for name in CONSTANTS]
    folder = tmp_path_factory.mktemp("abi")
    (folder / "abi.c").write_text("\n".join([*lines, "return 0; }"]))
    subprocess.run([compiler, f"-I{source}/include", folder / "abi.c", "-o", folder / "abi"], check=True)
    output = subprocess.run([folder / "abi"], check=True, capture_output=True, text=True).stdout
    return {line.split()[0]: [float(number) for number in line.split()[1:]] for line in output.splitlines()}


def test_structs_have_the_layout_of_c(printed):
    assert len(STRUCTS) > 40
    for name, kind in STRUCTS.items():
        assert printed[name] == [ctypes.sizeof(kind)], name
        for field, _ in kind._fields_:
            at = getattr(kind, field)
            assert printed[f"{name}.{field}"] == [at.offset, at.size], f"{name}.{field}"


def test_constants_are_those_of_c(printed):
    assert CONSTANTS["VLP_ERROR_STOPPED"] == 6
    for name, value in CONSTANTS.items():
        assert printed[name] == [value], name


def test_defaults_are_those_of_the_initializers(printed):
    for name, kind in STRUCTS.items():
        if hasattr(kind, "default"):
            theirs = kind.from_buffer_copy(bytes(int(byte) for byte in printed[f"{name}_INIT"]))
            assert scalars(kind.default()) == scalars(theirs), name
