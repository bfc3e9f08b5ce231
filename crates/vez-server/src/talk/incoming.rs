//! What a caller goes on saying, for whoever hears it message by message.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// So much of what was said in a call is not kept any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) id: u32,
    pub(super) weighs: u32,
}

/// How a connection goes on with a call. There is no limit to it but what the caller may send
/// before anything is taken.
pub(super) type Tell = UnboundedSender<(Bytes, u32)>;

/// The body of a request; what is taken of it, or never will be, is reported.
pub(super) struct Incoming {
    id: u32,
    said: UnboundedReceiver<(Bytes, u32)>,
    report: UnboundedSender<Taken>,
}

impl Incoming {
    pub(super) fn new(id: u32, report: UnboundedSender<Taken>) -> (Tell, Self) {
        let (tell, said) = mpsc::unbounded_channel();
        (tell, Self { id, said, report })
    }

    fn report(&self, weighs: u32) {
        // Whoever does not listen any more has no use for it.
        let _ = self.report.send(Taken { id: self.id, weighs });
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some((bytes, weighs)) = ready!(self.said.poll_recv(cx)) else {
            return Poll::Ready(None);
        };
        self.report(weighs);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.said.close();
        while let Ok((_, weighs)) = self.said.try_recv() {
            self.report(weighs);
        }
    }
}
