#!/usr/bin/env python3
"""Man pages: what the program's --help says, then the prose of docs/man, through scdoc.

    man.py PROGRAM PROSE OUT     PROSE: docs/man; OUT gets vlp.1, a page for each command, and vlp-settings.5

PROSE/vlp-train.scd has further sections of vlp-train(1): examples, files. A command without one has a page
all the same. PROSE/vlp.1.scd and PROSE/vlp-settings.5.scd are whole pages, with @commands@ or @settings@ where
the list goes. @VERSION@ is the program's version.
"""
import os
import re
import subprocess
import sys

from commands import read_commands, read_settings, read_version

EXIT_STATUS = """# EXIT STATUS

*0*
	Done.

*1*
	Failed. One line on standard error says what failed, where, and what to do.

*2*
	Wrong usage.
"""


def escape(text):
    """Text in which scdoc sees no markup."""
    return re.sub(r"([\\_*#\[\]<>|~.-])", r"\\\1", text)


def option_text(option):
    names = [f"*-{escape(option.short)}*"] if option.short else []
    if option.long:
        names.append(f"*--{escape(option.long)}*")
    text = ", ".join(names)
    if option.value:
        text += ("=" if option.long else " ") + f"_{escape(option.value)}_"
    return f"{text}\n\t{escape(option.help)}\n"


def synopsis_text(command):
    return "++\n".join(f"*{command.name}* [_OPTION_...] {escape(usage)}" for usage in command.usages) + "\n"


def description_text(command):
    return escape(command.about) + "\n" + (f"\n{escape(command.notes)}\n" if command.notes else "")


def options_text(command):
    return "\n".join(option_text(option) for option in command.options)


def commands_text(commands):
    return "\n".join(f"*{command.name}*\n\t{escape(command.summary)}: *{command.name.replace(' ', '-')}*(1)\n"
                     for command in commands)


def settings_text(settings):
    lines, section = [], ""
    for setting in settings:
        if setting.section != section:
            section = setting.section
            lines.append(f"## {escape(section)}\n")
        lines.append(f"*{escape(setting.name)}* = {escape(setting.default)}\n"
                     f"\t{escape(setting.help)} ({escape(setting.range)})\n")
    return "\n".join(lines)


def command_page(command, prose):
    name = command.name.replace(" ", "-")
    text = [f'{name}(1) "vlp @VERSION@" "vlp"\n', f"# NAME\n\n{name} - {escape(command.summary)}\n"]
    if command.parts:
        text.append("# SYNOPSIS\n\n" + "++\n".join(synopsis_text(part).rstrip() for part in command.parts) + "\n")
        text.append("# COMMANDS\n")
        for part in command.parts:
            text.append(f"## {part.name}\n\n{synopsis_text(part)}\n{description_text(part)}\n{options_text(part)}")
    else:
        text.append(f"# SYNOPSIS\n\n{synopsis_text(command)}")
        text.append(f"# DESCRIPTION\n\n{description_text(command)}")
        text.append(f"# OPTIONS\n\n{options_text(command)}")
    see = "# SEE ALSO\n"
    before, _, others = prose.partition(see)
    text += [before.strip() + "\n"] if before.strip() else []
    text.append(EXIT_STATUS)
    text.append(f"{see}\n*vlp*(1), *vlp-settings*(5)" + (", " + others.strip() if others.strip() else "") + "\n")
    return "\n".join(text)


def main():
    program, prose, out = sys.argv[1:]
    commands, version = read_commands(program), read_version(program)
    pages = {}
    for command in commands:
        name = command.name.replace(" ", "-")
        path = f"{prose}/{name}.scd"
        text = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
        pages[f"{name}.1"] = command_page(command, text)
    for page in ("vlp.1", "vlp-settings.5"):
        with open(f"{prose}/{page}.scd", encoding="utf-8") as file:
            pages[page] = (file.read().replace("@commands@\n", commands_text(commands))
                           .replace("@settings@\n", settings_text(read_settings(program)))
                           .replace("@exit@\n", EXIT_STATUS))
    os.makedirs(out, exist_ok=True)
    for page, text in pages.items():
        # A page with the date of its build would make every build different.
        made = subprocess.run(["scdoc"], input=text.replace("@VERSION@", version), text=True, capture_output=True,
                              env=dict(os.environ, SOURCE_DATE_EPOCH=os.environ.get("SOURCE_DATE_EPOCH", "0")))
        if made.returncode != 0:
            raise SystemExit(f"man.py: {page}: {made.stderr}")
        with open(f"{out}/{page}", "w", encoding="utf-8") as file:
            file.write(made.stdout)


main()
