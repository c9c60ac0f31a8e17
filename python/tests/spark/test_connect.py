"""The same through Spark Connect, which has no JVM in the process that asks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import poul

pytest.importorskip("pyspark", reason="SKIPPED: pyspark is not installed (`make spark` installs it)")

SCRIPT = """
import sys
import pandas as pd
import poul, poul.spark
from pyspark.sql import SparkSession

model, table = poul.load(sys.argv[1]), pd.read_parquet(sys.argv[2])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = spark.createDataFrame(table).repartition(3)
assert "connect" in type(rows).__module__, type(rows)
asked = {"id": "user", "policy": "T1", "interval": 0.9}
there = poul.spark.effect(model, rows, **asked).toPandas().sort_values("user").reset_index(drop=True)
here = model.effect(table, **asked).sort_values("user").reset_index(drop=True)
pd.testing.assert_frame_equal(there, here, check_exact=True, check_dtype=False)
found = poul.spark.evaluate(model, rows, policy="T1").results[0]
expected = model.evaluate(table, policy="T1", draws=0, checks=False).results[0]
for name in ("ate", "ate_se", "calibration_slope", "r_loss", "r_score", "auuc", "qini", "rate_autoc"):
    assert abs(found[name] - expected[name]) <= 1e-9 * max(1e-3, abs(expected[name])), name
assert poul.spark.check(rows, outcomes="gmv", exclude="user").rows == len(table)
spark.stop()
print("as on one machine")
"""


def test_connect_gives_the_same(model: poul.Poul, users: pd.DataFrame, tmp_path: Path) -> None:
    import pyspark

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("SKIPPED: there is no Java for Spark")
    if not any((Path(pyspark.__path__[0]) / "jars").glob("spark-connect_*")):
        pytest.skip(f"SKIPPED: PySpark {pyspark.__version__} comes without the server of Connect")
    model.save(tmp_path / "model.poul")
    users.to_parquet(tmp_path / "users.parquet")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment.pop("SPARK_REMOTE", None)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "model.poul"), str(tmp_path / "users.parquet")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip().endswith("as on one machine"), done.stdout + done.stderr[-4000:]
