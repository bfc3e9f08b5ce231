//! What a process's user says to it, a line at a time, and where it answers.

use std::io::{BufRead as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::Context as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{broadcast, mpsc};
use vez_core::{Time, Wish};
use vez_net::{Group, Order};

pub(crate) const HELP: &str =
    "acquire [HOLD], release, withdraw, start, suspect UID, count, reload, quit";

/// A line of the user's, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Order(Order),
    Reload,
    Help,
    Quit,
}

/// What a line means to a process of this group; nothing if it is empty.
pub(crate) fn understand(line: &str, group: &Group) -> Result<Option<Said>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let wish = |wish| Ok(Some(Said::Order(Order::Wish(wish))));
    match words[..] {
        [] => Ok(None),
        ["acquire"] => wish(Wish::Acquire),
        ["acquire", hold] => {
            let hold = Time::from_str(hold).map_err(|error| error.to_string())?;
            Ok(Some(Said::Order(Order::Visit(hold))))
        }
        ["release"] => wish(Wish::Release),
        ["withdraw"] => wish(Wish::Withdraw),
        ["start"] => wish(Wish::Start),
        ["suspect", uid] => {
            let uid = uid.parse().map_err(|_| format!("`{uid}` is not a uid"))?;
            wish(Wish::Suspect(group.node(uid).map_err(|error| error.to_string())?))
        }
        ["count"] => Ok(Some(Said::Order(Order::Count))),
        ["reload"] => Ok(Some(Said::Reload)),
        ["help"] => Ok(Some(Said::Help)),
        ["quit"] => Ok(Some(Said::Quit)),
        _ => Err(format!("`{}` is no command; expected {HELP}", line.trim())),
    }
}

/// Lines in from standard input and the control socket; events out to standard output and to
/// whoever is connected.
pub(crate) struct Console {
    lines: mpsc::UnboundedReceiver<Option<String>>,
    listeners: broadcast::Sender<String>,
    print: Option<std::sync::mpsc::SyncSender<String>>,
    writer: Option<std::thread::JoinHandle<()>>,
    socket: Option<PathBuf>,
}

/// A reader that falls this far behind misses events; the process does not wait for it.
const BEHIND_MAX: usize = 1 << 16;

impl Console {
    pub(crate) fn open(socket: Option<&Path>) -> anyhow::Result<Self> {
        let (said, lines) = mpsc::unbounded_channel();
        let (listeners, _) = broadcast::channel(1024);
        if let Some(path) = socket {
            let listener =
                listen(path).with_context(|| format!("cannot listen on {}", path.display()))?;
            tokio::spawn(welcome(listener, said.clone(), listeners.clone()));
        }
        // A thread of its own, for reading from a terminal cannot be called off.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if said.send(Some(line)).is_err() {
                    return;
                }
            }
            let _ = said.send(None);
        });
        let (print, lines_out) = std::sync::mpsc::sync_channel::<String>(BEHIND_MAX);
        let writer = std::thread::spawn(move || {
            let mut stdout = std::io::stdout();
            for line in lines_out {
                if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                    return;
                }
            }
        });
        let socket = socket.map(Path::to_owned);
        Ok(Self { lines, listeners, print: Some(print), writer: Some(writer), socket })
    }

    /// The next line; `None` once standard input has ended.
    pub(crate) async fn next(&mut self) -> Option<String> {
        match self.lines.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn tell(&self, event: &Value) {
        let line = format!("{event}\n");
        // Whoever does not listen, or not fast enough, misses it.
        let _ = self.listeners.send(line.clone());
        if let Some(print) = &self.print {
            let _ = print.try_send(line);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.print = None;
        if let Some(writer) = self.writer.take() {
            // It ends when all is printed, or when nobody reads.
            let _ = writer.join();
        }
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    // What a killed process left behind is in nobody's way; a file that is no socket is.
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn welcome(
    listener: UnixListener,
    said: mpsc::UnboundedSender<Option<String>>,
    listeners: broadcast::Sender<String>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(converse(stream, said.clone(), listeners.subscribe()));
    }
}

async fn converse(
    stream: UnixStream,
    said: mpsc::UnboundedSender<Option<String>>,
    mut events: broadcast::Receiver<String>,
) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    let mut listens = true;
    loop {
        tokio::select! {
            line = lines.next_line(), if listens => match line {
                Ok(Some(line)) => {
                    if said.send(Some(line)).is_err() {
                        return;
                    }
                }
                _ => listens = false,
            },
            event = events.recv() => match event {
                Ok(event) => {
                    if writer.write_all(event.as_bytes()).await.is_err() {
                        return;
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => (),
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}
