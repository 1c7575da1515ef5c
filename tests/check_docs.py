#!/usr/bin/env python3
"""The documents: links resolve, every page is in the navigation, generated pages are complete, pictures load
nothing, the commands of the tutorial run, and the version is in one place.

    check_docs.py PROGRAM     prints "ok ..." for each check; the exit code counts the failures
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

program = os.path.realpath(sys.argv[1])
root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
failures = 0


def check(what, good, detail=""):
    global failures
    print(("ok " if good else "FAILED ") + what + (f": {detail}" if detail and not good else ""))
    failures += not good


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def without_code(text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """The anchors of a page's headings, as repository browsers and MkDocs make them, and those it sets."""
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", ""))
        found.add(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return found


def links(text):
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text))


def broken_links(folder, names):
    broken = []
    for name in names:
        text = read(f"{folder}/{name}")
        for link in links(text):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            target = os.path.normpath(os.path.join(folder, os.path.dirname(name), path)) if path else f"{folder}/{name}"
            if not os.path.exists(target):
                broken.append(f"{name}: {link}")
            elif anchor and anchor not in anchors(read(target)):
                broken.append(f"{name}: {link} (no such heading)")
    return broken


def markdown_in(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".md"))


def check_links():
    names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{name}" for name in markdown_in(f"{root}/docs"))]
    count = sum(len(links(read(f"{root}/{name}"))) for name in names)
    broken = broken_links(root, names)
    check("links of README.md and docs resolve", count > 40 and not broken, f"{count} {broken}")


def check_site(work):
    """Its source: what `make docs` gives MkDocs, which checks links again."""
    subprocess.run([sys.executable, "-B", f"{root}/scripts/manual/site.py", program, f"{work}/site"], check=True)
    pages = set(markdown_in(f"{work}/site/docs"))
    listed = re.findall(r"^\s+- .*?([\w-]+\.md)$", read(f"{work}/site/mkdocs.yml"), re.M)
    check("every page is in the navigation once", sorted(listed) == sorted(pages), str(set(listed) ^ pages))
    planned = set(re.findall(r"^\s+- .*?([\w-]+\.md)$", read(f"{root}/docs/mkdocs.yml"), re.M))
    check("the navigation has no page that is missing", planned <= pages, str(planned - pages))
    broken = broken_links(f"{work}/site/docs", sorted(pages - {"c-api.md"}))
    check("links of the site resolve", not broken, str(broken))

    header, api = read(f"{root}/include/vlp.h"), read(f"{work}/site/docs/c-api.md")
    names = set(re.findall(r"\b(vlp_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
    names |= set(re.findall(r"^typedef (?:struct|enum) (vlp_\w+)", header, re.M))
    missing = {name for name in names if f'<a id="{name}"></a>' not in api}
    check("the C API has every function and type", len(names) > 90 and not missing, str(missing))
    lost = [part for part in re.findall(r"^VLP_API .*?;$", header, re.M | re.S) if part not in api]
    check("with its declaration", not lost, str(lost))
    targets = set(re.findall(r"\]\(#(vlp_\w+)\)", api))
    check("links of the C API resolve", targets <= names and len(targets) > 20, str(targets - names))
    comments = re.findall(r"^/\*(.*?)\*/$", header[header.index("#define VLP_VERSION_MAJOR"):], re.M | re.S)
    words = set(re.findall(r"[A-Za-z]{4,}", " ".join(comments)))
    check("no word of a comment is lost", not words - set(re.findall(r"[A-Za-z]{4,}", api)),
          str(words - set(re.findall(r"[A-Za-z]{4,}", api))))

    settings = read(f"{work}/site/docs/settings.md")
    listed = [line.split()[0] for line in subprocess.run([program, "train", "--settings"], capture_output=True, text=True,
                                                         check=True).stdout.splitlines() if re.match(r"\w", line)]
    check("the page of settings has every setting", [f"| `{name}` |" in settings for name in listed].count(False) == 0)


def check_pictures():
    folder = f"{root}/docs/images"
    used = {link for name in markdown_in(f"{root}/docs") for link in links(read(f"{root}/docs/{name}"))
            if link.startswith("images/")}
    names = {f"images/{name}" for name in os.listdir(folder)}
    check("every picture is used", used == names, str(used ^ names))
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".svg")):
        text = read(f"{folder}/{name}")
        tree = xml.etree.ElementTree.fromstring(text)
        loads = re.findall(r"(?:href|src)=|url\(|@import|<script|<image|<foreignObject", text)
        titled = tree.find("{http://www.w3.org/2000/svg}title") is not None
        check(f"{name}: has a title, light and dark, and loads nothing",
              titled and "prefers-color-scheme:dark" in text and not loads, str(loads))


def check_tutorial(work):
    """Its commands run; what does not depend on training prints what the tutorial says."""
    text = read(f"{root}/docs/tutorial.md")
    blocks = [block.splitlines() for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.M | re.S)]
    environment = dict(os.environ, PATH=f"{os.path.dirname(program)}:{os.environ['PATH']}", OMP_WAIT_POLICY="passive")
    count = 0
    for block in blocks:
        calls = [[line[2:], []] for line in block if line.startswith("$ ")]
        at = -1
        for line in block:
            if line.startswith("$ "):
                at += 1
            else:
                calls[at][1].append(line)
        for call, expected in calls:
            if call.startswith("cat "):
                with open(f"{work}/{call[4:]}", "w", encoding="utf-8") as file:
                    file.write("\n".join(expected) + "\n")
                continue
            done = subprocess.run(["bash", "-c", call], cwd=work, env=environment, capture_output=True, text=True)
            count += 1
            good, detail = done.returncode == 0, done.stderr[-300:]
            if good and not re.match(r"vlp (train|eval|predict|score|mine|report)", call):
                lines = [line for line in expected if line != "…"]
                missing = [line for line in lines if line not in done.stdout.splitlines()]
                good, detail = not missing, str(missing)
            check(f"tutorial: {call[:60]}", good, detail)
    check("the tutorial has commands", count > 8, str(count))


def files_of_the_source():
    """Those of the repository, or of an unpacked archive: as scripts/dist lists them."""
    try:
        done = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.splitlines()
    except FileNotFoundError:
        pass
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "__pycache__") and not name.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found


def check_version():
    """include/vlp.h has the version; nothing else repeats it."""
    parts = re.findall(r"^#define VLP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", read(f"{root}/include/vlp.h"), re.M)
    version = ".".join(parts)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    check("the program has the version of the header", len(parts) == 3 and said == f"vlp {version}\n", said)
    names = files_of_the_source()
    repeats = []
    for name in names:
        if name.startswith(("docs/", "tests/", "fuzz/seeds", "README")) or name == "CHANGELOG.md":
            continue
        path = f"{root}/{name}"
        if not os.path.isfile(path) or os.path.getsize(path) > 1 << 20:
            continue
        with open(path, "rb") as file:
            text = file.read()
        # Comments may show what a version looks like.
        if re.search(rb"(?i)version\W{0,12}" + re.escape(version).encode() + rb"\b", text):
            repeats.append(name)
    check("no other file repeats the version", len(names) > 100 and not repeats, str(repeats))
    heading = re.search(r"^## (\d+\.\d+\.\d+)", read(f"{root}/CHANGELOG.md"), re.M)
    check("the changelog begins with this version", heading and heading[1] == version)


def main():
    with tempfile.TemporaryDirectory() as work:
        check_links()
        check_site(work)
        check_pictures()
        check_tutorial(work)
        check_version()
    return failures


sys.exit(main())
