"""Environments with packages to compare with."""

import subprocess
import venv


def environment_python(folder, names):
    """The interpreter of an environment with these packages, made where it is missing; None where it cannot be."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    imports = [python, "-c", f"import {', '.join(names)}"]
    found = subprocess.run(imports, check=False, capture_output=True, text=True)
    if found.returncode != 0:
        install = [python, "-m", "pip", "install", "--quiet", *names, "numpy", "setuptools"]
        installed = subprocess.run(install, check=False, capture_output=True, text=True)
        found = subprocess.run(imports, check=False, capture_output=True, text=True)
        if found.returncode != 0:
            print(f"{', '.join(names)} cannot be used:\n{installed.stderr.strip()[-2000:]}\n{found.stderr.strip()[-2000:]}")
            return None
    return python
