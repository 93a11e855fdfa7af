"""Tests of dist.py with a small program in place of hob, and of options of `make`: `make test-dist`."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
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
        self.assertIn("`podman build -f Containerfile ", readme, "Docker looks for a Dockerfile")
        for wish in ["a service that starts at boot", "a container"]:
            self.assertRegex(readme, rf"\| {wish} \|[^\n]*hob pull`", "hob does not start without models")
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
        # Without libraries, llama.cpp is built for the oldest ones.
        for library in [None, "libggml-cpu-armv8.0_1.so"]:
            self.assertIn("on any 64-bit ARM processor.", self.readme(bytes(arm), library))

    def readme(self, program, library):
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ["hob", *([library] if library else [])]]
            for path in paths:
                path.write_bytes(program)
            return dist.Contents(paths[0], paths[1:], None).of_archive()["README.md"][0].decode()


class Images(unittest.TestCase):
    """The Containerfiles, without an engine that could build them."""

    def setUp(self):
        self.source = stages((dist.ROOT / "packaging/Containerfile").read_text())
        contents = dist.Contents(ECHO, [], None)
        self.files = contents.of_archive()
        self.archive = stages(self.files["Containerfile"][0].decode())
        self.guide = (dist.ROOT / "docs/guides/containers.md").read_text()

    def test_the_build_has_the_packages_that_bootstrap_installs(self):
        build, run = map(packages, self.source)
        # The image of Rust has a C compiler. The others fetch models where only package indexes can be reached, and run the
        # tests of the page.
        elsewhere = {"gcc", "libc6-dev", "python3-pip", "npm"}
        self.assertLessEqual(missing_packages() - elsewhere, build | run)
        self.assertIn("espeak-ng", run, "it runs next to hob")
        for package in missing_packages("--vulkan") - missing_packages():
            self.assertRegex(self.guide, rf"`[^`]*\b{re.escape(package)}\b[^`]*`", "the row of graphics cards")

    def test_the_build_can_compile_hob_for_the_image_that_runs_it(self):
        (base, *_), (system, *_) = ([rest for word, rest in stage if word == "FROM"] for stage in self.source)
        rust = re.fullmatch(r"docker\.io/library/rust:(\d+)\.(\d+)-slim-(\w+) AS build", base)
        self.assertEqual(system, f"docker.io/library/debian:{rust[3]}-slim", "both have the same libraries")
        needed = toml("Cargo.toml")["workspace"]["package"]["rust-version"]
        self.assertGreaterEqual((int(rust[1]), int(rust[2])), tuple(map(int, needed.split("."))))
        features = toml("crates/hob/Cargo.toml")["features"]
        for feature in re.findall(r"--features (\w+)", self.guide):
            self.assertIn(feature, features)

    def test_what_is_copied_is_there(self):
        build, run = self.source
        made = " ".join(rest for word, rest in build if word == "RUN")
        for stage in [build, run, *self.archive]:
            for source in (rest.split()[:-1] for word, rest in stage if word == "COPY"):
                if source[0] == "--from=build":
                    self.assertTrue(made.endswith(f" {source[1]}"), made)
                else:
                    self.assertEqual(source, ["."])
        (link,) = [rest.split() for word, rest in self.archive[-1] if rest.startswith("ln -s ")]
        self.assertIn(link[2].removeprefix("/opt/hob/"), sorted(self.files))
        ignored = (dist.ROOT / ".containerignore").read_text().split()
        self.assertEqual(ignored, (dist.ROOT / ".dockerignore").read_text().split())
        tracked = ["git", "ls-files", "--", *(f":(top,glob){name}/**" for name in ignored)]
        self.assertEqual(subprocess.run(tracked, cwd=dist.ROOT, check=True, stdout=subprocess.PIPE).stdout, b"")

    def test_user_folder_and_port_are_those_of_the_guide(self):
        settings = {"USER", "WORKDIR", "ENV", "VOLUME", "EXPOSE", "ENTRYPOINT", "CMD"}
        said = [{word: rest for word, rest in stage if word in settings} for stage in [self.source[-1], self.archive[-1]]]
        self.assertEqual(said[0], said[1], "both images are used in the same way")
        self.assertEqual(set(said[0]), settings)
        (added,) = [rest for word, rest in self.source[-1] if "useradd" in rest]
        user, folder, port = (said[0][word] for word in ["USER", "VOLUME", "EXPOSE"])
        self.assertIn(f"--home-dir {folder} {user} && install -d -o {user} {folder}", added)
        self.assertEqual((said[0]["WORKDIR"], said[0]["ENV"]), (folder, f"HOB_HOME={folder}"))
        command = json.loads(said[0]["ENTRYPOINT"]) + json.loads(said[0]["CMD"])
        self.assertEqual(command, ["hob", "serve", "--listen", f"0.0.0.0:{port}"])
        self.assertEqual(set(re.findall(r"-v hob:(/\w+)", self.guide)), {folder})
        self.assertEqual(set(re.findall(r":(\d+)(?=[\s/\"]|$)", self.guide)) - {"11434"}, {port})

    def test_the_image_of_an_archive_has_a_c_library_that_is_new_enough(self):
        contents = dist.Contents(ECHO, [], None)
        for newest, expected in [(36, "bookworm"), (38, "trixie"), (41, "trixie"), (42, "testing")]:
            contents.program = b"\0GLIBC_2.%d\0" % newest
            self.assertEqual(contents.debian(), expected, newest)
        (base,) = [rest for word, rest in self.archive[0] if word == "FROM"]
        self.assertRegex(base, r"^docker\.io/library/debian:[a-z]+-slim$")


def stages(text):
    """The instructions of each stage of a Containerfile, as (word, rest)."""
    plain = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [tuple(" ".join(line.split()).split(" ", 1)) for line in plain.splitlines() if line.strip()]
    starts = [at for at, (word, _) in enumerate(lines) if word == "FROM"]
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], None])]


def packages(stage):
    text = " ".join(rest for word, rest in stage if word == "RUN")
    return set(re.search(r"apt-get install -y --no-install-recommends ([^&]+)", text)[1].split())


def bootstrap(programs, *options, **variables):
    """Runs scripts/bootstrap on a machine that has only these programs, as lines for a shell."""
    with tempfile.TemporaryDirectory() as folder:
        for name, line in programs.items():
            (Path(folder) / name).write_text(f"#!/bin/sh\n{line}\n")
            (Path(folder) / name).chmod(0o755)
        command = [shutil.which("bash"), dist.ROOT / "scripts/bootstrap", *options]
        environment = {"PATH": folder, "HOME": folder, **variables}
        return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)


def missing_packages(*options):
    """What scripts/bootstrap would install on a machine that has nothing."""
    return set(re.search(r"Missing: (.*)", bootstrap({"cargo": ":"}, *options).stderr)[1].split())


def toml(path):
    return tomllib.loads((dist.ROOT / path).read_text())


class Checkout(unittest.TestCase):
    def test_other_vector_units_begin_the_build_of_llama_cpp_again(self):
        with tempfile.TemporaryDirectory() as folder:
            checkout, said, cleaned = Path(folder) / "two words", Path(folder) / "said", []
            for program in [Path(folder) / ".cargo/bin/cargo", checkout / "scripts/bootstrap"]:
                program.parent.mkdir(parents=True)
                program.write_text(f'#!/bin/sh\necho "$CARGO_BUILD_TARGET_DIR $*" >> {said}\n')
                program.chmod(0o755)
            shutil.copy(dist.ROOT / "Makefile", checkout)
            for processor in ["", "", "avx512f", "avx512f avx_vnni", "avx512f avx_vnni", "", "asimd asimddp i8mm"]:
                command = ["make", "--silent", "build", f"CPU={processor}"]
                subprocess.run(command, cwd=checkout, env={"HOME": folder, "PATH": os.environ["PATH"]}, check=True)
                lines = said.read_text().splitlines()
                said.unlink()
                cleaned.append(any("-p llama-cpp-sys-2" in line for line in lines))
                for line in lines:
                    self.assertTrue(line.startswith(f"{checkout}/target "), "also if the user's cargo has another folder")
        self.assertEqual(cleaned, [True, False, True, True, False, True, True])

    def test_units_of_arm_are_one_architecture_for_ggml(self):
        listing = 'cmake_minimum_required(VERSION 3.14)\nproject(ggml NONE)\nmessage(STATUS "for ${GGML_CPU_ARM_ARCH}")\n'
        for units, expected in [([], "armv8-a"), (["DOTPROD", "FP16"], "armv8.2-a+dotprod+fp16"), (["I8MM"], "armv8.2-a+i8mm")]:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "CMakeLists.txt").write_text(listing)
                command = ["cmake", "-S", folder, "-B", f"{folder}/build", "-DGGML_CPU_ARM_ARCH=armv8-a"]
                command.append(f"-DCMAKE_PROJECT_INCLUDE={dist.ROOT}/scripts/llama.cmake")
                command += [f"-DGGML_ARM_{unit}=ON" for unit in units]
                run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            self.assertIn(f"for {expected}\n", run.stdout)

    def test_the_help_lists_the_targets_with_an_awk_of_any_system(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "awk").symlink_to(shutil.which("awk"))
            command, variables = [shutil.which("make"), "help"], {"HOME": folder, "PATH": folder}
            run = subprocess.run(command, cwd=dist.ROOT, env=variables, stdout=subprocess.PIPE, text=True)
        targets = re.findall(r"^([a-z-]+):.*## (.*)", (dist.ROOT / "Makefile").read_text(), re.MULTILINE)
        self.assertEqual(run.stdout.splitlines(), [f"{name:<19} {purpose}" for name, purpose in targets])

    def test_a_path_with_spaces_reaches_xtask_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            checkout = Path(folder) / "two words"
            program = checkout / "target/debug/xtask"
            program.parent.mkdir(parents=True)
            program.write_text('#!/bin/sh\necho "$CARGO_MANIFEST_DIR $*"\n')
            program.chmod(0o755)
            shutil.copy(dist.ROOT / "Makefile", checkout)
            variables = {name: os.environ[name] for name in ["HOME", "PATH"]}
            # The program above stands in for the one that `test-build` would build.
            command = ["make", "--silent", "--old-file=test-build", "tidy"]
            run = subprocess.run(command, cwd=checkout, env=variables, stdout=subprocess.PIPE, text=True)
        expected = f"{checkout}/xtask tidy\n{checkout}/xtask docs --check --hob {checkout}/target/debug/hob\n"
        self.assertEqual((run.returncode, run.stdout), (0, expected))


class Bootstrap(unittest.TestCase):
    def test_a_cargo_that_is_too_old_is_refused(self):
        needed = toml("Cargo.toml")["workspace"]["package"]["rust-version"]
        said = bootstrap({"cargo": "echo cargo 1.85.0"}).stderr
        self.assertEqual(said.count(f"hob needs Rust {needed} or newer, and this is cargo 1.85.0"), 1, said)
        for version in [f"{needed}.0", f"{needed}1.0"]:
            self.assertIn("Missing: ", bootstrap({"cargo": f"echo cargo {version}"}).stderr, version)

    def test_the_proxy_of_the_user_is_that_of_apt(self):
        programs = {"cargo": ":", "id": "echo 1000", "env": 'exec /usr/bin/env "$@"'}
        programs["sudo"] = 'exec /usr/bin/env --ignore-environment PATH="$PATH" "$@"'
        programs["apt-get"] = 'echo "$1 by $http_proxy" >&2'
        run = bootstrap(programs, http_proxy="http://proxy.test:3128")
        self.assertEqual(run.returncode, 0, run.stderr)
        for step in ["update", "install"]:
            self.assertIn(f"{step} by http://proxy.test:3128\n", run.stderr)


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


class MakeOptions(unittest.TestCase):
    """What options of `make` mean, without a build."""

    def test_features_may_have_spaces_between_them(self):
        for target, option in [("build", "FEATURES"), ("dist", "DIST_FEATURES")]:
            self.assertIn('--features "cuda vulkan"', self.made("--dry-run", target, f"{option}=cuda vulkan"))

    def test_portable_no_is_as_without_it(self):
        show = ["--eval=show-cpu: ; @echo '$(CPU)'", "show-cpu"]
        self.assertEqual(self.made(*show, "PORTABLE=no"), self.made(*show))
        self.assertEqual(self.made(*show, "PORTABLE=yes").strip(), "")

    def made(self, *words):
        # `make` passes its own options to what it runs.
        env = {name: value for name, value in os.environ.items() if "MAKE" not in name and name not in ["MFLAGS", "PORTABLE"]}
        make = ["make", "--no-print-directory", "-C", dist.ROOT, *words]
        return subprocess.run(make, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout


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
