//! A real browser at the lab's page: Chromium, driven as a person would drive it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::key::Key;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

use crate::client::Lab;

pub(crate) struct Browser {
    pub(crate) lab: Lab,
    pub(crate) page: Client,
    driver: Child,
}

/// How it is set up.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) language: &'static str,
    pub(crate) size: (u32, u32),
    pub(crate) dark: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { language: "en-US", size: (1440, 900), dark: false }
    }
}

/// How long anything may take before it has failed. Nothing waits this long if all is well.
const PATIENCE: Duration = Duration::from_mins(1);
const GLANCE: Duration = Duration::from_millis(20);

/// What is written to the browser's log of this kind.
#[derive(Debug)]
struct Log(&'static str);

impl WebDriverCompatibleCommand for Log {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/se/log", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(json!({ "type": self.0 }).to_string()))
    }
}

/// Where no browser is installed there is nothing to test with; the set-up says how to get one.
pub(crate) fn is_there() -> bool {
    let there = ["chromium", "chromedriver"].iter().all(|program| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    });
    if !there {
        eprintln!("left out: no chromium with chromedriver here; `cargo xtask test` says how");
    }
    there
}

impl Browser {
    pub(crate) async fn open(manner: Manner, path: &str) -> Self {
        Self::at(Lab::start(), manner, path).await
    }

    /// Looks at this one.
    pub(crate) async fn at(lab: Lab, manner: Manner, path: &str) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        let stdout = driver.stdout.take().expect("it is piped");
        let said = BufReader::new(stdout).lines().map_while(Result::ok);
        let port = said.filter_map(|line| {
            let rest = line.split("successfully on port ").nth(1)?;
            rest.trim_end_matches('.').parse::<u16>().ok()
        });
        let port = port.take(1).last().expect("chromedriver says its port");
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(manner))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a session");
        let browser = Self { lab, page, driver };
        browser.go(path).await;
        browser
    }

    /// Goes to a path of the lab and waits until the page is ready.
    pub(crate) async fn go(&self, path: &str) {
        // Another fragment alone would load nothing.
        self.page.goto("about:blank").await.unwrap();
        self.page.goto(&format!("http://{}{path}", self.lab.address)).await.unwrap();
        self.until("window.vezLab?.lab.timeline || window.vezDashboard?.answers").await;
    }

    /// What an expression of the page's comes to.
    pub(crate) async fn value(&self, expression: &str) -> Value {
        let script = format!("const lab = window.vezLab?.lab; return ({expression}) ?? null;");
        let value = self.page.execute(&script, vec![]).await;
        value.unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    pub(crate) async fn text_of(&self, expression: &str) -> String {
        match self.value(expression).await {
            Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// Looks again and again until an expression holds.
    pub(crate) async fn until(&self, expression: &str) {
        let holds = async {
            while self.value(&format!("!!({expression})")).await != json!(true) {
                tokio::time::sleep(GLANCE).await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, holds).await.is_ok();
        assert!(in_time, "never: {expression}\n{:?}", self.complaints().await);
    }

    fn place(id: &str) -> String {
        format!("[data-testid='{id}']")
    }

    pub(crate) async fn click(&self, id: &str) {
        let place = Self::place(id);
        self.until(&format!("document.querySelector(\"{place}:not(:disabled)\")")).await;
        let element = self.page.find(Locator::Css(&place)).await.unwrap();
        // An element may be drawn anew between finding and clicking; then it is found again.
        if element.click().await.is_err() {
            let element = self.page.find(Locator::Css(&place)).await.unwrap();
            element.click().await.unwrap_or_else(|error| panic!("{id}: {error}"));
        }
    }

    pub(crate) async fn write(&self, id: &str, text: &str) {
        let place = Self::place(id);
        self.until(&format!("document.querySelector(\"{place}\")")).await;
        let element = self.page.find(Locator::Css(&place)).await.unwrap();
        // Typed over what was there, as by hand; a file's name is not typed.
        let control = char::from(Key::Control);
        let is_file = element.attr("type").await.unwrap().is_some_and(|kind| kind == "file");
        let over = if is_file { String::new() } else { format!("{control}a{control}") };
        element.send_keys(&(over + text)).await.unwrap();
    }

    pub(crate) async fn choose(&self, id: &str, value: &str) {
        let place = Self::place(id);
        self.until(&format!("document.querySelector(\"{place}\")")).await;
        let element = self.page.find(Locator::Css(&place)).await.unwrap();
        element.select_by_value(value).await.unwrap_or_else(|error| panic!("{id}: {error}"));
    }

    /// What is read at an id.
    pub(crate) async fn read(&self, id: &str) -> String {
        self.text_of(&format!("document.querySelector(\"{}\")?.textContent", Self::place(id))).await
    }

    pub(crate) async fn is_shown(&self, id: &str) -> bool {
        let place = Self::place(id);
        self.value(&format!("!!document.querySelector(\"{place}\")?.checkVisibility()")).await
            == json!(true)
    }

    pub(crate) async fn key(&self, key: char) {
        self.press(&key.to_string()).await;
    }

    pub(crate) async fn special(&self, key: Key) {
        self.press(&char::from(key).to_string()).await;
    }

    async fn press(&self, keys: &str) {
        let element = self.page.active_element().await.unwrap();
        element.send_keys(keys).await.unwrap();
    }

    pub(crate) async fn screenshot(&self) -> Vec<u8> {
        self.page.screenshot().await.unwrap()
    }

    /// What the browser's console has to complain of.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self.page.issue_cmd(Log("browser")).await.unwrap();
        let lines = log.as_array().cloned().unwrap_or_default().into_iter();
        let bad = lines.filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        bad.map(|line| line["message"].to_string()).collect()
    }

    /// Every address the page asked for.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let log = self.page.issue_cmd(Log("performance")).await.unwrap();
        let lines = log.as_array().cloned().unwrap_or_default().into_iter();
        let events = lines.filter_map(|line| {
            let event: Value = serde_json::from_str(line["message"].as_str()?).ok()?;
            let sent = event["message"]["method"] == "Network.requestWillBeSent";
            let url = event["message"]["params"]["request"]["url"].as_str()?.to_owned();
            sent.then_some(url)
        });
        events.collect()
    }

    /// Ends it, and holds that nothing went wrong on the way.
    pub(crate) async fn close(self) {
        let complaints = self.complaints().await;
        assert!(complaints.is_empty(), "{complaints:#?}");
        let own = format!("http://{}/", self.lab.address);
        let is_own = |url: &String| {
            url.starts_with(&own)
                || ["blob:", "data:", "about:"].iter().any(|kind| url.starts_with(kind))
        };
        let foreign: Vec<String> =
            self.requests().await.into_iter().filter(|url| !is_own(url)).collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        self.page.clone().close().await.unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser is the driver's child: a test that failed must not leave one behind.
        let group = format!("-{}", self.driver.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.driver.wait();
    }
}

fn capabilities(manner: Manner) -> Capabilities {
    let Manner { language, size: (width, height), dark } = manner;
    let scheme = i32::from(!dark);
    let capabilities = json!({
        "goog:chromeOptions": {
            "binary": "/usr/bin/chromium",
            "args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                "--disable-dev-shm-usage",
                format!("--window-size={width},{height}"),
                format!("--accept-lang={language}"),
                format!("--blink-settings=preferredColorScheme={scheme}"),
            ],
            "mobileEmulation": match width < 500 {
                true => json!({ "deviceMetrics":
                    { "width": width, "height": height, "pixelRatio": 2.0, "touch": true } }),
                false => Value::Null,
            },
        },
        "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
    });
    let Value::Object(mut capabilities) = capabilities else { unreachable!("it is one") };
    if let Some(options) = capabilities["goog:chromeOptions"].as_object_mut() {
        options.retain(|_, value| !value.is_null());
    }
    capabilities
}
