//! `vez member`: who belongs to the cluster.

use serde_json::json;
use vez_client::{Client, MemberInfo};

use super::serve::settings::{origin, url};
use super::{Outcome, output};
use crate::hold::{Endpoints, Format};

/// Show who belongs to the cluster, and change it: one member at a time.
///
/// A machine that is dead is replaced by removing it, adding another and starting that one; the
/// others go on meanwhile. What is added first gets all that the others have, and counts for
/// majorities only when it has caught up.
///
/// Examples:
///   vez member list
///   vez member remove 8e9e05c52164694d
///   vez member add http://10.0.0.4:2380            (says how to start it)
///   vez member add http://10.0.0.4:2380 --learner  (does not vote until it is promoted)
///   vez member promote 8e9e05c52164694d
///   vez member update 8e9e05c52164694d http://10.0.0.5:2380
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[expect(clippy::doc_markdown, reason = "commands as they are typed")]
pub struct Member {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Show all members.
    List(Asked),
    /// Make room for a member, and say how to start it.
    Add {
        /// Where other members will find it.
        #[arg(value_name = "PEER_URL", required = true, value_delimiter = ',', value_parser = url)]
        peer_urls: Vec<url::Url>,
        /// What it will be called; only for what is said here.
        #[arg(long, default_value = "NAME")]
        name: String,
        /// It gets everything, and does not vote until it is promoted.
        #[arg(long)]
        learner: bool,
        #[command(flatten)]
        asked: Asked,
    },
    /// Let a learner vote.
    Promote {
        #[arg(value_parser = id)]
        id: u64,
        #[command(flatten)]
        asked: Asked,
    },
    /// Say where a member is found from now on.
    Update {
        #[arg(value_parser = id)]
        id: u64,
        #[arg(value_name = "PEER_URL", required = true, value_delimiter = ',', value_parser = url)]
        peer_urls: Vec<url::Url>,
        #[command(flatten)]
        asked: Asked,
    },
    /// Take a member out of the cluster, for good.
    Remove {
        #[arg(value_parser = id)]
        id: u64,
        #[command(flatten)]
        asked: Asked,
    },
}

#[derive(clap::Args)]
struct Asked {
    #[command(flatten)]
    endpoints: Endpoints,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

fn id(text: &str) -> Result<u64, String> {
    let wrong = |_| "expected a member's number, as vez member list shows it".to_owned();
    u64::from_str_radix(text, 16).map_err(wrong)
}

impl Member {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let said = runtime.block_on(self.what.run())?;
        output::write(None, &said)?;
        Ok(Outcome::Kept)
    }
}

impl What {
    async fn run(self) -> anyhow::Result<String> {
        let (verb, id, asked) = match self {
            Self::List(asked) => {
                let (_, members) = asked.endpoints.connect().await?.members().await?;
                // So soon after it was started that a majority has not come together yet.
                anyhow::ensure!(!members.is_empty(), "the members have not found each other yet");
                return list(&members, asked.format);
            }
            Self::Add { peer_urls, name, learner, asked } => {
                let client = asked.endpoints.connect().await?;
                return add(
                    &client,
                    peer_urls.iter().map(origin).collect(),
                    &name,
                    learner,
                    asked.format,
                )
                .await;
            }
            Self::Promote { id, asked } => {
                asked.endpoints.connect().await?.promote_member(id).await?;
                ("promoted", id, asked)
            }
            Self::Update { id, peer_urls, asked } => {
                let client = asked.endpoints.connect().await?;
                client.update_member(id, peer_urls.iter().map(origin).collect()).await?;
                ("updated", id, asked)
            }
            Self::Remove { id, asked } => {
                asked.endpoints.connect().await?.remove_member(id).await?;
                ("removed", id, asked)
            }
        };
        Ok(match asked.format {
            Format::Json => serde_json::to_string(&json!({ "id": format!("{id:x}") }))?,
            Format::Text => format!("member {id:x} {verb}"),
        })
    }
}

async fn add(
    client: &Client,
    peer_urls: Vec<String>,
    name: &str,
    learner: bool,
    format: Format,
) -> anyhow::Result<String> {
    let own = peer_urls.clone();
    let added = client.add_member(peer_urls, learner).await?;
    let members = added.members.iter().flat_map(|(member, urls)| {
        let member = if *urls == own { name } else { member };
        urls.iter().map(move |url| format!("{member}={url}"))
    });
    let cluster = members.collect::<Vec<_>>().join(",");
    let id = format!("{:x}", added.id);
    Ok(match format {
        Format::Json => serde_json::to_string(&json!({ "id": id, "initial_cluster": cluster }))?,
        Format::Text => format!(
            "member {id} added; now start it, with an empty data directory:\n  \
             vez serve --name {name} --initial-cluster-state existing --initial-cluster {cluster}"
        ),
    })
}

fn list(members: &[MemberInfo], format: Format) -> anyhow::Result<String> {
    let role = |member: &MemberInfo| match member {
        MemberInfo { is_leader: true, .. } => "leader",
        MemberInfo { is_learner: true, .. } => "learner",
        _ => "follower",
    };
    if let Format::Json = format {
        let members = members.iter().map(|member| {
            json!({
                "id": format!("{:x}", member.id),
                "name": member.name,
                "role": role(member),
                "peer_urls": member.peer_urls,
                "client_urls": member.client_urls,
            })
        });
        return Ok(serde_json::to_string(&members.collect::<Vec<_>>())?);
    }
    let or = |text: &str, other: &str| if text.is_empty() { other } else { text }.to_owned();
    let lines = members.iter().map(|member| {
        let (peers, clients) = (member.peer_urls.join(","), member.client_urls.join(","));
        format!(
            "{:016x} {} {} peers {} clients {}",
            member.id,
            or(&member.name, "(not started yet)"),
            role(member),
            or(&peers, "-"),
            or(&clients, "-"),
        )
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
