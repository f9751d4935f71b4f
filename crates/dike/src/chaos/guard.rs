//! The watch over one fault outside of this process.
//!
//! A fault that is left in place ruins a machine for whoever uses it next, so nobody who can die is
//! trusted with undoing it. Each fault gets a *guard*: a small process that puts it in place,
//! waits, and undoes it, and that waits for the end of its standard input. That pipe is the life
//! line: it ends when Dike closes it, and also when Dike panics, is interrupted or is killed. By
//! ssh it ends with the connection, and should nobody notice that the connection is dead, a time
//! limit of the guard's own is the last resort. The guard leads a process group of its own: a
//! Ctrl-C at the terminal does not reach it.
//!
//! A guard is a text for the POSIX shell (the folder `scripts`, assembled in
//! [`orders`](super::orders)), the same here and by ssh, or this program as a
//! [worker](super::stress). It says on its standard output
//!
//! ```text
//! dike-guard hint kill -CONT 4711     what undoes the fault if the guard is gone
//! dike-guard started                  the fault holds
//! dike-guard failed                   it does not; what was done of it is being undone
//! dike-guard undone
//! dike-guard undo-failed
//! ```
//!
//! and everything else it says goes to the journal. If a guard vanishes without `undone`, Dike runs
//! its last hint over the same way; if that fails too, the user gets the command.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::lines::Lines;
use super::machines::Shell;

/// What begins a line that is meant for us.
pub(crate) const PREFIX: &str = "dike-guard ";

/// How many other lines of a guard are kept.
const SAID_MAX: usize = 20;

/// How long we listen to a guard that has ended: something that it started may hold its pipes open.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How to start a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Orders {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// What it reads first.
    pub first_line: Option<String>,
    /// Where its hints are to be run.
    pub shell: Shell,
}

/// A guard that runs. If it is dropped, it undoes its fault without anybody watching.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
    life_line: Option<ChildStdin>,
    out: Lines<ChildStdout>,
    err: Lines<ChildStderr>,
    shell: Shell,
    hint: Option<String>,
    said: Vec<String>,
    exited: bool,
    /// How it ended, once it has said so or has vanished.
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Undone,
    UndoFailed,
    Vanished,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Started,
    Failed,
    End(End),
}

/// A fault that is still in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftBehind {
    /// What a user can run to undo it.
    pub command: String,
    /// What was said on the way.
    pub detail: String,
}

impl Guard {
    /// Starts a guard.
    pub(crate) async fn start(orders: &Orders) -> io::Result<Guard> {
        let mut command = Command::new(&orders.words[0]);
        command.args(&orders.words[1..]).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut life_line = child.stdin.take();
        if let (Some(line), Some(pipe)) = (&orders.first_line, life_line.as_mut()) {
            // Whoever does not read it says why on its standard error.
            let _ = pipe.write_all(format!("{line}\n").as_bytes()).await;
        }
        let (out, err) = (Lines::new(child.stdout.take()), Lines::new(child.stderr.take()));
        let (shell, said) = (orders.shell.clone(), Vec::new());
        Ok(Guard { child, life_line, out, err, shell, hint: None, said, exited: false, end: None })
    }

    /// Waits until the fault holds (true), or until it is clear that it does not. Nothing is lost
    /// if the future is dropped.
    pub(crate) async fn holds(&mut self) -> bool {
        self.word().await == Word::Started
    }

    /// Waits until the guard ends although nobody has told it to. Nothing is lost if the future is
    /// dropped.
    pub(crate) async fn ends(&mut self) {
        while self.end.is_none() {
            self.word().await;
        }
    }

    /// Has the fault undone, within this time for each way to do it. Returns what was said.
    pub(crate) async fn undo(mut self, limit: Duration) -> Result<String, LeftBehind> {
        self.life_line = None;
        let in_time = timeout(limit, self.ends()).await.is_ok();
        if self.end == Some(End::Undone) {
            let _ = timeout(LAST_WORDS, self.exit()).await;
            return Ok(self.detail());
        }
        if !in_time {
            self.said.push(format!("not undone within {} s", limit.as_secs_f64()));
        }
        // It is stuck or gone. What it held by itself ends with it.
        let _ = self.child.start_kill();
        let _ = timeout(limit, self.child.wait()).await;
        let Some(hint) = self.hint.clone() else { return Ok(self.detail()) };
        match run(&self.shell.command(&hint), limit).await {
            Ok(said) => {
                self.said.push(format!("undone by the second way: {hint} {said}"));
                Ok(self.detail())
            }
            Err(said) => {
                self.said.push(said);
                Err(LeftBehind { command: self.shell.typed(&hint), detail: self.detail() })
            }
        }
    }

    /// What it said beside its protocol, as one line.
    pub(crate) fn detail(&self) -> String {
        self.said.join("; ")
    }

    async fn word(&mut self) -> Word {
        loop {
            if let Some(end) = self.end {
                return Word::End(end);
            }
            let line = if self.exited {
                timeout(LAST_WORDS, self.out.next()).await.ok().flatten()
            } else {
                tokio::select! {
                    biased;
                    Some(line) = self.out.next() => Some(line),
                    Some(line) = self.err.next() => { self.note(line); continue }
                    _ = self.child.wait() => { self.exited = true; continue }
                }
            };
            let Some(line) = line else {
                self.exit().await;
                self.end = Some(End::Vanished);
                continue;
            };
            match line.strip_prefix(PREFIX) {
                Some("started") => return Word::Started,
                Some("failed") => return Word::Failed,
                Some("undone") => self.end = Some(End::Undone),
                Some("undo-failed") => self.end = Some(End::UndoFailed),
                Some(other) => {
                    self.hint = other.strip_prefix("hint ").map(str::to_owned).or(self.hint.take())
                }
                None => self.note(line),
            }
        }
    }

    /// Waits for its end, and listens to what it still says of reasons.
    async fn exit(&mut self) {
        let _ = self.child.wait().await;
        while let Ok(Some(line)) = timeout(LAST_WORDS, self.err.next()).await {
            self.note(line);
        }
    }

    fn note(&mut self, line: String) {
        let line = line.trim();
        if !line.is_empty() && self.said.len() < SAID_MAX {
            self.said.push(line.to_owned());
        }
    }
}

/// Runs a command to its end. Returns its output, or why it failed.
async fn run(words: &[String], limit: Duration) -> Result<String, String> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
    match timeout(limit, command.output()).await {
        Err(_) => Err(format!("no answer within {} s", limit.as_secs_f64())),
        Ok(Err(error)) => Err(format!("{}: {error}", words[0])),
        Ok(Ok(output)) => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
            if output.status.success() { Ok(said) } else { Err(format!("{}: {said}", output.status)) }
        }
    }
}
