//! `vez lab`: the page on which runs are watched and broken.

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::{Outcome, output};
use crate::lab::{self, Limits};

/// Serve the lab: a page to watch an algorithm, break it and understand it.
///
/// Open the address it prints in a browser. It needs no network, and answers this machine only
/// unless told otherwise.
///
/// Example: vez lab --listen 127.0.0.1:8080
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Lab {
    /// Where to listen; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2382")]
    listen: SocketAddr,
}

impl Lab {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(self.serve())?;
        Ok(Outcome::Kept)
    }

    async fn serve(self) -> anyhow::Result<()> {
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        output::write(None, &format!("http://{}/", listener.local_addr()?))?;
        eprintln!("vez: the lab is at that address; Ctrl-C ends it");
        let over = async {
            if tokio::signal::ctrl_c().await.is_err() {
                // Without a way to hear of it the lab ends when it is killed.
                std::future::pending::<()>().await;
            }
        };
        lab::serve(listener, Limits::default(), over).await.context("the lab broke off")
    }
}
