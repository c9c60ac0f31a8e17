#!/usr/bin/env python3
"""Does to every long command what happens to commands, and compares the bytes with a run that was left alone.

    python3 tests/chaos/chaos.py --binary target/debug/poul [--kills 500] [--others 200] [--seed 3407] [--only TEXT] [--json FILE]

A fault is one of: kill (SIGKILL), term, int, hup, stop (and go on), full (disk), readonly (folder), replaced, overwritten, cut, deleted
(input, while it is read), two (at once on one output), memory (addresses), files (descriptors), clock (jumps, with libfaketime).
After each: an output is not there, or as it was before, or whole and byte for byte that of a run left alone; a command that fails says
`error:` and exits as documented; the same command run again, with --resume where there is that, gives those bytes and leaves nothing
beside them. What cannot be done here is skipped, and says so. Exit codes: 0 nothing differed, 1 something did.
"""

import argparse
import collections
import functools
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# What a command may exit with: DESIGN calls 2 wrong usage, 3 bad input, 4 could not write, 1 anything else; 130 is a request to stop.
DOCUMENTED = {0, 1, 2, 3, 4, 130}
OLD = b"what was there before\n"
# Nothing here takes so long but by hanging.
PATIENCE = 600
COMMON = ["-q", "--threads", "1"]
ROLES = ["--policies", "policies.toml", "--outcome", "y", "--control", "control", *COMMON]
POLICIES = """[policies.control]
"*" = "none"
[policies.T1]
"*" = "none"
peak = "upgrade"
[policies.T2]
peak = "upgrade"
off_peak = { upgrade = 0.5, none = 0.5 }
"""
CONFIGS = {
    "poul": '[model]\nmembers = 2\nhidden = [8]\n[training]\nepochs = 3\nfolds = 2\n',
    "s-learner": "[model]\nmembers = 1\nhidden = [8]\n[training]\nepochs = 3\n",
    "causal-forest": "[model]\ntrees = 24\n",
    "ridge": "",
    "several": "[learners.s-learner.model]\nmembers = 1\nhidden = [8]\n[learners.s-learner.training]\nepochs = 2\n",
}


class Command:
    """A long command: its arguments, its outputs, and what it is known to do."""

    def __init__(self, name, arguments, outputs, reads=None, resumes=False, listens=False):
        self.name, self.arguments, self.outputs = name, arguments, outputs
        self.reads, self.resumes, self.listens = reads, resumes, listens
        self.expected, self.seconds = {}, 0.0


def commands():
    def fit(learner):
        arguments = ["fit", "train.csv", *ROLES, "--learner", learner, "--config", f"{learner}.toml", "--out", "out.poul"]
        return Command(f"fit {learner}", arguments, ["out.poul"], "train.csv", True, True)

    compare = ["compare", "train.csv", "--test", "test.csv", *ROLES, "--learner", "constant,s-learner", "--config", "several.toml",
               "--draws", "20", "--work", "work", "--json", "out.json"]
    tune = ["tune", "train.csv", *ROLES, "--learner", "s-learner", "--config", "s-learner.toml", "--trials", "2", "--out", "out.toml"]
    evaluate = ["evaluate", "model.poul", "test.csv", *COMMON, "--draws", "20", "--json", "out.json", "--report", "out.html"]
    effect = ["effect", "model.poul", "test.csv", *COMMON, "--all", "--out", "out.parquet"]
    allocate = ["allocate", "model.poul", "test.csv", *COMMON, "--maximize", "y", "--cap", "T1=0.2", "--out", "out.csv"]
    simulate = ["simulate", *COMMON, "--scenario", "long-tail", "--rows", "4000", "--test-rows", "200", "--out", "out"]
    return [
        fit("poul"), fit("s-learner"), fit("causal-forest"), fit("ridge"),
        Command("compare", compare, ["out.json"], "train.csv", True, True),
        Command("tune", tune, ["out.toml"], "train.csv", True, True),
        Command("evaluate", evaluate, ["out.json", "out.html"], "test.csv"),
        Command("effect", effect, ["out.parquet"], "test.csv"),
        Command("allocate", allocate, ["out.csv"], "test.csv"),
        Command("simulate", simulate, ["out"]),
    ]


class Trouble(Exception):
    """Something that should not have happened."""


class Skipped(Exception):
    """Something that cannot be done here."""


class Chaos:
    def __init__(self, binary, root, dice):
        self.binary, self.root, self.dice = binary, root, dice
        self.world = root / "world"
        self.n_folders = 0

    def prepare(self, chosen):
        """A small experiment, a model of it, and every command left alone, twice."""
        self.world.mkdir()
        (self.world / "policies.toml").write_text(POLICIES)
        write_csv(self.world / "train.csv", 240)
        write_csv(self.world / "test.csv", 120)
        for name, text in CONFIGS.items():
            (self.world / f"{name}.toml").write_text(text)
        model = ["fit", "train.csv", *ROLES, "--learner", "poul", "--config", "poul.toml", "--out", "model.poul"]
        subprocess.run([self.binary, *model], check=True, cwd=self.world, stdout=subprocess.DEVNULL)
        for command in chosen:
            start = time.monotonic()
            folder = self.folder()
            self.run(command, folder, codes={0})
            command.seconds = time.monotonic() - start
            command.expected = {name: content(folder / name) for name in command.outputs}
            self.done(command, folder)
            again = self.folder()
            self.run(command, again, codes={0})
            self.done(command, again)

    def folder(self):
        self.n_folders += 1
        folder = self.root / f"run{self.n_folders}"
        shutil.copytree(self.world, folder)
        return folder

    def start(self, command, folder, resume=False, limits=(), environment=None, arguments=None):
        arguments = list(arguments or command.arguments)
        if resume and command.resumes:
            arguments.append("--resume")

        def limit():
            for what, amount in limits:
                resource.setrlimit(what, (amount, amount))

        # A write beyond the limit of a file's size is then an error, not a signal.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        environment = {**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1", **(environment or {})}
        environment.pop("RUST_BACKTRACE", None)
        with open(folder / "stderr", "wb") as words:
            return subprocess.Popen(
                [self.binary, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=words,
                preexec_fn=limit, restore_signals=False, env=environment)

    def wait(self, process, folder, codes=None):
        """The exit code; one that is not documented, or an end without a word, is trouble."""
        try:
            code = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Trouble(f"does not end within {PATIENCE} s") from None
        words = (folder / "stderr").read_text(errors="replace")
        if "internal error" in words or "panicked at" in words:
            raise Trouble(f"a panic: {words.strip()[-300:]}")
        if codes is not None and code not in codes:
            raise Trouble(f"exits with {code}, not with one of {sorted(codes)}: {words.strip()[-300:]}")
        if code > 0 and code != 130 and "error:" not in words:
            raise Trouble(f"exits with {code} and does not say why: {words.strip()[-300:]}")
        return code

    def run(self, command, folder, codes=None, **how):
        return self.wait(self.start(command, folder, **how), folder, codes)

    def whole(self, command, folder, before=None):
        """Every output is not there, or as before, or that of a run left alone. Several of one command come one after the other."""
        for name in command.outputs:
            found = content(folder / name)
            if found is None or found == before or found == command.expected[name]:
                continue
            if isinstance(found, dict):
                parts = {part: bytes for part, bytes in found.items() if not is_passing(part)}
                if all(command.expected[name].get(part) == bytes for part, bytes in parts.items()):
                    continue
            raise Trouble(f"`{name}` is torn or of another run")

    def done(self, command, folder):
        """Everything is there, and nothing else."""
        for name in command.outputs:
            if content(folder / name) != command.expected[name]:
                raise Trouble(f"`{name}` is not that of a run left alone")
        left = [path.name for path in folder.iterdir() if is_passing(path.name)]
        if left:
            raise Trouble(f"left behind: {', '.join(sorted(left))}")

    def again(self, command, folder, resume):
        self.run(command, folder, codes={0}, resume=resume)
        self.done(command, folder)

    def before(self, command, folder):
        """Sometimes there is an older result."""
        if self.dice.random() < 0.4 and command.name != "simulate":
            for name in command.outputs:
                (folder / name).write_bytes(OLD)
            return OLD
        return None

    def pause(self, command):
        time.sleep(command.seconds * self.dice.random() * 1.05)

    # Faults, each a way to end badly.

    def kill(self, command):
        folder = self.folder()
        before = self.before(command, folder)
        for turn in range(self.dice.choice([1, 1, 1, 2, 3])):
            process = self.start(command, folder, resume=turn > 0)
            self.pause(command)
            process.kill()
            process.wait()
            self.whole(command, folder, before)
        self.again(command, folder, self.dice.random() < 0.7)

    def asked(self, command, number):
        folder = self.folder()
        before = self.before(command, folder)
        process = self.start(command, folder)
        self.pause(command)
        process.send_signal(number)
        code = process.wait(PATIENCE)
        if code not in {0, 130, -number} or (command.listens and code == -number and self.was_listening(command, folder)):
            raise Trouble(f"exits with {code} when it is asked to stop")
        self.whole(command, folder, before)
        self.again(command, folder, self.dice.random() < 0.7)

    def was_listening(self, command, folder):
        """One that had begun to work would have left something to go on from."""
        return any(name.endswith(".partial") for name in os.listdir(folder))

    def term(self, command):
        self.asked(command, signal.SIGTERM)

    def int(self, command):
        self.asked(command, signal.SIGINT)

    def hup(self, command):
        self.asked(command, signal.SIGHUP)

    def stop(self, command):
        folder = self.folder()
        process = self.start(command, folder)
        for _ in range(3):
            time.sleep(command.seconds * self.dice.random() / 3)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            process.send_signal(signal.SIGCONT)
        self.wait(process, folder, {0})
        self.done(command, folder)

    def full(self, command):
        folder = self.folder()
        before = self.before(command, folder)
        largest = max(size(folder_content) for folder_content in command.expected.values())
        limit = self.dice.randrange(max(1, largest))
        code = self.run(command, folder, codes={0, 4}, limits=[(resource.RLIMIT_FSIZE, limit)])
        self.whole(command, folder, before)
        if code == 0:
            raise Trouble(f"says that it is done with {limit} bytes of {largest}")
        self.again(command, folder, True)

    def readonly(self, command):
        folder = self.folder()
        there = folder / "there"
        there.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(there)], capture_output=True)
        if mounted.returncode != 0:
            if os.geteuid() == 0:
                raise Skipped("nothing can be mounted here, and root may write to every folder")
            there.chmod(0o555)
        try:
            moved = [f"there/{part}" if part.startswith("out") else part for part in command.arguments]
            self.run(command, folder, codes={4}, arguments=moved)
            if any(there.iterdir()):
                raise Trouble("something was written")
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", str(there)], check=True)

    def spoiled(self, command, how):
        if command.reads is None:
            raise Skipped("it reads no table")
        folder = self.folder()
        before = self.before(command, folder)
        table = folder / command.reads
        text = table.read_bytes()
        lines = text.splitlines(keepends=True)
        # Outcomes of other rows: it stays a table.
        other = b"".join([lines[0], *reversed(lines[1:])])
        process = self.start(command, folder)
        self.pause(command)
        if how == "replaced":
            (folder / "new").write_bytes(other)
            os.replace(folder / "new", table)
        elif how == "overwritten":
            with open(table, "r+b") as file:
                file.write(other)
        elif how == "cut":
            os.truncate(table, len(text) // 2)
        else:
            table.unlink()
        self.wait(process, folder, {0, 3})
        # A command that ended well had read what was there at first, or all that is there now.
        self.whole_or_of(command, folder, before, table)
        table.write_bytes(text)
        self.again(command, folder, False)

    def whole_or_of(self, command, folder, before, table):
        try:
            self.whole(command, folder, before)
        except Trouble:
            if not table.exists():
                raise
            fresh = self.folder()
            shutil.copy(table, fresh / command.reads)
            self.run(command, fresh, codes={0})
            for name in command.outputs:
                if content(fresh / name) != content(folder / name):
                    raise Trouble("the table was changed while it was read, and nobody said so") from None

    def replaced(self, command):
        self.spoiled(command, "replaced")

    def overwritten(self, command):
        self.spoiled(command, "overwritten")

    def cut(self, command):
        self.spoiled(command, "cut")

    def deleted(self, command):
        self.spoiled(command, "deleted")

    def two(self, command):
        folder = self.folder()
        first = self.start(command, folder)
        if self.dice.random() < 0.5:
            self.pause(command)
        words = (folder / "stderr").read_bytes()
        second = self.start(command, folder)
        codes = [first.wait(PATIENCE), second.wait(PATIENCE)]
        text = (folder / "stderr").read_text(errors="replace")
        if not set(codes) <= {0, 2, 4} or 0 not in codes or "panicked at" in text:
            raise Trouble(f"two at once exit with {codes}: {words.decode(errors='replace')[-150:]}{text.strip()[-300:]}")
        self.whole(command, folder)
        self.again(command, folder, False)

    @functools.cache
    def least_addresses(self):
        """MiB of addresses that the system needs to load the program at all: with fewer nothing of ours gets to say a word."""
        def starts(mebibytes):
            def limit():
                resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))
            done = subprocess.run([self.binary, "--version"], preexec_fn=limit, stdin=subprocess.DEVNULL, capture_output=True)
            return done.returncode >= 0
        return next((mebibytes for mebibytes in range(8, 400, 4) if starts(mebibytes)), 400) + 4

    def memory(self, command):
        folder = self.folder()
        before = self.before(command, folder)
        limit = self.dice.randrange(self.least_addresses(), 400) << 20
        process = self.start(command, folder, limits=[(resource.RLIMIT_AS, limit)])
        code = process.wait(PATIENCE)
        words = (folder / "stderr").read_text(errors="replace")
        # What the system refuses ends the program with a word, whoever asked: the loader, a thread, or an allocation.
        told = any(said in words for said in ["memory", "error", "Resource temporarily unavailable", "stack guard page"])
        if code not in DOCUMENTED and not told:
            raise Trouble(f"exits with {code} under {limit >> 20} MiB of addresses and does not say why: {words.strip()[-300:]}")
        self.whole(command, folder, before)
        if code == 0:
            self.done(command, folder)
        self.again(command, folder, False)

    def files(self, command):
        folder = self.folder()
        before = self.before(command, folder)
        limit = self.dice.randrange(3, 14)
        code = self.run(command, folder, codes=DOCUMENTED, limits=[(resource.RLIMIT_NOFILE, limit)])
        self.whole(command, folder, before)
        if code == 0:
            self.done(command, folder)
        self.again(command, folder, False)

    def clock(self, command):
        library = next((path for place in ["/usr/lib", "/usr/local/lib"] for path in pathlib.Path(place).rglob("libfaketime.so.1")), None)
        if library is None:
            raise Skipped("libfaketime is not installed")
        folder = self.folder()
        jump = self.dice.choice(["-10y", "+10y", "@1970-01-01 00:00:01", "@2038-01-19 03:14:07"])
        self.run(command, folder, codes={0}, environment={"LD_PRELOAD": str(library), "FAKETIME": jump})
        self.done(command, folder)

    def slow(self, command):
        raise Skipped(f"a disk cannot be slowed down without a device of its own ({command.name})")


OTHERS = ["term", "int", "hup", "stop", "full", "readonly", "replaced", "overwritten", "cut", "deleted", "two", "memory", "files", "clock",
          "slow"]


def is_passing(name):
    """What may lie beside an output while it is made: a lock, a checkpoint, a file that is not whole yet."""
    return name.endswith((".lock", ".partial")) or name.startswith(".poul-")


def content(path):
    """The bytes of a file, of all files of a folder, or None."""
    if path.is_dir():
        return {str(part.relative_to(path)): part.read_bytes() for part in sorted(path.rglob("*")) if part.is_file()}
    return path.read_bytes() if path.exists() else None


def size(found):
    return max(map(len, found.values())) if isinstance(found, dict) else len(found)


def write_csv(path, n_rows):
    """Text, so that what is left of a table that is overwritten or cut still reads."""
    own = random.Random(n_rows)
    lines = ["policy,y,age,trips,city,core\n"]
    for _ in range(n_rows):
        policy, age = own.randrange(3), own.random()
        y = age + policy * (age - 0.3) + own.gauss(0, 0.5)
        name, city = ["control", "T1", "T2"][policy], own.choice(["Rome", "Oslo"])
        lines.append(f"{name},{y:.4f},{age:.4f},{own.randrange(40)},{city},{own.randrange(2)}\n")
    path.write_text("".join(lines))


def attack(chaos, faults, totals, troubles, skipped):
    for fault, command in faults:
        try:
            getattr(chaos, fault)(command)
            totals[fault] += 1
        except Skipped as reason:
            skipped[fault] = str(reason)
        except Trouble as trouble:
            totals[fault] += 1
            troubles.append({"fault": fault, "command": command.name, "what": str(trouble)})
            print(f"FAILED {fault} of {command.name}: {trouble}", file=sys.stderr, flush=True)
        for path in chaos.root.glob("run*"):
            shutil.rmtree(path, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True, help="the poul program, built")
    parser.add_argument("--kills", type=int, default=500, help="how often something is killed")
    parser.add_argument("--others", type=int, default=200, help="how many other faults there are")
    parser.add_argument("--seed", type=int, default=3407, help="of what happens to which command; when is up to the machine")
    parser.add_argument("--only", default="", help="faults and commands whose `FAULT COMMAND` contains this")
    parser.add_argument("--json", type=pathlib.Path, help="write the summary here too")
    arguments = parser.parse_args()
    if os.name != "posix":
        print("signals and limits are those of Unix")
        return 77
    start, dice = time.monotonic(), random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="poul-chaos-") as root:
        chaos = Chaos(str(arguments.binary.resolve()), pathlib.Path(root), dice)
        wanted = lambda fault, command: arguments.only in f"{fault} {command.name}"
        chosen = [command for command in commands() if any(wanted(fault, command) for fault in ["kill", *OTHERS])]
        chaos.prepare(chosen)
        pairs = [(fault, command) for fault in OTHERS for command in chosen if wanted(fault, command)]
        # Every command is killed as often, every other fault comes as often.
        killed = [command for command in chosen if wanted("kill", command)]
        kills = [("kill", killed[number % len(killed)]) for number in range(arguments.kills if killed else 0)]
        dice.shuffle(pairs)
        others = [pairs[number % len(pairs)] for number in range(arguments.others if pairs else 0)]
        totals, troubles, skipped = collections.Counter(), [], {}
        attack(chaos, kills + others, totals, troubles, skipped)
    print(f"chaos: {totals['kill']} runs killed, {sum(totals.values()) - totals['kill']} other faults, {len(troubles)} failures, "
          f"{time.monotonic() - start:.0f} s; seed {arguments.seed}")
    print("  " + ", ".join(f"{fault} {n}" for fault, n in sorted(totals.items())))
    for fault, reason in sorted(skipped.items()):
        print(f"  SKIPPED {fault}: {reason}")
    for trouble in troubles:
        print(f"  FAILED {trouble['fault']} of {trouble['command']}: {trouble['what']}")
    if arguments.json:
        summary = {"seed": arguments.seed, "faults": totals, "failures": troubles, "skipped": skipped}
        arguments.json.write_text(json.dumps(summary, indent=2) + "\n")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
