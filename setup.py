"""Builds the Python package: `make` for the library, then it and every shared library it needs go into the wheel.

pyproject.toml has the metadata. The version is that of include/vlp.h.
"""

import os
import pathlib
import re
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parent
BUILT = ROOT / "build" / "python"

# glibc's, and libgcc_s, which comes with it: the platform tag of a wheel stands for these.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux|lib(c|m|mvec|dl|pthread|rt|gcc_s)\.so)")
# What libvlp.so loads at run time.
LOADED = ("libgomp.so.1", "libopenblas.so.0")


def output_of(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def version() -> str:
    header = (ROOT / "include" / "vlp.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"#define VLP_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def found(name: str) -> pathlib.Path:
    """Where the linker finds a library; OpenBLAS as its OpenMP build where Debian has several."""
    path = pathlib.Path(output_of(os.environ.get("CC", "gcc").split()[-1], f"-print-file-name={name}").strip())
    if not path.is_absolute():
        raise SystemExit(f"setup: {name} is not installed; scripts/deps installs it")
    openmp = path.parent / "openblas-openmp" / name
    return openmp if openmp.exists() else path


def needed(path: pathlib.Path) -> "dict[str, pathlib.Path]":
    """The libraries that a library is linked with, and theirs, by name; without those of the system."""
    pairs = re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", str(path)), flags=re.M)
    return {name: pathlib.Path(at) for name, at in pairs if not OF_THE_SYSTEM.match(name)}


def copy_notice(library: pathlib.Path, folder: pathlib.Path) -> None:
    """The licence of a library, where it is of a Debian package. Merged /usr: dpkg may know the path without it."""
    for path in (library, library.resolve(), pathlib.Path(re.sub(r"^/usr", "", str(library.resolve())))):
        owner = subprocess.run(["dpkg", "-S", str(path)], capture_output=True, text=True, check=False).stdout.split(":")[0]
        notice = pathlib.Path("/usr/share/doc", owner, "copyright")
        if owner and notice.is_file():
            shutil.copyfile(notice, folder / f"{owner}.copyright")
            return


def bundle(folder: pathlib.Path) -> None:
    """Puts libvlp.so, the CUDA backend where it was built, and what they need into `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "licenses").mkdir(parents=True)
    own = sorted(BUILT.glob("*.so"))
    others = {name: found(name) for name in LOADED}
    for library in [*own, *others.values()]:
        others.update({name: path for name, path in needed(library).items() if name not in others})
    for library in own:
        shutil.copy(library, folder)
    for name, path in others.items():
        shutil.copyfile(path, folder / name)
        # As in the Makefile: what they need is beside them.
        subprocess.run(["patchelf", "--force-rpath", "--set-rpath", "$ORIGIN", str(folder / name)], check=True)
        copy_notice(path, folder / "licenses")


def glibc(folder: pathlib.Path) -> "tuple[int, int]":
    """The oldest glibc that has what the libraries ask for."""
    text = "".join(output_of("objdump", "-T", str(library)) for library in folder.glob("*.so*"))
    return max((int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", text))


class BuildPackage(build_py):
    """The modules, the libraries and the shipped recipes."""

    def run(self) -> None:
        shutil.rmtree(pathlib.Path(self.build_lib) / "vlp", ignore_errors=True)
        super().run()
        make = ["make", "-C", str(ROOT), f"-j{os.cpu_count()}", "python-libraries"]
        subprocess.run(make, check=True)
        package = pathlib.Path(self.build_lib) / "vlp"
        bundle(package / "lib")
        shutil.copytree(ROOT / "recipes", package / "recipes", dirs_exist_ok=True)


class BinaryDistribution(Distribution):
    """Has libraries, though no extension modules."""

    def has_ext_modules(self) -> bool:
        return True


class BuildWheel(bdist_wheel):
    """One wheel for every Python 3, of the machine's architecture and the glibc that the libraries need."""

    def get_tag(self) -> "tuple[str, str, str]":
        machine = os.uname().machine
        folder = pathlib.Path(self.bdist_dir or "") / "vlp" / "lib"
        if not folder.is_dir():  # the name of the wheel is asked for before it is built
            folder = ROOT / "build" / "wheel-build" / "lib" / "vlp" / "lib"
        major, minor = glibc(folder)
        return "py3", "none", f"manylinux_{major}_{minor}_{machine}"


os.makedirs(ROOT / "build" / "wheel-build", exist_ok=True)
setup(
    version=version(),
    packages=["vlp"],
    package_dir={"": "python"},
    package_data={"vlp": ["py.typed"]},
    distclass=BinaryDistribution,
    cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel},
    options={
        "build": {"build_base": "build/wheel-build", "build_lib": "build/wheel-build/lib"},
        "egg_info": {"egg_base": "build/wheel-build"},
        "bdist_wheel": {"bdist_dir": "build/wheel-build/bdist"},
    },
)
