#!/usr/bin/env python3
"""Writes python/vlp/_abi.py from include/vlp.h: constants, structs, option defaults and functions for ctypes.

    python3 python/generate.py

Reads the C of that header and no other: typedefs of enums and structs, VLP_API functions, #define of numbers and
of _INIT initializers. python/tests/test_abi.py checks the result against a compiler.
"""

import keyword
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "include" / "vlp.h"
OUTPUT = ROOT / "python" / "vlp" / "_abi.py"

# C type: its ctypes name, its name in annotations.
SCALARS = {
    "int32_t": ("c.c_int32", "int"),
    "int64_t": ("c.c_int64", "int"),
    "uint64_t": ("c.c_uint64", "int"),
    "size_t": ("c.c_size_t", "int"),
    "unsigned": ("c.c_uint", "int"),
    "int": ("c.c_int", "int"),
    "float": ("c.c_float", "float"),
    "double": ("c.c_double", "float"),
    "bool": ("c.c_bool", "bool"),
    "char": ("c.c_char", "bytes"),
}


class Header:
    """What the header declares, in its order."""

    def __init__(self, text: str) -> None:
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = re.sub(r"\\\n", " ", text)
        self.constants: dict[str, str] = {}
        self.enums: set[str] = set()
        self.structs: dict[str, list[tuple[str, str, str]]] = {}  # fields: name, ctypes, annotation
        self.initializers: dict[str, str] = {}
        self.functions: dict[str, tuple[str, list[str]]] = {}
        self.define(text)
        code = re.sub(r"^\s*#.*$", " ", text, flags=re.M)
        code = code[code.index("typedef enum vlp_status") : code.rindex("#ifdef") if "#ifdef" in code else len(code)]
        for match in re.finditer(
            r"(?:typedef )?enum (\w*)\s*\{(.*?)\}\s*\w*;|typedef struct (\w+) \{(.*?)\n\} \w+;|"
            r"VLP_API\s+([^;{]*?)\((.*?)\)\s*;",
            code,
            flags=re.S,
        ):
            enum, values, struct, fields, result, parameters = match.groups()
            if values is not None:
                self.add_enum(enum, values)
            elif struct:
                self.structs[struct] = [field for line in fields.split(";") for field in self.fields(line)]
            else:
                self.add_function(result, parameters)

    def define(self, text: str) -> None:
        for name, value in re.findall(r"^#define (VLP_\w+)\s+(\S.*?)\s*$", text, flags=re.M):
            if name.endswith("_INIT"):
                self.initializers[name] = value
            elif re.fullmatch(r"\(?-?[\d.]+\)?", value):
                self.constants[name] = value.strip("()")

    def add_enum(self, name: str, values: str) -> None:
        if name:
            self.enums.add(name)
        number = 0
        for item in filter(None, (part.strip() for part in values.split(","))):
            key, _, value = item.partition("=")
            number = int(value) if value else number
            self.constants[key.strip()] = str(number)
            number += 1

    def size(self, text: str) -> str:
        return text if text.isdigit() else self.constants[text]

    def kind(self, base: str, stars: int) -> tuple[str, str]:
        """The ctypes name and the annotation of `base` with that many stars."""
        if base == "void" and stars == 0:
            return "None", "None"
        if base == "char" and stars > 0:
            kind, note, stars = "c.c_char_p", "bytes | None", stars - 1
        elif base in SCALARS:
            kind, note = SCALARS[base]
        elif base in self.enums:
            kind, note = "c.c_int", "int"
        elif base in self.structs:
            kind, note = base, base
        elif stars > 0:  # void, and structs that only the library knows
            kind, note, stars = "c.c_void_p", "int | None", stars - 1
        else:
            raise SystemExit(f"generate: what is '{base}'?")
        for _ in range(stars):
            kind, note = f"c.POINTER({kind})", "Any"
        return kind, note

    def fields(self, line: str) -> list[tuple[str, str, str]]:
        line = " ".join(line.split())
        if not line:
            return []
        function = re.fullmatch(r"(.+?)\(\*(\w+)\)\((.*)\)", line)
        if function:
            result, name, parameters = function.groups()
            kinds = [self.result(result), *self.parameters(parameters)]
            return [(name, f"c.CFUNCTYPE({', '.join(kinds)})", "Any")]
        words = re.sub(r"\bconst\b|\bstruct\b", " ", line).split()
        found = []
        for declared in " ".join(words[1:]).split(","):
            stars, name, arrays = re.fullmatch(r"\s*([* ]*)(\w+)\s*((?:\[\w+\])*)\s*", declared).groups()  # type: ignore[union-attr]
            kind, note = self.kind(words[0], stars.count("*"))
            for array in reversed(re.findall(r"\w+", arrays)):
                char = kind == "c.c_char"
                kind, note = f"{kind} * {self.size(array)}", "bytes" if char else "Any"
                kind = f"({kind})"
            found.append((name, kind, note))
        return found

    def result(self, text: str) -> str:
        base = re.sub(r"\bconst\b|\*", " ", text).strip()
        return self.kind(base, text.count("*"))[0]

    def parameters(self, text: str) -> list[str]:
        if text.strip() == "void":
            return []
        found = []
        for parameter in text.split(","):
            array = parameter.count("[")
            parameter = re.sub(r"\bconst\b|\bstruct\b|\[\w*\]", " ", parameter)
            found.append(self.kind(parameter.replace("*", " ").split()[0], parameter.count("*") + array)[0])
        return found

    def add_function(self, result: str, parameters: str) -> None:
        result = " ".join(result.split())
        name = re.search(r"(\w+)$", result).group(1)  # type: ignore[union-attr]
        self.functions[name] = (self.result(result[: -len(name)]), self.parameters(parameters))

    def values(self, text: str) -> list[str]:
        """The values of an initializer as Python."""
        parts = re.findall(r"\{[^{}]*\}|[^,{}]+", text.strip()[1:-1])
        return [self.value(part.strip()) for part in parts if part.strip()]

    def value(self, text: str) -> str:
        text = self.initializers.get(text, text)
        if text.startswith("{"):
            return f"({', '.join(self.values(text))},)"
        fixed = {"NULL": "None", "false": "False", "true": "True", r"'\0'": r'b"\0"'}
        return fixed.get(text) or self.constants.get(text) or text


def options_of(name: str) -> str:
    """VLP_RUN_OPTIONS_INIT: vlp_run_options."""
    return name[: -len("_INIT")].lower()


def python(header: Header) -> str:
    lines = [
        '"""The interface of include/vlp.h for ctypes. Written by python/generate.py: do not edit."""',
        "",
        "from __future__ import annotations",
        "",
        "import ctypes as c",
        "from typing import Any",
        "",
    ]
    lines += [f"{name} = {value}" for name, value in header.constants.items()]
    defaults = {options_of(name): value for name, value in header.initializers.items()}
    for struct, fields in header.structs.items():
        lines += ["", "", f"class {struct}(c.Structure):"]
        lines += [f"    {name}: {note}" for name, _, note in fields if not keyword.iskeyword(name)]
        lines += ["    _fields_ = ["]
        lines += [f'        ("{name}", {kind}),' for name, kind, _ in fields]
        lines += ["    ]"]
        if struct in defaults:
            lines += ["", "    @classmethod", f"    def default(cls) -> {struct}:"]
            pairs = zip((name for name, _, _ in fields), header.values(defaults[struct]))
            lines += [f"        return cls({', '.join(f'{name}={value}' for name, value in pairs if value != 'None')})"]
    lines += ["", "", "# Name: result, parameters.", "FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {"]
    for name, (result, parameters) in header.functions.items():
        lines += [f'    "{name}": ({result}, [{", ".join(parameters)}]),']
    return "\n".join([*lines, "}", ""])


def main() -> None:
    OUTPUT.write_text(python(Header(HEADER.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
