use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// The signals that this process hears instead of dying of them.
pub(crate) struct Signals(mpsc::UnboundedReceiver<Signal>);

const HEARD: [Signal; 7] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::CHILD,
];

impl Signals {
    /// From now on.
    pub(crate) fn open() -> std::io::Result<Self> {
        let (send, receive) = mpsc::unbounded_channel();
        for heard in HEARD {
            let mut stream = signal(SignalKind::from_raw(heard.as_raw()))?;
            let send = send.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() && send.send(heard).is_ok() {}
            });
        }
        Ok(Self(receive))
    }

    pub(crate) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// The next that asks to end.
    pub(crate) async fn end(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].contains(&signal) {
                return signal;
            }
        }
    }
}
