"""The public header as a page: sections, functions and types with their comments."""
import re

FUNCTION = re.compile(r"^VLP_API [^(]*?\b(vlp_\w+)\(", re.M)
TYPE = re.compile(r"^typedef (?:struct|enum) (vlp_\w+)", re.M)
SECTION = re.compile(r"^/\* -{4} (.*?) -{4,} \*/$", re.M)


def names_in(code):
    """The functions and types that a piece of the header declares, in order."""
    found = [(match.start(), match[1]) for pattern in (FUNCTION, TYPE) for match in pattern.finditer(code)]
    return [name for _, name in sorted(found)]


def inline(text, known, own=()):
    """A sentence of a comment as Markdown, with links to what it names."""
    out = []
    for i, part in enumerate(text.split("`")):
        if i % 2:
            out.append(f"`{part}`")
            continue
        part = part.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        part = re.sub(r"([*|\[\]])", r"\\\1", part)
        part = re.sub(r"\b(vlp_\w+)\b(?:\(\))?", lambda match: f"[`{match[1]}`](#{match[1]})"
                      if match[1] in known and match[1] not in own else f"`{match[0]}`", part)
        out.append(re.sub(r"(?<![`\w])(VLP_\w+)\b", r"`\1`", part))
    return "".join(out)


def in_columns(lines):
    """Whether indented lines are a list or a table, which stay as they are."""
    return all(re.match(r"\s+\d+\. ", line) or re.search(r"\S {2,}\S", line) for line in lines)


def prose(comment, known, own=()):
    """A comment as Markdown: paragraphs, lists, and what is indented as it is."""
    text = re.sub(r"^/\*+ ?|\s*\*/$", "", comment.strip())
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in text.splitlines()]
    out, paragraph, kept, item = [], [], [], []

    def end():
        if paragraph:
            out.append(inline(" ".join(paragraph), known, own))
        if item:
            out.append("- " + inline(" ".join(item), known, own))
        if kept and in_columns(kept):
            out.append("```text\n" + "\n".join(kept) + "\n```")
        elif kept:
            out.append(inline(" ".join(line.strip() for line in kept), known, own))
        paragraph.clear(), kept.clear(), item.clear()

    for line in lines:
        stripped = line.strip()
        if not stripped:
            end()
        elif stripped.startswith("- "):
            end()
            item.append(stripped[2:])
        elif line.startswith("  ") and item:
            item.append(stripped)
        elif line.startswith("  "):
            if not kept:
                end()
            kept.append(line)
        else:
            if kept or item:
                end()
            paragraph.append(stripped)
    end()
    return re.sub(r"(^- .*)\n\n(?=- )", r"\1\n", "\n\n".join(out), flags=re.M)


def pieces(body):
    """(comment, code) of a section, in order: a comment belongs to the code up to the next one."""
    comment, code = "", []
    for part in re.split(r"(^/\*.*?\*/$|^$)", body, flags=re.M | re.S):
        if part.startswith("/*"):
            if comment or "".join(code).strip():
                yield comment, "".join(code).strip("\n")
            comment, code = part, []
        elif part == "" and "".join(code).strip():
            yield comment, "".join(code).strip("\n")
            comment, code = "", []
        else:
            code.append(part)
    if comment or "".join(code).strip():
        yield comment, "".join(code).strip("\n")


def page(header):
    known = set(names_in(header))
    body = header[header.index("#define VLP_VERSION_MAJOR"):header.rindex("#ifdef __cplusplus")]
    out = ["# C API\n", "`#include <vlp.h>`, `pkg-config --cflags --libs vlp`. This page is made from the header.\n",
           prose(header[:header.index("*/") + 2], known)]
    parts = SECTION.split(body)
    for title, text in zip(parts[1::2], parts[2::2]):
        out.append(("## " if re.match(r"\d+\. ", title) else "### ") + title)
        for comment, code in pieces(text):
            names = names_in(code)
            if names:
                anchors = "".join(f'<a id="{name}"></a>' for name in names)
                out.append(f"{anchors}**" + ", ".join(f"`{name}`" for name in names) + "**")
            if comment:
                out.append(prose(comment, known, names))
            if code:
                out.append("```c\n" + re.sub(r"[ \t]+\\$", " \\\\", code, flags=re.M) + "\n```")
    return "\n\n".join(out) + "\n"
