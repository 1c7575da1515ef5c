"""The commands of the program and their options, read from its --help: the one source of the man pages, the
completions and the pages of the site. argp prints help without line breaks when it is asked to."""
import os
import re
import subprocess
from dataclasses import dataclass, field

# Printed by argp for every command; of no interest beside the rest.
STANDARD = ("help", "usage")


@dataclass
class Option:
    long: str  # without dashes; "" for an option that has a short name alone
    short: str  # one letter, or ""
    value: str  # the name of its value, or ""
    help: str

    @property
    def name(self):
        return f"--{self.long}" if self.long else f"-{self.short}"


@dataclass
class Command:
    name: str  # "vlp data split"
    summary: str  # one line
    usages: list  # "DIR HEAD RELATION '?'"
    about: str = ""  # the text before the options
    notes: str = ""  # the text behind them
    options: list = field(default_factory=list)
    parts: list = field(default_factory=list)  # of a command that has commands


def run(program, *arguments):
    environment = dict(os.environ, ARGP_HELP_FMT="rmargin=4000", LC_ALL="C")
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


OPTION = re.compile(r"^ {2,6}(?:-(\S)(?:, )?)?(?:--([a-z-]+))?(?:[= ]([^ ].*?))?\s{2,}(\S.*)$")


def parse_option(line):
    match = OPTION.match(line)
    if not match or not (match[1] or match[2]):
        return None
    return Option(match[2] or "", match[1] or "", match[3] or "", match[4])


def read_command(program, words, summary):
    lines = run(program, *words, "--help").splitlines()
    command = Command("vlp " + " ".join(words), summary, [])
    about, notes = [], []
    for line in lines:
        usage = re.match(r"^(?:Usage:|  or: ) " + re.escape(command.name) + r" \[OPTION...\] (.*)$", line)
        option = parse_option(line)
        if usage:
            command.usages.append(usage[1])
        elif option:
            if option.long not in STANDARD:
                command.options.append(option)
        elif line.strip() and not line.startswith((" ", "Mandatory or optional")):
            (notes if command.options else about).append(line)
    command.about, command.notes = "\n\n".join(about), "\n\n".join(notes)
    return command


def read_list(program, words):
    """The commands that `vlp [WORDS] --help` lists: name, usage, summary."""
    text = run(program, *words, "--help")
    return re.findall(r"^  (\S+) +(\S.*)\n {8,}(\S.*)$", text, re.M)


def read_commands(program):
    found = []
    for name, _usage, summary in read_list(program, []):
        if f"Usage: vlp {name} COMMAND" in run(program, name, "--help"):
            command = Command(f"vlp {name}", summary, ["COMMAND ..."])
            command.parts = [read_command(program, [name, part], text)
                             for part, _, text in read_list(program, [name])]
        else:
            command = read_command(program, [name], summary)
        found.append(command)
    return found


@dataclass
class Setting:
    section: str
    name: str
    default: str
    help: str
    range: str


def read_settings(program):
    found, section = [], ""
    for line in run(program, "train", "--settings").splitlines():
        heading = re.match(r"^\[(\w+)\]$", line)
        row = re.match(r"^(\w+) +(\S+) +(\S.*) \(([^()]*)\)$", line)
        if heading:
            section = heading[1]
        elif row:
            found.append(Setting(section, *row.groups()))
        elif line.strip():
            raise SystemExit(f"not a setting: {line}")
    return found


def read_version(program):
    return run(program, "--version").split()[1]
