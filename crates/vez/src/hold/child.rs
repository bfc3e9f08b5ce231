//! The command, in a process group of its own, so that it can be stopped with all that it started;
//! with the terminal, if there is one to give.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::signal::SigSet;
use rustix::process::{
    Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, kill_process_group,
    test_kill_process_group, waitpid,
};
use rustix::termios::{isatty, tcgetpgrp, tcsetpgrp};

pub(crate) struct Child {
    /// Of the command and of its group.
    pid: Pid,
    /// Whether it was given the terminal.
    has_terminal: bool,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// With this code; 128 and the signal's number if it died of one.
    Ended(u8),
    Stopped,
}

impl Child {
    pub(crate) fn start(command: &[OsString], facts: &[(&str, String)]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().expect("there is a command to start");
        let child = Command::new(program)
            .args(arguments)
            .envs(facts.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .spawn()?;
        let pid = Pid::from_raw(child.id().cast_signed()).expect("a process has a number");
        let mut child = Self { pid, has_terminal: false };
        child.give_terminal();
        Ok(child)
    }

    /// What has happened since it was last asked. To be asked on every SIGCHLD.
    pub(crate) fn change(&self) -> io::Result<Option<Change>> {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        let Some((_, status)) = waitpid(Some(self.pid), options)? else { return Ok(None) };
        if status.stopped() {
            return Ok(Some(Change::Stopped));
        }
        let code = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => code,
            (_, Some(signal)) => 128 + signal,
            _ => return Ok(None),
        };
        Ok(Some(Change::Ended(u8::try_from(code).unwrap_or(u8::MAX))))
    }

    /// To it and to all that it started and did not put elsewhere.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Whether anything of its group is left.
    pub(crate) fn is_left(&self) -> bool {
        test_kill_process_group(self.pid).is_ok()
    }

    /// Only who is in the foreground may read from the terminal and is reached by Ctrl-C.
    fn give_terminal(&mut self) {
        let stdin = io::stdin();
        let foreground = isatty(&stdin) && tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        if foreground && tcsetpgrp(&stdin, self.pid).is_ok() {
            self.has_terminal = true;
            // It may have tried to read too early, and been stopped for it.
            self.signal(Signal::CONT);
        }
    }

    pub(crate) fn take_terminal_back(&mut self) {
        if !std::mem::take(&mut self.has_terminal) {
            return;
        }
        // From the background this is answered with SIGTTOU, unless one does not want to hear.
        let mut unwanted = SigSet::empty();
        unwanted.add(nix::sys::signal::Signal::SIGTTOU);
        if unwanted.thread_block().is_ok() {
            let _ = tcsetpgrp(io::stdin(), getpgrp());
            let _ = unwanted.thread_unblock();
        }
    }

    /// After Ctrl-Z: stops this process too, so that the shell sees it. Comes back when the shell
    /// continues it, with the terminal at hand; whether the command may go on is for the caller to
    /// say.
    pub(crate) fn stop_along(&mut self) {
        if self.has_terminal {
            self.take_terminal_back();
            let _ = kill_process(getpid(), Signal::STOP);
            self.give_terminal_only();
        }
    }

    fn give_terminal_only(&mut self) {
        let stdin = io::stdin();
        let foreground = tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        self.has_terminal = foreground && tcsetpgrp(&stdin, self.pid).is_ok();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.take_terminal_back();
    }
}
