#!/usr/bin/env python3
"""Completion for bash, zsh and fish, from the program's --help.

    completion.py PROGRAM OUT     OUT gets vlp.bash, _vlp (zsh) and vlp.fish
"""
import os
import re
import sys

from commands import read_commands, read_settings, read_version

# The words that an option takes; its --help has to name each of them (tests/check_manual.py).
WORDS = {
    "--device": "auto cpu cuda",
    "--split": "valid test",
    "--side": "head tail both",
    "--by": "relation side mapping distance",
    "--filter": "train valid test",
    "--baselines": "pagerank",
    "--on-error": "stop skip",
    "--component": "path embeddings aggregator",
    "--format": "tsv csv ntriples nquads turtle trig",
}
FOLDERS = ("DIR", "RUN", "OUT", "RUN|DIR")


def kind_of(option):
    """How the value of an option is completed: "words ...", "folder", "file", "setting", "model", "any" or ""."""
    if not option.value:
        return ""
    # The same name may take other words in another command.
    words = WORDS.get(option.name, "").split()
    if words and all(re.search(rf"\b{word}\b", option.help) for word in words):
        return "words " + " ".join(words)
    if option.name == "--set":
        return "setting"
    if option.name == "--model":
        return "model"
    if option.value in FOLDERS:
        return "folder"
    return "file" if option.value == "FILE" else "any"


def spellings(option):
    return ([f"-{option.short}"] if option.short else []) + ([f"--{option.long}"] if option.long else [])


def leaves(commands):
    for command in commands:
        yield from command.parts or [command]


def words_of(command):
    return command.name.split()[1:]


# ---- bash ----

BASH = """# bash completion for vlp @VERSION@, made from its --help.
_vlp() {
    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    # Bash breaks words at '='.
    if [[ $current == = ]]; then
        current=
    elif [[ $option == = && $COMP_CWORD -ge 2 ]]; then
        option=${COMP_WORDS[COMP_CWORD-2]}
    fi
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W '@COMMANDS@ --help --version' -- "$current")
        return
    fi
    case $command in
@GROUPS@    esac
    local options= values=
    case $command in
@OPTIONS@    esac
    case "$command $option" in
@VALUES@    esac
    case $values in
        folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        setting) compopt -o nospace; mapfile -t COMPREPLY < <(compgen -S = -W '@SETTINGS@' -- "$current") ;;
        any) ;;
        ?*) mapfile -t COMPREPLY < <(compgen -W "$values" -- "$current") ;;
        *)
            if [[ $current == -* ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
            else
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            fi
            ;;
    esac
}
complete -F _vlp vlp
"""


def bash(commands, settings, models):
    groups, options, values = "", "", ""
    for command in commands:
        if command.parts:
            name = words_of(command)[0]
            parts = " ".join(words_of(part)[1] for part in command.parts)
            groups += (f"        {name})\n            if [[ $COMP_CWORD -eq 2 ]]; then\n"
                       f"                mapfile -t COMPREPLY < <(compgen -W '{parts} --help' -- \"$current\")\n"
                       f"                return\n            fi\n"
                       f"            command=\"{name} ${{COMP_WORDS[2]}}\"\n            ;;\n")
    for command in leaves(commands):
        name = " ".join(words_of(command))
        names = " ".join(spelling for option in command.options for spelling in spellings(option))
        options += f"        '{name}') options='{names} --help' ;;\n"
        for option in command.options:
            kind = kind_of(option)
            if not kind:
                continue
            value = {"setting": "setting", "model": models}.get(kind, kind.removeprefix("words "))
            patterns = "|".join(f"'{name} {spelling}'" for spelling in spellings(option))
            values += f"        {patterns}) values='{value}' ;;\n"
    return (BASH.replace("@COMMANDS@", " ".join(words_of(command)[0] for command in commands))
            .replace("@GROUPS@", groups).replace("@OPTIONS@", options).replace("@VALUES@", values)
            .replace("@SETTINGS@", settings))


# ---- zsh ----

def zsh_text(text):
    return text.replace("'", "'\\''")


def zsh_help(text):
    return zsh_text(re.sub(r"([\[\]:\\])", r"\\\1", text))


def zsh_option(option, settings, models):
    kind = kind_of(option)
    action = {"": "", "any": ":%s: ", "folder": ":%s:_files -/", "file": ":%s:_files",
              "setting": f":%s:({' '.join(name + '=' for name in settings.split())})",
              "model": f":%s:({models})"}.get(kind, f":%s:({kind.removeprefix('words ')})")
    action = zsh_text(action % option.value.replace(":", "\\:") if "%s" in action else action)
    repeat = "*" if option.name == "--set" or "repeated" in option.help else ""
    names = spellings(option)
    if len(names) == 1:
        equals = ("=" if option.long else "+") if kind else ""
        return f"'{repeat}{names[0]}{equals}[{zsh_help(option.help)}]{action}'"
    long = names[1] + ("=" if kind else "")
    short = names[0] + ("+" if kind else "")
    return f"'({names[0]} {names[1]})'{{{short},{long}}}'[{zsh_help(option.help)}]{action}'"


def zsh_describe(title, commands, indent):
    rows = "".join(f"{indent}    '{words_of(command)[-1]}:{zsh_text(command.summary)}'\n" for command in commands)
    return f"{indent}local -a {title}=(\n{rows}{indent})\n{indent}_describe command {title}\n"


def zsh(commands, settings, models):
    lines = ["#compdef vlp", "# zsh completion for vlp @VERSION@, made from its --help.", "_vlp() {",
             "    if (( CURRENT == 2 )); then", zsh_describe("commands", commands, "        ") + "        return",
             "    fi", "    local command=$words[2]", "    shift words", "    (( CURRENT-- ))"]
    for command in commands:
        if command.parts:
            name = words_of(command)[0]
            lines += [f"    if [[ $command == {name} ]]; then", "        if (( CURRENT == 2 )); then",
                      zsh_describe("parts", command.parts, "            ") + "            return", "        fi",
                      f'        command="{name} $words[2]"', "        shift words", "        (( CURRENT-- ))", "    fi"]
    lines.append("    case $command in")
    for command in leaves(commands):
        rows = " \\\n            ".join(zsh_option(option, settings, models) for option in command.options)
        lines.append(f"    '{' '.join(words_of(command))}')\n        _arguments -s \\\n            {rows} \\\n"
                     "            '--help[Give this help list]' \\\n            '*:file:_files'\n        ;;")
    return "\n".join(lines + ["    esac", "}", '_vlp "$@"', ""])


# ---- fish ----

def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def fish(commands, settings, models):
    first = " ".join(words_of(command)[0] for command in commands)
    lines = ["# fish completion for vlp @VERSION@, made from its --help.",
             f"complete -c vlp -n 'not __fish_seen_subcommand_from {first}' -f",
             f"complete -c vlp -n 'not __fish_seen_subcommand_from {first}' -l version -d 'Print the version'",
             "complete -c vlp -l help -d 'Give this help list'"]
    for command in commands:
        name = words_of(command)[0]
        lines.append(f"complete -c vlp -n 'not __fish_seen_subcommand_from {first}' -a {name} "
                     f"-d '{fish_text(command.summary)}'")
        parts = " ".join(words_of(part)[1] for part in command.parts)
        for part in command.parts:
            lines.append(f"complete -c vlp -n '__fish_seen_subcommand_from {name}; and not "
                         f"__fish_seen_subcommand_from {parts}' -f -a {words_of(part)[1]} "
                         f"-d '{fish_text(part.summary)}'")
    for command in leaves(commands):
        condition = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in words_of(command))
        for option in command.options:
            kind = kind_of(option)
            text = f"complete -c vlp -n '{condition}'"
            text += f" -l {option.long}" if option.long else ""
            text += f" -s {option.short}" if option.short else ""
            values = {"setting": " ".join(name + "=" for name in settings.split()), "model": models,
                      "folder": "(__fish_complete_directories)", "file": "",
                      "any": ""}.get(kind, kind.removeprefix("words "))
            if kind == "file":
                text += " -r -F"
            elif kind:
                text += " -x" + (f" -a '{values}'" if values else "")
            lines.append(text + f" -d '{fish_text(option.help)}'")
    return "\n".join(lines) + "\n"


def main():
    program, out = sys.argv[1:]
    commands, every = read_commands(program), read_settings(program)
    settings = " ".join(setting.name for setting in every)
    models = next(setting.range for setting in every if setting.name == "model").replace(",", "")
    os.makedirs(out, exist_ok=True)
    for name, write in (("vlp.bash", bash), ("_vlp", zsh), ("vlp.fish", fish)):
        with open(f"{out}/{name}", "w", encoding="utf-8") as file:
            file.write(write(commands, settings, models).replace("@VERSION@", read_version(program)))


if __name__ == "__main__":
    main()
