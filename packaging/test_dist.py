"""Tests of dist.py with a small program in place of hob: `make test-dist`."""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

import dist

VERSION = "1.2.3"
EPOCH = 1_700_000_000
ECHO = Path(shutil.which("echo"))


class Packed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        library = cls.folder / "libhob-test.so.1"
        library.write_bytes(b"\x7fELF not really")
        cls.contents = dist.Contents(ECHO, [library], "licences")
        cls.archive, cls.wheel, cls.sums = dist.pack(cls.contents, VERSION, cls.folder / "out", EPOCH)

    def test_the_same_inputs_give_the_same_bytes(self):
        again = dist.pack(self.contents, VERSION, self.folder / "again", EPOCH)
        for one, other in zip([self.archive, self.wheel, self.sums], again):
            self.assertEqual(one.name, other.name)
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def test_the_record_has_the_hash_and_the_size_of_every_file(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            record_name = f"hob-{VERSION}.dist-info/RECORD"
            record = wheel.read(record_name).decode().splitlines()
            self.assertEqual(record[-1], f"{record_name},,")
            recorded = dict(line.split(",", 1) for line in record[:-1])
            self.assertEqual(sorted([*recorded, record_name]), sorted(wheel.namelist()))
            for name, expected in recorded.items():
                file = wheel.read(name)
                hashed = base64.urlsafe_b64encode(hashlib.sha256(file).digest()).decode().rstrip("=")
                self.assertEqual(expected, f"sha256={hashed},{len(file)}", name)

    def test_the_tag_names_the_processor_and_the_c_library(self):
        self.assertRegex(self.wheel.name, rf"^hob-{VERSION}-py3-none-manylinux_2_\d+_\w+\.whl$")
        with zipfile.ZipFile(self.wheel) as wheel:
            described = wheel.read(f"hob-{VERSION}.dist-info/WHEEL").decode()
        self.assertIn(f"Tag: {self.wheel.stem.removeprefix(f'hob-{VERSION}-')}\n", described)
        newest = dist.glibc_of([b"\0GLIBC_2.9\0", b"\0GLIBC_2.34\0GLIBC_2.2.5\0", b"GLIBC_2.99"])
        self.assertEqual(newest, (2, 34))

    def test_pip_installs_a_command(self):
        home = self.folder / "venv"
        venv.create(home, with_pip=True)
        pip = [home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        subprocess.run([*pip, self.wheel], check=True)
        said = subprocess.run([home / "bin/hob", "hello"], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(said, b"hello\n")
        self.assertTrue((home / "lib/hob/libhob-test.so.1").is_file(), "where the program looks")

    def test_the_archive_has_the_program_and_what_installs_it(self):
        with tarfile.open(self.archive) as archive:
            folder = self.archive.name.removesuffix(".tar.xz")
            modes = {entry.name.removeprefix(f"{folder}/"): entry.mode for entry in archive.getmembers()}
            readme = archive.extractfile(f"{folder}/README.md").read().decode()
        self.assertIn(f"glibc {self.contents.glibc()} or newer", readme)
        self.assertEqual(modes["bin/hob"], 0o755)
        for name in ["lib/hob/libhob-test.so.1", "README.md", "LICENSE-MIT", "Containerfile", "hob.service"]:
            self.assertEqual(modes[name], 0o644, name)

    def test_the_sums_are_those_of_the_files(self):
        for line in self.sums.read_text().splitlines():
            expected, name = line.split("  ")
            self.assertEqual(hashlib.sha256((self.sums.parent / name).read_bytes()).hexdigest(), expected)


    def test_the_readme_names_the_processors(self):
        arm = bytearray(self.contents.program)
        arm[18:20] = (183).to_bytes(2, "little")
        for library, expected in [(None, "on x86-64 processors with AVX2."), ("libggml-cpu-x64.so", "on any x86-64 processor.")]:
            self.assertIn(expected, self.readme(self.contents.program, library))
        self.assertIn("on any 64-bit ARM processor.", self.readme(bytes(arm), "libggml-cpu-armv8.0_1.so"))

    def readme(self, program, library):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ["hob", *([library] if library else [])]]
            for path in paths:
                path.write_bytes(program)
            return dist.Contents(paths[0], paths[1:], None).of_archive()["README.md"][0].decode()


class Refused(unittest.TestCase):
    def test_a_program_that_is_no_elf_file_is_refused(self):
        with self.assertRaisesRegex(SystemExit, "not a 64-bit ELF file"):
            dist.machine_of(b"#!/bin/sh\n")


class Libraries(unittest.TestCase):
    def test_those_of_the_engine_are_found_by_the_names_that_are_looked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            said = {"reason": "build-script-executed", "package_id": "x#llama-cpp-sys-2@1.0.0", "out_dir": folder}
            other = {"reason": "build-script-executed", "package_id": "x#ring@1.0.0", "out_dir": "/x"}
            messages = f"{json.dumps(other)}\n{json.dumps(said)}\n{json.dumps({'reason': 'build-finished'})}\n"
            self.assertEqual(dist.engine_libraries(messages), [], "a static build")
            for name in ["lib/libggml.so.0.9.5", "backends/libggml-cpu-x64.so.0.9.5"]:
                path = Path(folder) / name
                path.parent.mkdir()
                path.write_bytes(name.encode())
            (Path(folder) / "lib/libggml.so").symlink_to("libggml.so.0")
            (Path(folder) / "lib/libggml.so.0").symlink_to("libggml.so.0.9.5")
            (Path(folder) / "backends/libggml-cpu-x64.so").symlink_to("libggml-cpu-x64.so.0.9.5")
            found = dist.engine_libraries(messages)
            self.assertEqual([path.name for path in found], ["libggml.so.0", "libggml-cpu-x64.so"])
            self.assertEqual(found[1].read_bytes(), b"backends/libggml-cpu-x64.so.0.9.5")
        with self.assertRaisesRegex(SystemExit, "in 0 folders"):
            dist.engine_libraries(json.dumps(other))


class Licences(unittest.TestCase):
    def test_the_texts_of_dependencies_are_there_once(self):
        with tempfile.TemporaryDirectory() as folder:
            packages, deps = [{"id": "hob", "name": "hob", "source": None}], []
            for name in ["one", "two", "tested"]:
                crate = Path(folder) / name
                crate.mkdir()
                for place, text in [("c/vendor", "what it carries"), ("c/tests", "what tests it")]:
                    (crate / place).mkdir(parents=True)
                    (crate / place / "LICENSE.md").write_text(f"Text of {text}.\n")
                (crate / "LICENSE-MIT").write_text(f"Text of {'tested' if name == 'tested' else 'both'}.\n")
                facts = {"version": "1.0.0", "license": "MIT", "manifest_path": str(crate / "Cargo.toml")}
                packages.append({"id": name, "name": name, "source": "registry", **facts})
                deps.append({"pkg": name, "dep_kinds": [{"kind": "dev" if name == "tested" else None}]})
            nodes = [{"id": "hob", "deps": deps}, *({"id": name, "deps": []} for name in ["one", "two", "tested"])]
            text = dist.licences_of({"packages": packages, "resolve": {"nodes": nodes}})
        self.assertEqual(text.count("Text of both."), 1)
        self.assertIn("one 1.0.0 (MIT)\ntwo 1.0.0 (MIT)\n", text)
        self.assertNotIn("tested", text)
        self.assertEqual(text.count("Text of what it carries."), 1)
        self.assertNotIn("what tests it", text)


if __name__ == "__main__":
    sys.exit(unittest.main())
