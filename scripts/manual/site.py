#!/usr/bin/env python3
"""The documents as the source of a site: docs/, README.md, CONTRIBUTING.md and CHANGELOG.md with their links
adapted, and pages made from the program and the header.

    site.py PROGRAM OUT     OUT/mkdocs.yml and OUT/docs

docs/mkdocs.yml has the navigation. Pages in it that do not exist (of a part that is not built yet) are left out.
"""
import os
import re
import shutil
import sys

import c_api
from commands import read_commands, read_settings, read_version

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
MADE = ("settings.md", "commands.md", "c-api.md")  # from the program and the header
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def read(path):
    with open(f"{root}/{path}", encoding="utf-8") as file:
        return file.read()


def markdown(text):
    """Text of --help in a Markdown table or paragraph."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def settings_page(settings):
    lines = ["# Settings\n", "Every setting of a training, for recipes and `--set`. This page is made from the program.\n"]
    section = ""
    for setting in settings:
        if setting.section != section:
            section = setting.section
            lines += ["", f"## {section}\n", "| setting | default | what it is | range |", "|---|---|---|---|"]
        lines.append(f"| `{setting.name}` | `{setting.default}` | {markdown(setting.help)} | {markdown(setting.range)} |")
    return "\n".join(lines) + "\n"


def commands_page(commands):
    lines = ["# Commands\n", "Every command and option, from `vlp COMMAND --help`; `man vlp` has the same with examples.\n"]
    common = ("json", "quiet", "seed", "threads")
    for command in (part for command in commands for part in command.parts or [command]):
        lines += [f"## {command.name}\n", "```text", *(f"{command.name} [OPTION...] {usage}" for usage in command.usages),
                  "```\n", markdown(command.about) + "\n"]
        if command.notes:
            lines.append(markdown(command.notes) + "\n")
        lines += ["| option | what it does |", "|---|---|"]
        for option in command.options:
            if option.long in common:
                continue
            value = option.value.replace("|", "\\|")
            text = f"{'-' + option.short if option.short else ''}{', ' if option.short and option.long else ''}"
            text += f"--{option.long}={value}" if option.long and value else f"--{option.long}" if option.long else f" {value}"
            lines.append(f"| `{text}` | {markdown(option.help)} |")
        lines.append("| `--json`, `-q, --quiet`, `--seed=N`, `--threads=N` | as in every command |\n")
    return "\n".join(lines) + "\n"


def adapt(text, folder, linked):
    """Links of a page in `folder` of the repository as links of the site; other files of the repository that it
    names are added to `linked`."""
    def target(match):
        path, hash_, anchor = match[2].partition("#")
        if not path or re.match(r"[a-z]+:", path):
            return match[0]
        inside = os.path.normpath(os.path.join(folder, path))
        if inside in OUTSIDE:
            return match[1] + OUTSIDE[inside] + hash_ + anchor + match[3]
        if inside.startswith("docs/"):
            return match[1] + inside.removeprefix("docs/") + hash_ + anchor + match[3]
        linked.add(inside)
        return match[1] + inside + match[3]
    return LINK.sub(target, text)


def navigation(config, pages):
    """The lines of a configuration without pages that do not exist."""
    return "".join(line for line in config.splitlines(keepends=True)
                   if not (match := re.match(r"\s*- .*?([\w-]+\.md)\s*$", line)) or match[1] in pages)


def main():
    program, out = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(f"{root}/docs/images", f"{out}/docs/images")
    pages, linked = {}, set()
    for name in sorted(os.listdir(f"{root}/docs")):
        if name.endswith(".md"):
            pages[name] = adapt(read(f"docs/{name}"), "docs", linked)
    for source, name in OUTSIDE.items():
        pages[name] = adapt(read(source), "", linked)
    pages["settings.md"] = settings_page(read_settings(program))
    pages["commands.md"] = commands_page(read_commands(program))
    pages["c-api.md"] = c_api.page(read("include/vlp.h"))
    for name, text in pages.items():
        with open(f"{out}/docs/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    for path in linked:
        os.makedirs(f"{out}/docs/{os.path.dirname(path)}", exist_ok=True)
        shutil.copy(f"{root}/{path}", f"{out}/docs/{path}")
    shutil.copy(f"{root}/docs/site.css", f"{out}/docs/site.css")
    with open(f"{out}/mkdocs.yml", "w", encoding="utf-8") as file:
        file.write(navigation(read("docs/mkdocs.yml"), pages).replace("@VERSION@", read_version(program)))


if __name__ == "__main__":
    main()
