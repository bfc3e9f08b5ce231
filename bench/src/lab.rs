//! How the lab's page feels: the time between frames while it plays, and how long a large run
//! takes to load, in a real browser.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::programs::{self, Running};
use crate::sim::Scale;
use crate::table::{Table, Target};

/// Between frames at 60 a second.
const FRAME_MS: f64 = 1000.0 / 60.0;
/// What a hundred thousand events may take.
const LOAD_MS: f64 = 2000.0;

pub(crate) fn measure(scale: Scale) -> Table {
    let mut table = Table::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.map_err(anyhow::Error::from).and_then(|runtime| {
        runtime.block_on(async {
            let page = Page::open().await?;
            let done = page.measure(scale, &mut table).await;
            // Whatever it was, the browser goes.
            let _ = page.client.clone().close().await;
            done
        })
    });
    if let Err(error) = measured {
        table.leave_out(format!("the page: {error:#}"));
    }
    table
}

/// Programs that end with the measurement.
struct Page {
    client: Client,
    _driver: Running,
    _lab: Running,
}

impl Page {
    async fn open() -> anyhow::Result<Self> {
        let (lab, said) =
            start(Command::new(programs::vez()?).args(["lab", "--listen", "127.0.0.1:0"]), "http")?;
        let (driver, port) =
            start(Command::new("chromedriver").arg("--port=0"), "successfully on port ")
                .context("chromedriver (Debian's chromium-driver) is needed")?;
        let port = port.rsplit(' ').next().unwrap_or_default().trim_end_matches('.').to_owned();
        let options = json!({ "goog:chromeOptions": { "args": [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--window-size=1440,900",
        ] } });
        let Value::Object(capabilities) = options else { unreachable!("it is one") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await?;
        client.goto(said.trim()).await?;
        Ok(Self { client, _driver: driver, _lab: lab })
    }

    async fn value(&self, expression: &str) -> anyhow::Result<Value> {
        let script = format!("const lab = window.vezLab?.lab; return ({expression}) ?? null;");
        Ok(self.client.execute(&script, vec![]).await?)
    }

    async fn until(&self, expression: &str) -> anyhow::Result<()> {
        while self.value(&format!("!!({expression})")).await? != json!(true) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Opens a scenario; milliseconds from the wish to the first frame after it is shown.
    async fn load(&self, scenario: &Value) -> anyhow::Result<f64> {
        let script = format!(
            "window.took = null; const begun = performance.now(); \
             window.vezLab.lab.open({scenario}).then(() => requestAnimationFrame(() => \
             setTimeout(() => {{ window.took = performance.now() - begun; }}))); return null;"
        );
        self.client.execute(&script, vec![]).await?;
        self.until("window.took !== null").await?;
        self.value("window.took").await?.as_f64().context("a number")
    }

    async fn measure(&self, scale: Scale, table: &mut Table) -> anyhow::Result<()> {
        self.until("lab?.timeline").await?;
        let token = |nodes: u32, until: &str| {
            json!({ "algorithm": "token-ring", "nodes": nodes, "until": until,
            "at": [{ "time": until, "acquire": [{ "node": 5, "hold": "1ms" }] }] })
        };
        self.load(&token(200, "7s")).await?;
        let events = self.value("lab.timeline.run.events.length").await?;
        let playing = Duration::from_secs(u64::from(scale.pick(20, 5)));
        self.value("(lab.speed = 64, lab.play(), null)").await?;
        tokio::time::sleep(playing).await;
        let frames = self.value("window.vezLab.frameTimes()").await?;
        self.value("(lab.pause(), null)").await?;
        let mut frames: Vec<f64> =
            frames.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
        anyhow::ensure!(60 < frames.len(), "only {} frames were drawn", frames.len());
        frames.sort_by(f64::total_cmp);
        for (share, target) in [(50, 1.05), (95, 1.2), (99, 2.2)] {
            let figure = frames[(frames.len() - 1) * share / 100];
            let name =
                format!("time between frames, {share} of 100, 200 processes, {events} events");
            let against = ("a frame at 60 a second", FRAME_MS);
            let target = Some(Target::AtMost(target));
            table.compare(name, (figure, "ms"), against, figure / FRAME_MS, target);
        }
        let mut took = Vec::new();
        for _ in 0..scale.pick(5, 3) {
            took.push(self.load(&token(100, "34s")).await?);
        }
        took.sort_by(f64::total_cmp);
        let events = self.value("lab.timeline.run.events.length").await?;
        let name = format!("loading {events} events");
        let median = took[took.len() / 2];
        let against = ("two seconds", LOAD_MS);
        let target = Some(Target::AtMost(1.0));
        table.compare(name, (median, "ms"), against, median / LOAD_MS, target);
        Ok(())
    }
}

/// Starts a program and waits for the line that says it is ready.
fn start(command: &mut Command, sign: &str) -> anyhow::Result<(Running, String)> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let stdout = child.stdout.take().context("it is piped")?;
    let running = Running(child);
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains(sign)).context("it ended without a word")?;
    Ok((running, line))
}
