//! `vez snapshot`: all that a service remembers, in a file, and back.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde_json::json;
use vez_client::Client;
use vez_server::backup;
use vez_server::state::State;

use super::{Outcome, output};
use crate::hold::{Endpoints, Format};

/// Save all that a service remembers in a file, look at such a file, or begin anew from one.
///
/// Saving does not stop anybody: the file has what there was at one moment. It is whole, or it is
/// not there; a checksum says whether it still is what was saved.
///
/// Restoring makes the directory of a new cluster of one; servers of the old one must not go on.
/// Keys, their revisions and leases are as they were, each lease with its full time. Revisions go
/// on beyond --bump-revision, so that no fence that the old service granted after the snapshot is
/// granted again.
///
/// Examples:
///   vez snapshot save backup.vez
///   vez snapshot status backup.vez --format json
///   vez snapshot restore backup.vez --data-dir /var/lib/vez
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Snapshot {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Save all that a running service remembers.
    ///
    /// Example: vez snapshot save backup.vez --endpoints 10.0.0.1:2379
    Save {
        file: PathBuf,
        #[command(flatten)]
        endpoints: Endpoints,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Say what is in a file, if it is whole.
    ///
    /// Example: vez snapshot status backup.vez
    Status {
        file: PathBuf,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
    /// Make a data directory out of a file.
    ///
    /// Example: vez snapshot restore backup.vez --data-dir /var/lib/vez
    Restore {
        file: PathBuf,
        /// Where; there must be nothing yet.
        #[arg(long, value_name = "DIRECTORY")]
        data_dir: PathBuf,
        /// So many revisions are left out: more than were written after the snapshot.
        #[arg(long, value_name = "REVISIONS", default_value_t = 1_000_000_000)]
        bump_revision: u32,
        #[arg(long, value_enum, default_value = "text")]
        format: Format,
    },
}

impl Snapshot {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let (told, format) = match self.what {
            What::Save { file, endpoints, format } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                let (state, bytes) = runtime.block_on(async {
                    let client = endpoints.connect().await?;
                    save(&client, &file).await
                })?;
                (Told { verb: "saved", file, bytes, state, place: None }, format)
            }
            What::Status { file, format } => {
                let (state, bytes) = read(&file)?;
                (Told { verb: "holds", file, bytes, state, place: None }, format)
            }
            What::Restore { file, data_dir, bump_revision, format } => {
                let (mut state, bytes) = read(&file)?;
                state.skip_revisions(bump_revision);
                backup::restore(&state, &data_dir)?;
                (Told { verb: "restored", file, bytes, state, place: Some(data_dir) }, format)
            }
        };
        output::write(None, &told.say(format)?)?;
        Ok(Outcome::Kept)
    }
}

/// What became of it.
struct Told {
    verb: &'static str,
    file: PathBuf,
    bytes: u64,
    state: State,
    place: Option<PathBuf>,
}

impl Told {
    fn say(&self, format: Format) -> anyhow::Result<String> {
        let Self { verb, file, bytes, state, place } = self;
        let (revision, keys, leases) = (state.revision(), state.len(), state.leases().len());
        let hash = format!("{:08x}", state.hash());
        if let Format::Json = format {
            return Ok(serde_json::to_string(&json!({
                "file": file,
                "bytes": bytes,
                "revision": revision,
                "keys": keys,
                "leases": leases,
                "hash": hash,
                "data_dir": place,
            }))?);
        }
        let place =
            place.as_ref().map_or(String::new(), |place| format!(" to {}", place.display()));
        let file = file.display();
        Ok(format!(
            "{verb} {file}{place}: {bytes} bytes, revision {revision}, {keys} keys, \
             {leases} leases, hash {hash}"
        ))
    }
}

/// Reads a file and says how long it is.
fn read(path: &Path) -> anyhow::Result<(State, u64)> {
    let whole = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let state = backup::unseal(&whole).with_context(|| format!("{}", path.display()))?;
    Ok((state, whole.len() as u64))
}

/// Under its name only when it is whole and durable.
async fn save(client: &Client, path: &Path) -> anyhow::Result<(State, u64)> {
    ensure!(path.symlink_metadata().is_err(), "{} is there already", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let saved = download(client, &part).await.and_then(|()| {
        let found = read(&part)?;
        let renamed = fs::rename(&part, path).and_then(|()| {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        });
        renamed.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(found)
    });
    if saved.is_err() {
        // Nothing more can be done about a part that cannot be removed.
        let _ = fs::remove_file(&part);
    }
    saved
}

async fn download(client: &Client, part: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", part.display());
    let mut backup = client.backup().await?;
    let file = File::create(part).with_context(failed)?;
    let mut file = BufWriter::new(file);
    while let Some(bytes) = backup.next().await? {
        file.write_all(&bytes).with_context(failed)?;
    }
    let file = file.into_inner().map_err(std::io::IntoInnerError::into_error);
    file.and_then(|file| file.sync_all()).with_context(failed)
}
