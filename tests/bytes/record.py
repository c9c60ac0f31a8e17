#!/usr/bin/env python3
"""Records the bytes of effects, so that a refactoring can show that it changed none.

    python3 tests/bytes/record.py --binary target/debug/poul [--update] [--only TEXT]

Every learner is fitted under every design to one and to two outcomes, on a small made-up experiment and with tiny
settings: bytes are the point, not quality. What is hashed is the numbers of the effects file, and of evaluations and
comparisons what rests on nuisances of their own. Exit codes: 0 the same as in expected.txt, 1 not the same, 77 the
table is of a machine with other instructions.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import platform
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.txt"
ROWS = 200
DESIGNS = {
    "randomized": [],
    "stratified": ["--design", "stratified", "--stratum", "city"],
    "observational": ["--design", "observational"],
}
OUTCOMES = {"one": "spend", "two": "spend,rides"}
POLICIES = """
[contexts]
peak = 2
night = 1
[policies.control]
"*" = "none"
[policies.T1]
"*" = "none"
peak = "coupon"
[policies.T2]
peak = "none"
night = { coupon = 0.5, upgrade = 0.5 }
[policies.T3]
"*" = "upgrade"
"""

# Settings of learners that are alike.
METHOD = {
    "model": {"members": 2, "hidden": [8], "outcome_hidden": [8], "embedding_dim": 4, "effect_dim": 4, "rho_hidden": 4},
    "training": {"epochs": 2, "folds": 2, "outcome_training": "as-effects"},
}
LEVELS = {"training": {"epochs": 2}}
FOLDED = {"training": {"epochs": 2, "folds": 2}}
TRUNK = {"trunk": [8], "heads": [8]}
ARMS = {"min_arm_rows": 20}
FOREST = {"model": {"trees": 8, "min_arm_rows": 20}}


def merged(*tables):
    """Tables of settings, the later winning."""
    out = {}
    for table in tables:
        for name, entries in table.items():
            out.setdefault(name, {}).update(entries)
    return out


def model(**entries):
    return {"model": entries}


LEARNERS = {
    "poul": METHOD,
    "ridge": {},
    "s-learner": merged(LEVELS, model(hidden=[8])),
    "t-learner": merged(LEVELS, model(hidden=[8], **ARMS)),
    "x-learner": merged(FOLDED, model(hidden=[8], **ARMS)),
    "r-learner": merged(FOLDED, model(hidden=[8], **ARMS)),
    "dr-learner": merged(FOLDED, model(hidden=[8], **ARMS)),
    "tarnet": merged(LEVELS, model(**TRUNK, **ARMS)),
    "cfr": merged(LEVELS, model(**TRUNK, **ARMS)),
    "dragonnet": merged(LEVELS, model(**TRUNK, **ARMS)),
    "descn": merged(LEVELS, model(**TRUNK, **ARMS)),
    "drcfr": merged(LEVELS, model(**TRUNK, **ARMS)),
    "efin": merged(LEVELS, model(token_dim=4, hidden=[8])),
    "sin-cat": merged(FOLDED, model(hidden=[8], effect_dim=4)),
    "graphite": merged(LEVELS, model(**TRUNK, encoder=[8])),
    "drnet": merged(LEVELS, model(**TRUNK, **ARMS)),
    "dedl": merged(FOLDED, model(hidden=[8])),
    "causal-forest": merged(FOREST, model(nuisance_trees=4)),
    "uplift-forest": FOREST,
    "constant": {},
    "random": {},
    "poul-id": METHOD,
    "poul-uncentred": METHOD,
    "poul-running-mean": METHOD,
    "poul-k1": merged(METHOD, {"training": {"folds": 1}}),
    "poul-additive": METHOD,
    "poul-linear": merged(METHOD, model(rho_hidden=0)),
}
LEARNERS["stack"] = {
    "model": {
        "of": ["constant", "poul", "s-learner"],
        "learners": {name: LEARNERS[name] for name in ("poul", "s-learner")},
    },
    "training": {"folds": 2},
}
# The method by settings that reach other code.
VARIANTS = {
    "poul, logistic": ("poul", merged(METHOD, model(loss="logistic")), "bought"),
    "poul, dragonnet": ("poul", merged(METHOD, model(outcome_model="dragonnet")), None),
    "poul, boosted": ("poul", merged(METHOD, model(outcome_model="boosted")), None),
    "poul, auto": ("poul", merged(METHOD, model(outcome_model="auto")), None),
    "poul, mixture": ("poul", merged(METHOD, model(centring="mixture")), None),
    "poul, sampled": ("poul", merged(METHOD, model(centring="sampled", centring_draws=4)), None),
    "poul, halves": ("poul", merged(METHOD, {"training": {"member_rows": "half"}}), None),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="poul, built")
    parser.add_argument("--update", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--only", default="", help="only lines that contain this text; for a look while working")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="fits side by side")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments.binary.resolve(), pathlib.Path(folder))
        bench.check_learners()
        tasks = {name: task for name, task in bench.tasks() if arguments.only in name}
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            found = dict(zip(tasks, pool.map(lambda task: task(), tasks.values())))
    if arguments.update:
        known = read() if arguments.only and EXPECTED.exists() else {}
        known.update(found, machine=machine())
        width = max(map(len, known))
        EXPECTED.write_text("".join(f"{name:{width}}  {value}\n" for name, value in known.items()))
        print(f"{len(found)} lines written to {EXPECTED.name}")
        return 0
    known = read()
    if known.pop("machine", None) != machine():
        print(f"the table is of a machine with other instructions than {machine()}")
        print("write one at the commit before yours with --update, and do not commit it")
        return 77
    known = {name: value for name, value in known.items() if arguments.only in name}
    different = [name for name in {**known, **found} if known.get(name) != found.get(name)]
    for name in different:
        print(f"{name}: {known.get(name, 'nothing')} before, {found.get(name, 'nothing')} now")
    print(f"{len(different)} of {len(found)} differ" if different else f"all {len(found)} are the same")
    return 1 if different else 0


class Bench:
    """A made-up experiment, and the commands that are run on it."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        (folder / "policies.toml").write_text(POLICIES)
        (folder / "data.csv").write_text(experiment())
        self.common = ["--policies", "policies.toml", "--threads", "1", "--quiet"]

    def check_learners(self):
        """Compares the names with those that the program lists when it is asked for a learner it does not have."""
        said = self.run(["fit", "data.csv", "--outcome", "spend", "--learner", "-", "--out", "x"], fails=True)
        listed = said.partition("the learners are")[2]
        names = set(re.findall(r"`([^`]+)`", listed))
        more = re.search(r"(\d+) more", listed)
        n_known = len(names) + int(more[1] if more else 0)
        if not names <= set(LEARNERS) or n_known != len(LEARNERS):
            sys.exit(f"poul has {n_known} learners and this script {len(LEARNERS)}: bring its settings up to date")

    def tasks(self):
        for design in DESIGNS:
            for number, outcomes in OUTCOMES.items():
                place = f"{design}, {number}"
                for name, settings in LEARNERS.items():
                    yield f"{name} / {place}", self.effects(name, settings, design, outcomes)
                yield f"evaluate / {place}", self.evaluation(design, outcomes)
                yield f"compare / {place}", self.comparison(design, outcomes)
            for name, (learner, settings, outcome) in VARIANTS.items():
                yield f"{name} / {design}", self.effects(learner, settings, design, outcome or "spend,rides")

    def effects(self, learner, settings, design, outcomes):
        def task():
            # Its mean over all rows makes no sense where policies differ between rows.
            refused = learner == "poul-running-mean" and design != "randomized"
            folder = self.fit(learner, settings, design, outcomes, refused)
            return "refused" if refused else digest((folder / "effects.csv").read_bytes())

        return task

    def fit(self, learner, settings, design, outcomes, refused=False):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "poul.toml").write_text(toml(settings))
        out, config = str(folder / "m.poul"), str(folder / "poul.toml")
        roles = [*self.common, *DESIGNS[design], "--outcome", outcomes, "--features", "age,trips,tier,x*"]
        self.run(["fit", "data.csv", *roles, "--learner", learner, "--config", config, "--out", out], refused)
        if refused:
            return folder
        effects = str(folder / "effects.csv")
        self.run(["effect", out, "data.csv", "--all", "--threads", "1", "--quiet", "--out", effects])
        return folder

    def evaluation(self, design, outcomes):
        def task():
            folder = self.fit("poul", METHOD, design, outcomes)
            model, out = str(folder / "m.poul"), str(folder / "e.json")
            report = ["--report", str(folder / "r.html"), "--placebo", "0", "--draws", "20"]
            common = [*self.common, *DESIGNS[design]]
            self.run(["evaluate", model, "data.csv", *common, *report, "--json", out])
            return digest(numbers(json.loads(pathlib.Path(out).read_text())))

        return task

    def comparison(self, design, outcomes):
        def task():
            folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            out = str(folder / "c.json")
            roles = [*self.common, *DESIGNS[design], "--outcome", outcomes, "--features", "age,trips,tier,x*"]
            settings = ["--learner", "constant,ridge", "--seeds", "1", "--draws", "20", "--work", str(folder / "w")]
            self.run(["compare", "data.csv", *roles, *settings, "--test-share", "0.3", "--json", out])
            return digest(numbers(json.loads(pathlib.Path(out).read_text())))

        return task

    def run(self, arguments, fails=False):
        done = subprocess.run(
            [self.binary, *arguments], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if (done.returncode != 0) != fails:
            sys.exit(f"poul {' '.join(arguments)}\n{done.stderr}")
        return done.stderr


def experiment():
    """Users of three cities, whose features move both what they got and what they did."""
    chance = random.Random(20)
    lines = ["policy,city,age,trips,tier,x1,x2,spend,rides,bought"]
    for _ in range(ROWS):
        city = chance.choice("ABC")
        age, trips, x1, x2 = (round(chance.uniform(-1, 1), 3) for _ in range(4))
        tier = chance.choice(["gold", "new", ""])
        weights = [1.0, 1.0 + (city == "A"), 1.0 + 0.5 * age, 1.0]
        policy = chance.choices(["control", "T1", "T2", "T3"], weights)[0]
        gain = {"control": 0.0, "T1": 0.5 + age, "T2": 0.2 - x1, "T3": 1.0}[policy]
        spend = trips + 0.5 * (tier == "gold") + gain + chance.uniform(-1, 1)
        rides = 0.5 * trips + 0.3 * gain + chance.uniform(-1, 1)
        bought = int(spend + chance.uniform(-1, 1) > 0.5)
        lines.append(f"{policy},{city},{age},{trips},{tier},{x1},{x2},{spend:.4f},{rides:.4f},{bought}")
    return "\n".join(lines) + "\n"


def toml(settings):
    """Settings as poul.toml has them."""
    tables = [f"[{table}]\n" + "".join(f"{name} = {value(own)}\n" for name, own in entries.items())
              for table, entries in settings.items()]
    return "\n".join(tables)


def value(own):
    if isinstance(own, dict):
        return "{ " + ", ".join(f"{name} = {value(entry)}" for name, entry in own.items()) + " }"
    return json.dumps(own)


def numbers(document):
    """All numbers of a document with the paths to them, but for texts, which may be worded anew, and for times."""
    found = []

    def walk(path, node):
        if isinstance(node, dict):
            for name, entry in node.items():
                walk(f"{path}.{name}", entry)
        elif isinstance(node, list):
            for place, entry in enumerate(node):
                walk(f"{path}.{place}", entry)
        elif isinstance(node, (int, float)) and not isinstance(node, bool) and "seconds" not in path:
            found.append(f"{path} {node!r}")

    walk("", document)
    return "\n".join(found).encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()[:16]


def read():
    lines = EXPECTED.read_text().splitlines()
    return dict(re.split(r"  +", line, maxsplit=1) for line in lines if line)


def machine():
    """What decides which kernels are taken."""
    flags = ""
    path = pathlib.Path("/proc/cpuinfo")
    if path.exists():
        flags = next((line for line in path.read_text().splitlines() if line.startswith("flags")), "")
    known = [name for name in ("avx2", "fma", "avx512f") if f" {name}" in flags]
    return " ".join([platform.machine(), *known])


if __name__ == "__main__":
    sys.exit(main())
