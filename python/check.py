#!/usr/bin/env python3
"""Builds the wheel and the source distribution, installs the wheel, and runs every check of the Python package.

    python3 python/check.py --venv target/python-venv [--clients | --spark]

1. The wheel alone, in a fresh environment without any other package, fits and scores.
2. Types: mypy on the package, and the stubs against the native module.
3. The tests of python/tests; with --clients those that need EconML and DoWhy instead, which take long to install; with --spark those
   that need Spark, some 450 MB, and Java: on a master with two workers on loopback.

Exit codes: 0 all is well, 1 something is wrong, 77 the packages could not be installed.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

ALONE = """
import pathlib, tempfile, poul
with tempfile.TemporaryDirectory() as folder:
    rides = poul.simulate(folder, rows=600, features=22)
    model = poul.Learner("ridge", outcomes=rides.outcomes, control="control").fit(rides.train, policies=rides.policies)
    assert len(model.effect(rides.test, policy="T1")) == rides.test_rows
    model.save(pathlib.Path(folder) / "m.poul")
    print("alone:", poul.load(pathlib.Path(folder) / "m.poul"))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--venv", type=pathlib.Path, default=ROOT / "target/python-venv")
    parser.add_argument("--clients", action="store_true", help="the tests with EconML and DoWhy")
    parser.add_argument("--spark", action="store_true", help="the tests on Spark")
    parser.add_argument("--release", action="store_true", help="build optimised")
    arguments = parser.parse_args()
    if sys.version_info < (3, 11):
        print("the package needs Python 3.11 or newer")
        return 77
    folder = arguments.venv.resolve()
    if arguments.spark and shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        print("there is no Java: Debian and Ubuntu have it as openjdk-17-jre-headless")
        return 77
    extra = "clients" if arguments.clients else "spark" if arguments.spark else "test"
    packages = ["maturin>=1.9,<2", *requirements(extra)]
    python = environment(folder, [*packages, *(["pyspark[connect]>=4"] if arguments.spark else [])])
    if python is None:
        return 77
    wheel = build(python, arguments.release)
    run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", wheel)
    # From a folder that has no package of that name beside it.
    with tempfile.TemporaryDirectory() as elsewhere:
        if extra == "test":
            alone(python, wheel, elsewhere)
            config = ["--config-file", HERE / "pyproject.toml", "--cache-dir", ROOT / "target/mypy-cache"]
            run(python, "-m", "mypy", *config, "-p", "poul", cwd=elsewhere)
            run(python, "-m", "mypy.stubtest", "--mypy-config-file", HERE / "pyproject.toml", "poul._poul", cwd=elsewhere)
        tests = HERE / "tests" / extra if extra != "test" else HERE / "tests"
        ignored = [] if extra != "test" else ["--ignore", tests / "clients"]
        # Two at a time: most tests fit tiny models, which leave one of two cores idle. A cluster is shared.
        parallel = [] if arguments.spark else ["-n", "2", "--dist", "loadfile"]
        run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *parallel, tests, *ignored, cwd=elsewhere)
    return 0


def requirements(extra):
    import tomllib

    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"][extra]
    return [*wanted, "pytest", "pytest-xdist"]


def environment(folder, packages):
    """The interpreter of an environment with these packages; None where they cannot be installed."""
    python = folder / "bin" / "python"
    stamp, wanted = folder / "packages.txt", "\n".join(packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    venv.create(folder, clear=True, with_pip=True)
    installed = subprocess.run(
        [python, "-m", "pip", "install", "-q", *packages], check=False, capture_output=True, text=True
    )
    if installed.returncode != 0:
        print(f"could not install the packages to test with:\n{installed.stderr.strip()[-2000:]}")
        return None
    stamp.write_text(wanted)
    return python


def build(python, release):
    """The wheel; the source distribution is built too, and holds all that a build needs."""
    out = ROOT / "target" / "wheels"
    shutil.rmtree(out, ignore_errors=True)
    maturin = python.parent / "maturin"
    profile = ["--release"] if release else []
    run(maturin, "build", "--locked", "--out", out, *profile, cwd=HERE)
    run(maturin, "sdist", "--out", out, cwd=HERE)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    assert "abi3" in wheel.name, wheel.name
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (unpacked,) = pathlib.Path(folder).iterdir()
        manifest = next(path for path in unpacked.rglob("Cargo.toml") if "poul-python" in path.read_text())
        # The lock file also names what the workspace has beside the package, so it is not the last word here.
        metadata = ["cargo", "metadata", "--offline", "--format-version", "1", "--manifest-path", manifest]
        subprocess.run(metadata, check=True, stdout=subprocess.DEVNULL)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()[:12]
    print(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB, {digest}), {source.name} ({source.stat().st_size / 1e6:.1f} MB)")
    return wheel


def alone(python, wheel, elsewhere):
    """The wheel in an environment of its own."""
    fresh = pathlib.Path(elsewhere) / "fresh"
    venv.create(fresh, with_pip=False)
    inside = fresh / "bin" / "python"
    run(python, "-m", "pip", "--python", inside, "install", "-q", "--no-index", wheel)
    run(inside, "-c", ALONE, cwd=elsewhere)


def run(*command, cwd=None):
    environment = {**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target"), "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run([str(word) for word in command], check=False, cwd=cwd, env=environment)
    if finished.returncode != 0:
        print(f"FAILED: {' '.join(map(str, command))}")
        sys.exit(1)


if __name__ == "__main__":
    sys.exit(main())
