#!/usr/bin/env python3
"""Man pages, completions and documents against the program: an option is in all of them or in none.

    check_manual.py PROGRAM     prints "ok ..." for each check; the exit code counts the failures

The options come from `vlp COMMAND --usage` here, which nothing else reads.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

program = os.path.realpath(sys.argv[1])
root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, f"{root}/scripts/manual")
failures = 0


def check(what, good, detail=""):
    global failures
    print(("ok " if good else "FAILED ") + what + (f": {detail}" if detail and not good else ""))
    failures += not good


def output(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def command_names():
    """vlp train, vlp data split and so on, from the lists that the program prints."""
    names = []
    for name in re.findall(r"^  (\w+) ", output(program, "--help"), re.M):
        help_text = output(program, name, "--help")
        parts = re.findall(r"^  (\w+) ", help_text, re.M) if "COMMAND ..." in help_text else []
        names += [[name, part] for part in parts] or [[name]]
    return names


def used_options(words):
    """The options of a command, from its --usage: {"--output", "-o", ...}."""
    text = output(program, *words, "--usage")
    short = re.search(r"\[-(\w+\??)\]", text)
    found = {f"-{letter}" for letter in (short[1] if short else "") if letter != "?"}
    found |= {f"-{letter}" for letter in re.findall(r"\[-(\w) ", text)}
    found |= {f"--{name}" for name in re.findall(r"\[--([a-z-]+)", text)}
    return found - {"--help", "--usage"}


# ---- Man pages ----

def plain(roff):
    """Roff as text."""
    text = re.sub(r"\\f[BIRP]|\\&", "", roff)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\.", ".").replace("\\\\", "\\")


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


def manual_options(page, title):
    """Options with their texts in the part of a man page below a title."""
    body = re.split(rf"^\.S[HS] \"?{title}\"?$", page, flags=re.M)
    if len(body) != 2:
        return {}
    part = re.split(r"^\.S[HS] ", body[1], flags=re.M)[0]
    found = {}
    for names, text in re.findall(r"^(\\fB-[^\n]*)\n\.RS 4\n(.*?)^\.P\n\.RE", part, re.M | re.S):
        names = re.findall(r"(?:^|, )(--?[a-z-]+)", plain(names))
        for name in names:
            found[name] = squeeze(re.sub(r"^\.\w+.*$", "", plain(text), flags=re.M))
    return found


def check_pages(folder):
    for words in command_names():
        name = " ".join(words)
        page = f"{folder}/vlp-{words[0]}.1"
        if not os.path.exists(page):
            check(f"vlp {name} has a man page", False)
            continue
        found = manual_options(read(page), f"vlp {name}" if len(words) > 1 else "OPTIONS")
        expected = used_options(words)
        check(f"vlp {name}: the manual has the options of the program", set(found) == expected,
              f"{sorted(set(found) ^ expected)}")
        help_text = squeeze(output(program, *words, "--help"))
        wrong = [option for option, text in found.items() if not text or text not in help_text]
        check(f"vlp {name}: the manual says what --help says", not wrong, str(wrong))
    listed = {words[0] for words in command_names()}
    text = plain(read(f"{folder}/vlp.1"))
    check("vlp(1) lists every command", all(f"vlp-{name}(1)" in text for name in listed))
    pages = {f"{name.rsplit('.', 1)[0]}({name.rsplit('.', 1)[1]})" for name in os.listdir(folder)}
    missing = {reference for name in os.listdir(folder)
               for reference in re.findall(r"vlp[a-z-]*\(\d\)", plain(read(f"{folder}/{name}")))} - pages
    check("pages refer to pages that are there", not missing, str(missing))


def check_settings(folder):
    listed = {line.split()[0]: squeeze(line.split(None, 2)[2])
              for line in output(program, "train", "--settings").splitlines() if re.match(r"\w", line)}
    page = read(f"{folder}/vlp-settings.5")
    found = {plain(name): squeeze(plain(text)) for name, text in
             re.findall(r"^\\fB(\w+)\\fR = .*\n\.RS 4\n(.*)\n", page, re.M)}
    check("vlp-settings(5) has every setting with its text", found == listed and len(found) > 50,
          str({name for name in set(found) | set(listed) if found.get(name) != listed.get(name)}))


# ---- Documents ----

def documented_lines():
    """Lines of documents that call the program: (file, line)."""
    files = [f"{root}/README.md", f"{root}/CONTRIBUTING.md"]
    for folder in ("docs", "docs/man"):
        files += [f"{root}/{folder}/{name}" for name in sorted(os.listdir(f"{root}/{folder}"))
                  if name.endswith((".md", ".scd"))]
    for path in files:
        for line in re.sub(r"\\\n\s*", " ", read(path)).splitlines():
            for call in re.findall(r"(?:^(?:\$ )?|`)(vlp [a-z]+ [^`#]*)", line):
                yield os.path.relpath(path, root), call


def check_documents():
    options = {" ".join(words): used_options(words) for words in command_names()}
    wrong, seen = [], 0
    for path, line in documented_lines():
        words = line.split()[1:]
        name = " ".join(words[:2]) if words[0] == "data" else words[0]
        if name not in options:
            continue
        seen += 1
        for option in re.findall(r"(?<=\s)(--[a-z][a-z-]+|-[a-z])(?=[\s=]|$)", line.split("|")[0]):
            if option not in options[name] | {"--help", "--usage"}:
                wrong.append(f"{path}: {option} in `{line.strip()}`")
    check("commands in the documents have options that exist", seen > 50 and not wrong, f"{seen} {wrong}")


# ---- Completion ----

def check_words():
    import completion
    from commands import read_commands
    used = {option.name for command in completion.leaves(read_commands(program)) for option in command.options
            if completion.kind_of(option).startswith("words")}
    check("words of options are those that --help names", used == set(completion.WORDS),
          str(used ^ set(completion.WORDS)))


def bash_complete(script, *words):
    """What bash offers at the end of these words."""
    quoted = " ".join(f"'{word}'" for word in words)
    return output("bash", "-c", f"""
        compopt() {{ :; }}
        source {script}
        COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
        _vlp
        printf '%s\\n' "${{COMPREPLY[@]}}" """).splitlines()


def check_bash(folder):
    script = f"{folder}/vlp.bash"
    os.makedirs(f"{folder}/some where")
    commands = sorted({words[0] for words in command_names()})
    check("bash: commands", sorted(bash_complete(script, "vlp", "")) == sorted([*commands, "--help", "--version"]))
    parts = {words[1] for words in command_names() if words[0] == "data"}
    check("bash: commands of vlp data", set(bash_complete(script, "vlp", "data", "")) == parts | {"--help"})
    for words in command_names():
        offered = set(bash_complete(script, "vlp", *words, "-"))
        check(f"bash: options of vlp {' '.join(words)}", offered == used_options(words) | {"--help"},
              str(offered ^ used_options(words)))
    for words, expected in ((["train", "x", "--device", "c"], ["cpu", "cuda"]),
                            (["train", "x", "--device", "=", "a"], ["auto"]),
                            (["eval", "x", "--split", ""], ["valid", "test"]),
                            (["train", "x", "--set", "path_l"], ["path_layers="]),
                            (["train", "x", "--model", "=", "quat"], ["quate"]),
                            (["predict", "x", "-k", ""], [""]),
                            (["eval", f"{folder}/som"], [f"{folder}/some where"]),
                            (["train", "x", "--recipe", f"{root}/recipes/umls."], [f"{root}/recipes/umls.ini"]),
                            (["eval", f"{root}/recip"], [f"{root}/recipes"])):
        offered = bash_complete(script, "vlp", *words)
        check(f"bash: vlp {' '.join(words).replace(root + '/', '').replace(folder + '/', '')}", offered == expected, str(offered))


def check_fish(folder):
    def complete(line):
        text = output("fish", "--no-config", "-c", f"source {folder}/vlp.fish; complete -C '{line}'")
        return [row.split("\t")[0] for row in text.splitlines()]

    if not shutil.which("fish"):
        print("skipped: fish is not installed")
        return
    check("fish: syntax", subprocess.run(["fish", "--no-execute", f"{folder}/vlp.fish"]).returncode == 0)
    check("fish: a command", complete("vlp tra") == ["train"], str(complete("vlp tra")))
    check("fish: commands of vlp data", complete("vlp data sp") == ["split"], str(complete("vlp data sp")))
    check("fish: an option", complete("vlp train --dev") == ["--device"], str(complete("vlp train --dev")))
    check("fish: its words", complete("vlp eval run --side ta") == ["tail"], str(complete("vlp eval run --side ta")))


ZSH = """
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell 'PS1= PROMPT_EOL_MARK=; stty -echo; setopt no_beep; fpath=(FOLDER $fpath)'
zpty -w shell 'autoload -U compinit; compinit -u -D; function show() { print -r -- "<<$BUFFER>>" }'
zpty -w shell 'zle -N show; bindkey "^O" show; print READ''Y'
zpty -r shell text '*READY*'
sleep PAUSE
for line in "$@"; do
    zpty -w -n shell "$line"$'\\t\\x0f'
    zpty -r shell text '*<<*>>*'
    print -r -- "$text"
    zpty -w -n shell $'\\x15'
done
"""


def check_zsh(folder):
    if not shutil.which("zsh"):
        print("skipped: zsh is not installed")
        return
    check("zsh: syntax", subprocess.run(["zsh", "-n", f"{folder}/_vlp"]).returncode == 0)
    lines = ["vlp tra", "vlp data sp", "vlp train --dev", "vlp eval run --side=ta"]
    expected = ["vlp train ", "vlp data split ", "vlp train --device=", "vlp eval run --side=tail "]
    # The shell has to be waiting for keys, which a busy machine takes its time for.
    for pause in ("0.5", "2", "8"):
        try:
            text = output("zsh", "-f", "-c", ZSH.replace("FOLDER", folder).replace("PAUSE", pause), "zsh", *lines,
                          timeout=60)
        except subprocess.TimeoutExpired:
            text = ""
        offered = re.findall(r"<<(.*?)>>", text)
        if offered == expected:
            break
    check("zsh: commands, options and words", offered == expected, f"{offered} {text[-300:]!r}")


def check_installed(pages):
    """What `make install DESTDIR=BUILD/stage PREFIX=/usr` has left there."""
    share = f"{os.path.dirname(program)}/stage/usr/share"
    if not os.path.isdir(share):
        print("skipped: nothing is installed in the stage")
        return
    installed = {*os.listdir(f"{share}/man/man1"), *os.listdir(f"{share}/man/man5")}
    check("make install: the man pages", installed == set(os.listdir(pages)), str(installed))
    for path in ("bash-completion/completions/vlp", "zsh/vendor-completions/_vlp", "fish/vendor_completions.d/vlp.fish"):
        check(f"make install: {path}", os.path.isfile(f"{share}/{path}"))


def main():
    with tempfile.TemporaryDirectory() as work:
        output(sys.executable, f"{root}/scripts/manual/man.py", program, f"{root}/docs/man", f"{work}/man")
        output(sys.executable, f"{root}/scripts/manual/completion.py", program, f"{work}/completion")
        check_pages(f"{work}/man")
        check_settings(f"{work}/man")
        check_documents()
        check_words()
        check_bash(f"{work}/completion")
        check_fish(f"{work}/completion")
        check_zsh(f"{work}/completion")
        check_installed(f"{work}/man")
    return failures


sys.exit(main())
