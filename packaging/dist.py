#!/usr/bin/env python3
"""Packs a portable hob: an archive, a Python wheel and their checksums. `make dist` runs it.

The same inputs give the same bytes: names are sorted, and every file has the time SOURCE_DATE_EPOCH.
Needs the standard library only.
"""

import argparse
import base64
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The first time that a zip file can hold.
EPOCH_MIN = 315_532_800
# Numbers of processors in the header of an ELF file.
MACHINES = {62: "x86_64", 183: "aarch64"}
# What an archive runs on: with a library for each kind of processor, and without.
PROCESSORS = {
    "x86_64": ("any x86-64 processor", "x86-64 processors with AVX2"),
    "aarch64": ("any 64-bit ARM processor", "any 64-bit ARM processor"),
}
SUMMARY = "A local AI server: chat, speech and transcription behind one OpenAI-compatible address"
# Debian's releases by the C library that they have. The image of an archive is based on the first that is new enough.
DEBIAN = [((2, 36), "bookworm"), ((2, 41), "trixie")]
# Where the libraries are, seen from the folder above the program's. The program looks there at run time.
LIBRARIES = "lib/hob"


def machine_of(program: bytes) -> str:
    """The processor that an ELF file is for."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("the program is not a 64-bit ELF file in little-endian order")
    (number,) = struct.unpack_from("<H", program, 18)
    if number not in MACHINES:
        raise SystemExit(f"the program is for a processor with the number {number} (known: {MACHINES})")
    return MACHINES[number]


def glibc_of(files: list[bytes]) -> tuple[int, int]:
    """The newest version of the C library that ELF files ask for."""
    versions = [(2, 17)]
    for file in files:
        for found in re.finditer(rb"\0GLIBC_(\d+)\.(\d+)(?:\.\d+)?(?=\0)", file):
            versions.append((int(found[1]), int(found[2])))
    return max(versions)


class Contents:
    """Files by name: their bytes, and whether they can be run."""

    def __init__(self, program: Path, libraries: list[Path], licences: str | None):
        self.program = program.read_bytes()
        # A library is found by the name that the linker recorded. So links are followed.
        self.libraries = {path.name: path.read_bytes() for path in sorted(libraries)}
        texts = [ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT"]
        self.licences = {path.name: path.read_bytes() for path in texts}
        if licences is not None:
            self.licences["LICENSES-OF-DEPENDENCIES"] = licences.encode()

    def glibc(self) -> str:
        """The C library that all of this needs, as "2.36"."""
        return "{}.{}".format(*glibc_of([self.program, *self.libraries.values()]))

    def debian(self) -> str:
        """The release of Debian that runs all of this."""
        needed = glibc_of([self.program, *self.libraries.values()])
        return next((name for glibc, name in DEBIAN if glibc >= needed), "testing")

    def of_archive(self) -> dict[str, tuple[bytes, bool]]:
        is_for_all = any(name.startswith("libggml-cpu-") for name in self.libraries)
        any_processor, one_kind = PROCESSORS[machine_of(self.program)]
        processors = any_processor if is_for_all else one_kind
        readme = (ROOT / "packaging/archive/README.md").read_text()
        readme = readme.replace("@GLIBC@", self.glibc()).replace("@PROCESSORS@", processors)
        image = (ROOT / "packaging/archive/Containerfile").read_text().replace("@DEBIAN@", self.debian())
        service = (ROOT / "packaging/hob.service").read_bytes()
        files = {"Containerfile": (image.encode(), False), "hob.service": (service, False)}
        files |= {name: (text, False) for name, text in self.licences.items()}
        files |= {f"{LIBRARIES}/{name}": (library, False) for name, library in self.libraries.items()}
        return files | {"README.md": (readme.encode(), False), "bin/hob": (self.program, True)}

    def of_wheel(self, version: str, tag: str) -> dict[str, tuple[bytes, bool]]:
        """An installer puts `data/scripts` next to python, and `data/data` into the folder above."""
        data, info = f"hob-{version}.data", f"hob-{version}.dist-info"
        metadata = (
            f"Metadata-Version: 2.1\nName: hob\nVersion: {version}\nSummary: {SUMMARY}\n"
            "License: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
        )
        wheel = f"Wheel-Version: 1.0\nGenerator: hob\nRoot-Is-Purelib: false\nTag: {tag}\n"
        files = {f"{data}/data/{LIBRARIES}/{name}": (library, False) for name, library in self.libraries.items()}
        files |= {f"{info}/licenses/{name}": (text, False) for name, text in self.licences.items()}
        files |= {
            f"{data}/scripts/hob": (self.program, True),
            f"{info}/METADATA": (metadata.encode(), False),
            f"{info}/WHEEL": (wheel.encode(), False),
        }
        record = "".join(f"{name},{digest(files[name][0])},{len(files[name][0])}\n" for name in sorted(files))
        # The record cannot have a hash of itself.
        record_name = f"{info}/RECORD"
        return files | {record_name: (f"{record}{record_name},,\n".encode(), False)}


def engine_libraries(messages: str) -> list[Path]:
    """The libraries that the build of llama.cpp made, from what cargo said about the build. A static build has none."""
    built = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    scripts = [message for message in built if message.get("reason") == "build-script-executed"]
    folders = {script["out_dir"] for script in scripts if "llama-cpp-sys-2" in script["package_id"]}
    if len(folders) != 1:
        raise SystemExit(f"cargo built llama.cpp in {len(folders)} folders (expected one)")
    (folder,) = map(Path, folders)
    if not (folder / "backends").is_dir():
        return []
    # The linker recorded names such as libggml.so.0. ggml looks for backends by names without a number.
    linked = [path for lib in ["lib", "lib64"] for path in (folder / lib).glob("*.so.*")]
    linked = [path for path in linked if re.fullmatch(r"lib[\w-]+\.so\.\d+", path.name)]
    return [*linked, *(folder / "backends").glob("libggml-*.so")]


def digest(file: bytes) -> str:
    """The hash of a file, as a wheel's record writes it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(file).digest()).rstrip(b"=").decode()


def tar_xz(path: Path, folder: str, files: dict[str, tuple[bytes, bool]], epoch: int) -> None:
    with tarfile.open(path, "w:xz", preset=6, format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(files):
            file, can_run = files[name]
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime, entry.mode = len(file), epoch, 0o755 if can_run else 0o644
            archive.addfile(entry, io.BytesIO(file))


def zipped(path: Path, files: dict[str, tuple[bytes, bool]], epoch: int) -> None:
    # A wheel's own description comes last, so that it can be read quickly.
    order = sorted(files, key=lambda name: (".dist-info/" in name, name))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in order:
            file, can_run = files[name]
            entry = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Installers ignore the modes in a zip file that names another system.
            entry.create_system = 3
            entry.external_attr = (0o100755 if can_run else 0o100644) << 16
            archive.writestr(entry, file)


def licences_of(metadata: dict) -> str:
    """The licence texts of all crates that the program is made from, each text once."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    (start,) = [package["id"] for package in metadata["packages"] if package["name"] == "hob"]
    used, queue = set(), [start]
    while queue:
        package = queue.pop()
        if package not in used:
            used.add(package)
            kinds = ((dep["pkg"], {kind["kind"] for kind in dep["dep_kinds"]}) for dep in nodes[package]["deps"])
            queue += [dep for dep, kind in kinds if kind != {"dev"}]
    foreign = [packages[package] for package in used if packages[package]["source"]]
    by_text: dict[str, list[str]] = {}
    for package in sorted(foreign, key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']} ({package['license'] or 'see its licence file'})"
        texts = licence_files(Path(package["manifest_path"]).parent)
        for text in texts or [""]:
            by_text.setdefault(text, []).append(name)
    return "\n".join("\n".join(names) + "\n\n" + text + "\n" + "-" * 80 + "\n" for text, names in by_text.items())


def licence_files(folder: Path) -> list[str]:
    is_licence = re.compile(r"(?i)^(licen[cs]e|copying|notice|unlicense)")
    # Sources that a crate carries have licences of their own. What only tests and examples use is not in the program.
    carried = {path.parent for path in folder.glob("*/**/LICENSE*")}
    unused = {"tests", "examples", "benches"}
    folders = [folder, *(place for place in carried if unused.isdisjoint(place.relative_to(folder).parts))]
    paths = {path for place in folders for path in place.iterdir() if path.is_file() and is_licence.match(path.name)}
    return [path.read_text(errors="replace").strip() for path in sorted(paths)]


def version_of(metadata: dict) -> str:
    (version,) = [package["version"] for package in metadata["packages"] if package["name"] == "hob"]
    return version


def cargo_metadata(machine: str) -> dict:
    # Without this, cargo would download what only other systems need.
    platform = f"{machine}-unknown-linux-gnu"
    command = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", platform]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def pack(contents: Contents, version: str, out: Path, epoch: int) -> list[Path]:
    """Writes the archive, the wheel and SHA256SUMS, and returns their paths."""
    machine = machine_of(contents.program)
    tag = f"py3-none-manylinux_{contents.glibc().replace('.', '_')}_{machine}"
    epoch = max(epoch, EPOCH_MIN)
    out.mkdir(parents=True, exist_ok=True)
    folder = f"hob-{version}-linux-{machine}"
    archive, wheel, sums = out / f"{folder}.tar.xz", out / f"hob-{version}-{tag}.whl", out / "SHA256SUMS"
    tar_xz(archive, folder, contents.of_archive(), epoch)
    zipped(wheel, contents.of_wheel(version, tag), epoch)
    made = [archive, wheel]
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    return [*made, sums]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=Path, required=True, help="the portable hob")
    parser.add_argument("--library", type=Path, action="append", default=[], help="a library that it loads")
    parser.add_argument("--licence", type=Path, action="append", default=[], help="a licence of these libraries")
    parser.add_argument("--build", type=Path, required=True, help="what cargo said about the build, as JSON")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    args = parser.parse_args()
    metadata = cargo_metadata(machine_of(args.program.read_bytes()))
    libraries = [*args.library, *engine_libraries(args.build.read_text())]
    texts = [f"{path}\n\n{path.read_text(errors='replace').strip()}\n{'-' * 80}\n" for path in args.licence]
    contents = Contents(args.program, libraries, "\n".join([licences_of(metadata), *texts]))
    # Empty outside of a git checkout.
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
    for path in pack(contents, version_of(metadata), args.out, epoch):
        print(f"{path} ({path.stat().st_size:,} bytes)")


if __name__ == "__main__":
    main()
