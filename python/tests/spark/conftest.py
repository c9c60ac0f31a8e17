"""Spark on this machine: a standalone master with two workers, or threads of this process (`POUL_SPARK=local`)."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import poul

pyspark = pytest.importorskip("pyspark", reason="SKIPPED: pyspark is not installed (`make spark` installs it)")

LOOPBACK = "127.0.0.1"
#: Seconds in which a master and its workers must be up.
PATIENCE = 90


def java_is_there() -> bool:
    """Whether Spark finds a Java."""
    return shutil.which("java") is not None or "JAVA_HOME" in os.environ


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session."""
    if not java_is_there():
        pytest.skip("SKIPPED: there is no Java for Spark")
    folder = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    if os.environ.get("POUL_SPARK", "cluster") == "local":
        with session("local[2]", folder) as found:
            yield found
        return
    with cluster(folder) as master, session(master, folder) as found:
        yield found


@contextmanager
def session(master: str, folder: Path, **settings: str) -> Iterator[Any]:
    """A classic session of that master."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("poul")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.executor.memory": "600m",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
        # Frames of pandas keep their types: before 4.0 single precision became double otherwise.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    for name, value in {**fixed, **settings}.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    try:
        yield found
    finally:
        found.stop()


@contextmanager
def cluster(folder: Path, n_workers: int = 2) -> Iterator[str]:
    """A standalone master with workers of one core each, on loopback; gone at the end, whatever happens."""
    home = Path(pyspark.__path__[0])
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable}
    port = free_port()
    master = f"spark://{LOOPBACK}:{port}"
    deploy = "org.apache.spark.deploy"
    common = ["--host", LOOPBACK, "--webui-port", "0"]
    commands = [[f"{deploy}.master.Master", *common, "--port", str(port)]]
    for number in range(n_workers):
        place = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker{number}")]
        commands.append([f"{deploy}.worker.Worker", *common, *place, master])
    running: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    try:
        for command, log in zip(commands, logs):
            with log.open("wb") as out:
                running.append(
                    subprocess.Popen(
                        [str(home / "bin" / "spark-class"), *command],
                        env=environment,
                        stdout=out,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        preexec_fn=die_with_parent,
                    )
                )
            wanted = "I have been elected leader" if log is logs[0] else "Successfully registered with master"
            wait_for(wanted, log, running[-1])
        yield master
    finally:
        for process in reversed(running):
            # The group is the process's own: it was started in a session of its own.
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        for process in running:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def die_with_parent() -> None:
    """Where the tests are killed, nothing is left behind either (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the log says so."""
    end = time.monotonic() + PATIENCE
    while text not in log.read_text(errors="replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"Spark did not start:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.2)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def users(rides: poul.Simulation) -> pd.DataFrame:
    """Rows with an id."""
    found = pd.read_parquet(rides.test).head(1100)
    return found.assign(user=[f"u{number}" for number in range(len(found))])
