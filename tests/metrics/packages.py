"""The environment that holds causalml and scikit-uplift, and how their metrics are imported without the rest."""

import hashlib
import importlib
import pathlib
import subprocess
import sys
import types

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"


class CannotInstall(Exception):
    """The packages are not to be had here."""


def environment_python(folder: pathlib.Path) -> pathlib.Path:
    """The interpreter of an environment under `folder`, made and filled on first use."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    environment = folder / f"python{sys.version_info.major}.{sys.version_info.minor}-{digest}"
    python = environment / "bin" / "python"
    if (environment / "filled").exists():
        return python
    try:
        run([sys.executable, "-m", "venv", "--clear", str(environment)])
        run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             "--only-binary", ":all:", "--no-deps", "-r", str(REQUIREMENTS)])
    except (OSError, subprocess.SubprocessError) as error:
        detail = getattr(error, "stderr", None) or str(error)
        raise CannotInstall(detail.strip()) from error
    (environment / "filled").touch()
    return python


def run(command):
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=170)


def causalml_metrics():
    """causalml's own `metrics/visualize.py`, with the plotting and learning packages it imports left empty."""
    root = pathlib.Path(importlib.util.find_spec("causalml").submodule_search_locations[0])
    for name, attributes in {
        "matplotlib": {},
        "matplotlib.pyplot": {"style": types.SimpleNamespace(use=lambda *_: None), "Axes": object},
        "seaborn": {"set_palette": lambda *_: None},
        "lightgbm": {"LGBMRegressor": lambda **_: None},
        "causalml.inference": {"__path__": []},
        "causalml.inference.meta": {"__path__": []},
        "causalml.inference.meta.tmle": {"TMLELearner": None},
        "causalml.metrics": {"__path__": [str(root / "metrics")]},
    }.items():
        module = types.ModuleType(name)
        module.__dict__.update(attributes)
        sys.modules[name] = module
    sys.modules["matplotlib"].pyplot = sys.modules["matplotlib.pyplot"]
    return importlib.import_module("causalml.metrics.visualize")
