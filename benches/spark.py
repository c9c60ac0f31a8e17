#!/usr/bin/env python3
"""Scoring and evaluating on Spark beside one process: rows a second, and the memory of the driver.

    target/spark-venv/bin/python benches/spark.py [--rows 2000000] [--only worker] [--json FILE]

Simulates a table, fits a model on a part of it, and scores and evaluates the whole by one process on one thread and on two, and by
one and two Spark workers of one core each, on this machine. Times are medians of `--repeats` runs after a first that is not
counted: what is measured is the work, not the start of Spark.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "tests" / "spark"))

POLICIES = ["T1", "T2"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default="", help="the steps with this in their names")
    parser.add_argument("--step", help="what one process does: a name, the folder")
    parser.add_argument("--folder", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](arguments.folder, arguments.repeats)))
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prepare(folder, arguments)
        found = {}
        for step in (own for own in STEPS if arguments.only in own):
            command = [sys.executable, __file__, "--step", step, "--folder", folder, "--repeats", arguments.repeats]
            done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
            found[step] = json.loads(done.stdout.splitlines()[-1])
            print(step, found[step], flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n")


def prepare(folder, arguments):
    """The table with ids, in 16 files, and a model."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import poul

    rides = poul.simulate(folder / "rides", rows=20_000, test_rows=arguments.rows, features=arguments.features, policies=8)
    quick = {"members": 4, "epochs": 4}
    model = poul.Poul(outcomes=rides.outcomes, control="control", progress=False, **quick)
    model.fit(rides.train, policies=rides.policies).save(folder / "model.poul")
    (folder / "table").mkdir()
    # File by file, so that neither this process nor any other needs the table at once.
    source, first = pq.ParquetFile(rides.test), 0
    step = arguments.rows // 16 + 1
    for number, batch in enumerate(source.iter_batches(batch_size=step)):
        ids = pa.array(range(first, first + batch.num_rows), pa.int64())
        pq.write_table(pa.Table.from_batches([batch]).append_column("user", ids), folder / "table" / f"{number:02}.parquet")
        first += batch.num_rows
    print(f"{first:,} rows, {arguments.features} features", flush=True)


def timed(work, repeats):
    """The median of its times after a first."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def alone(threads):
    def step(folder, repeats):
        import poul

        model = poul.load(folder / "model.poul").set_params(threads=threads, progress=False)
        rows = n_rows(folder)
        out = folder / "effects.parquet"
        scored = timed(lambda: model.effect(folder / "table", policy=POLICIES, id="user", out=out), repeats)
        return {"rows": rows, "scoring_rows_per_second": round(rows / scored), **memory()}

    return step


def evaluated_alone(folder, repeats):
    import poul

    model = poul.load(folder / "model.poul").set_params(progress=False)
    start = time.perf_counter()
    found = model.evaluate(folder / "table", policy=POLICIES, draws=0, checks=False)
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 1), "auuc": found.results[0]["auuc"], "ate": found.results[0]["ate"], **memory()}


def on_spark(n_workers):
    def step(folder, repeats):
        from conftest import cluster, session

        import poul
        import poul.spark

        model = poul.load(folder / "model.poul").set_params(progress=False)
        place = folder / f"spark{n_workers}"
        place.mkdir()
        with cluster(place, n_workers) as master, session(master, place) as spark:
            table = spark.read.parquet(str(folder / "table"))
            rows = table.count()

            def score():
                scored = poul.spark.effect(model, table, id="user", policy=POLICIES)
                scored.write.mode("overwrite").parquet(str(place / "effects"))

            scored = timed(score, repeats)
            before = memory()
            start = time.perf_counter()
            found = poul.spark.evaluate(model, table, policy=POLICIES)
            seconds = time.perf_counter() - start
            first = found.results[0]
            assert found.rows == rows
            jvm = jvm_peak(spark)
        return {
            "rows": rows,
            "scoring_rows_per_second": round(rows / scored),
            "evaluation_seconds": round(seconds, 1),
            "ate": first["ate"],
            "auuc": first["auuc"],
            "bounds": first["bounds"],
            "driver_python_peak_mb_before_evaluation": before["peak_mb"],
            "driver_python_peak_mb": memory()["peak_mb"],
            "driver_jvm_peak_mb": jvm,
        }

    return step


def jvm_peak(spark):
    """The peak of the memory of the driver's JVM, a child of this process."""
    return peak_of(int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()))


def n_rows(folder):
    import pyarrow.parquet as pq

    return sum(pq.ParquetFile(path).metadata.num_rows for path in sorted((folder / "table").iterdir()))


def memory():
    # Not what getrusage says, which begins with what the process had before it became this one.
    return {"peak_mb": peak_of("self")}


def peak_of(process):
    """The peak of the memory of a process in MB."""
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return round(int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1024)


STEPS = {
    "one process, one thread": alone(1),
    "one process, two threads": alone(2),
    "one process, evaluation": evaluated_alone,
    "one worker": on_spark(1),
    "two workers": on_spark(2),
}

if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    main()
