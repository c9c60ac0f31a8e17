//! A temporary folder in which the `poul` binary is run, and snapshots of what it says.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder of its own for each test; commands run inside it, so that paths in messages are short and stable.
pub(crate) struct Folder {
    root: tempfile::TempDir,
}

/// What one run of the binary did.
pub(crate) struct Run {
    pub(crate) command: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, content).expect("a written file");
        self
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path().join(name)).expect("a file")
    }

    /// Every file and folder below, sorted.
    pub(crate) fn listing(&self) -> Vec<String> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                found.push(entry.path());
                if entry.path().is_dir() {
                    walk(&entry.path(), found);
                }
            }
        }
        let mut found = Vec::new();
        walk(self.path(), &mut found);
        let name = |path: &PathBuf| path.strip_prefix(self.path()).expect("below").display().to_string();
        let mut names: Vec<String> = found.iter().map(name).collect();
        names.sort();
        names
    }

    /// Runs `poul` with these arguments.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_in("", args)
    }

    /// Runs `poul` in a folder below.
    pub(crate) fn run_in(&self, folder: &str, args: &[&str]) -> Run {
        let output = Command::new(env!("CARGO_BIN_EXE_poul"))
            .args(args)
            .current_dir(self.path().join(folder))
            .env("COLUMNS", "100")
            .env("NO_COLOR", "1")
            .env_remove("RUST_BACKTRACE")
            .output()
            .expect("poul runs");
        let quoted = |arg: &&str| match arg.contains([' ', '*', '"', '>', '<', '(']) || arg.is_empty() {
            true => format!("'{arg}'"),
            false => (*arg).to_string(),
        };
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).expect("UTF-8");
            text.replace(&self.path().display().to_string(), "[DIR]")
        };
        Run {
            command: args.iter().map(quoted).collect::<Vec<_>>().join(" "),
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// Runs `poul`, which must succeed, and gives its stdout.
    #[track_caller]
    pub(crate) fn succeeds(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, Some(0), "{}", run.transcript());
        run.stdout
    }

    /// Runs `poul` and reads its stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        serde_json::from_str(&self.succeeds(args)).expect("JSON on stdout")
    }

    /// Runs `poul`, which must fail with `code`, say why, print nothing on stdout and leave the folder as it was.
    #[track_caller]
    pub(crate) fn fails(&self, name: &str, code: i32, args: &[&str]) {
        let before = self.listing();
        let run = self.run(args);
        assert_eq!(run.code, Some(code), "{}", run.transcript());
        assert_eq!(run.stdout, "", "{}", run.transcript());
        assert!(run.stderr.contains("error: "), "{}", run.transcript());
        assert_eq!(self.listing(), before, "{}", run.transcript());
        run.snapshot(name);
    }
}

impl Run {
    /// Command, exit code, stdout and stderr, with clock times left out.
    pub(crate) fn transcript(&self) -> String {
        let Self { command, stdout, stderr, .. } = self;
        let code = self.code.map_or("none".to_string(), |code| code.to_string());
        let stderr: String = stderr.lines().map(|line| without_time(line) + "\n").collect();
        format!(
            "$ poul {command}\nexit code: {code}\n----- stdout -----\n{stdout}----- stderr -----\n{stderr}"
        )
    }

    /// Compares the transcript with the stored one.
    #[track_caller]
    pub(crate) fn snapshot(&self, name: &str) {
        snapshot(name, &self.transcript());
    }
}

/// Compares a text with the stored one.
#[track_caller]
pub(crate) fn snapshot(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// `Profiling: 300 rows in 0.1 s` → `Profiling: 300 rows in [TIME]`.
pub(crate) fn without_time(line: &str) -> String {
    match line.rsplit_once(" in ") {
        Some((before, time)) if time.strip_suffix(" s").is_some_and(|time| time.parse::<f64>().is_ok()) => {
            format!("{before} in [TIME]")
        }
        _ => line.to_string(),
    }
}

/// A small experiment as CSV, the same at every run: three policies, two outcomes, features, and scores.
pub(crate) fn experiment(n_rows: usize) -> String {
    let mut text = String::from("user,policy,gmv,cost,age,city,household,w,tau,tau_cost,truth\n");
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 24) as f64
    };
    for row in 0..n_rows {
        let policy = (random() * 3.0) as usize;
        let age = 18 + (random() * 50.0) as u32;
        let city = ["Rome", "Oslo", "Lima"][(random() * 3.0) as usize];
        let truth = f64::from(age) / 20.0 - 1.0;
        let gmv = 10.0 + f64::from(age) / 10.0 + truth * policy as f64 + 4.0 * random();
        let cost = policy as f64 * (1.0 + random());
        let tau = truth + 2.0 * random() - 1.0;
        let name = ["control", "T1", "T2"][policy];
        text.push_str(&format!(
            "u{row},{name},{gmv:.3},{cost:.3},{age},{city},h{},{:.2},{tau:.3},{:.3},{truth:.3}\n",
            row / 2,
            0.5 + random(),
            1.0 + random(),
        ));
    }
    text
}

/// Policies for [`experiment`].
pub(crate) const POLICIES: &str = "\
[contexts]
peak = 3
off_peak = 1

[policies.control]
\"*\" = \"none\"

[policies.T1]
\"*\" = \"none\"
peak = \"upgrade\"

[policies.T2]
peak = \"upgrade\"
off_peak = { upgrade = 0.5, none = 0.5 }
";

/// `bytes` as a gzip file, stored without compression.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = bytes.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        file.push(u8::from(blocks.peek().is_none()));
        file.extend(length.to_le_bytes());
        file.extend((!length).to_le_bytes());
        file.extend(block);
    }
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    file.extend((!crc).to_le_bytes());
    file.extend((bytes.len() as u32).to_le_bytes());
    file
}
