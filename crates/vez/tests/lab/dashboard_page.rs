//! The dashboard's page in a real browser.

use fantoccini::key::Key;
use serde_json::json;

use crate::browser::{Browser, Manner, is_there};
use crate::client::Lab;
use crate::service::Clients;

const PHONE: Manner = Manner { language: "en-US", size: (390, 844), dark: false };
const PORTUGUESE: Manner = Manner { language: "pt-BR", size: (1440, 900), dark: false };

/// The names of the locks that are seen.
const NAMES: &str =
    "[...document.querySelectorAll('[data-testid=locks] .line-name')].map((e) => e.textContent)";
/// The first lock's line, as people read it.
const LINE: &str = "document.querySelector('[data-testid=locks] [data-testid=line]')?.innerText";

async fn open(manner: Manner, with_token: bool) -> Option<(Browser, Clients)> {
    if !is_there() {
        return None;
    }
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    let path = if with_token { format!("/#token={}", lab.token()) } else { "/".to_owned() };
    Some((Browser::at(lab, manner, &path).await, clients))
}

#[tokio::test]
async fn a_lock_appears_live_and_its_queue_moves() {
    let Some((page, clients)) = open(Manner::default(), false).await else { return };
    page.until("document.querySelector('[data-testid=locks-empty]')").await;
    let said = page.read("locks-empty").await;
    assert!(said.contains("vez lock demo -- sleep 30") && said.contains("etcdctl lock demo"));
    clients.lease(1, 600).await;
    clients.lease(2, 600).await;
    clients.stand("backup", 1, "web-1:42 since 2026-03-01T10:00:00Z").await;
    page.until(&format!("{LINE}.includes('web-1:42')")).await;
    clients.stand("backup", 2, "web-2:43 since 2026-03-01T10:00:05Z").await;
    page.until(&format!("{LINE}.includes('1 waits') && {LINE}.includes('web-2:43')")).await;
    assert!(page.read("state").await.contains("1 held · 1 waiting"));
    clients.unlock("backup/1").await;
    page.until(&format!("{LINE}.includes('nobody waits') && {LINE}.includes('web-2:43')")).await;
    let handed = "document.querySelector('[data-what=handed-over]')?.innerText";
    page.until(&format!("{handed}.includes('backup handed over')")).await;
    page.until("document.querySelectorAll('[data-testid=lease]').length === 2").await;
    assert!(page.read("member").await.contains("leader"));
    clients.unlock("backup/2").await;
    page.until("document.querySelector('[data-testid=locks-empty]')").await;
    page.close().await;
}

#[tokio::test]
async fn a_lock_is_released_by_hand_after_a_confirmation() {
    let Some((page, clients)) = open(Manner::default(), true).await else { return };
    assert_eq!(page.text_of("location.hash").await, "", "the token does not stay in the address");
    clients.lease(1, 600).await;
    clients.lease(2, 600).await;
    clients.stand("door", 1, "web-1:42 since 2026-03-01T10:00:00Z").await;
    clients.stand("door", 2, "web-2:43 since 2026-03-01T10:00:05Z").await;
    page.until(&format!("{LINE}.includes('web-2:43')")).await;
    page.click("release").await;
    let hurt = page.read("release-dialog").await;
    assert!(hurt.contains("web-1:42") && hurt.contains("web-2:43 gets it at once"), "{hurt}");
    page.click("release-cancel").await;
    page.until("!document.querySelector('[data-testid=release-dialog]')").await;
    clients.until_standing("door", 2).await;
    page.click("release").await;
    page.click("release-confirm").await;
    page.until("document.querySelector('[data-what=ended-by-hand]')").await;
    page.until(&format!("{LINE}.includes('nobody waits')")).await;
    clients.until_standing("door", 1).await;
    page.close().await;
}

#[tokio::test]
async fn without_the_token_nothing_can_be_released() {
    let Some((page, clients)) = open(Manner::default(), false).await else { return };
    clients.lease(1, 600).await;
    clients.locked("door", 1).await;
    page.click("release").await;
    assert!(page.is_shown("token-dialog").await && !page.is_shown("release-confirm").await);
    page.write("token", &"0".repeat(64)).await;
    page.click("token-use").await;
    page.until("document.querySelector('[data-testid=token-wrong]').textContent").await;
    clients.until_standing("door", 1).await;
    page.write("token", &page.lab.token()).await;
    page.click("token-use").await;
    page.click("release-confirm").await;
    clients.until_standing("door", 0).await;
    page.close().await;
}

#[tokio::test]
async fn hundreds_of_locks_stay_usable_and_can_be_searched() {
    let Some((page, clients)) = open(Manner::default(), false).await else { return };
    clients.lease(7, 600).await;
    for number in 0..230 {
        clients.stand(&format!("job/{number:03}"), 7, "").await;
    }
    page.until("document.querySelector('[data-testid=locks-count]').textContent === '230'").await;
    page.until(&format!("{NAMES}.length === 100")).await;
    page.click("locks-next").await;
    page.until(&format!("{NAMES}[0] === 'job/100'")).await;
    assert!(page.read("locks-where").await.contains("101–200"));
    page.write("search", "job/22").await;
    page.until(&format!("{NAMES}.length === 10 && {NAMES}[0] === 'job/220'")).await;
    page.write("search", "nothing like it").await;
    page.until("document.querySelector('[data-testid=locks]').innerText.includes('No name')").await;
    page.choose("order", "name").await;
    page.write("search", &char::from(Key::Backspace).to_string()).await;
    page.until(&format!("{NAMES}.length === 100 && {NAMES}[0] === 'job/000'")).await;
    page.close().await;
}

#[tokio::test]
async fn names_are_text_whatever_they_are() {
    let Some((page, clients)) = open(Manner::default(), true).await else { return };
    let names = [
        "<img src=x onerror=alert(1)>",
        "\u{202e}gnp.exe",
        "نسخة احتياطية",
        "🔒/🙂",
        &"x".repeat(600),
    ];
    clients.lease(7, 600).await;
    for name in names {
        clients.stand(name, 7, "<b id=evil>x</b> since 2026-03-01T10:00:00Z").await;
    }
    page.until(&format!("{NAMES}.length === 5")).await;
    assert_eq!(page.value("document.querySelector('#evil, img[src=x]')").await, json!(null));
    assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth").await, json!(true));
    page.click("release").await;
    assert_eq!(page.value("document.querySelector('#evil, img[src=x]')").await, json!(null));
    page.click("release-cancel").await;
    page.close().await;
}

#[tokio::test]
async fn the_browsers_language_is_spoken_and_can_be_switched() {
    let Some((page, clients)) = open(PORTUGUESE, false).await else { return };
    assert_eq!(page.text_of("document.documentElement.lang").await, "pt-BR");
    clients.lease(1, 600).await;
    clients.locked("porta", 1).await;
    page.until(&format!("{LINE}.includes('em posse há') && {LINE}.includes('Liberar')")).await;
    page.click("switch-language").await;
    page.until(&format!("{LINE}.includes('held for') && {LINE}.includes('Release')")).await;
    assert!(page.read("state").await.contains("1 held"));
    let unsaid =
        "[...document.querySelectorAll('[data-say]')].filter((e) => !e.textContent).length";
    assert_eq!(page.value(unsaid).await, json!(0));
    page.close().await;
}

#[tokio::test]
async fn on_a_phone_everything_has_a_name_and_nothing_overflows() {
    let Some((page, clients)) = open(PHONE, false).await else { return };
    clients.lease(1, 600).await;
    clients.stand(&"long-name-".repeat(30), 1, "web-1:42 since 2026-03-01T10:00:00Z").await;
    page.until(&format!("{NAMES}.length === 1")).await;
    let nameless = "[...document.querySelectorAll('button, input, select, a')].filter((e) => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.title)).map((e) => e.outerHTML.slice(0, 120))";
    assert_eq!(page.value(nameless).await, json!([]));
    assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth").await, json!(true));
    page.close().await;
}

#[tokio::test]
async fn both_themes_are_drawn_and_the_lab_is_beside_it() {
    let manner = Manner { dark: true, ..Manner::default() };
    let Some((page, _)) = open(manner, false).await else { return };
    let theme = "document.documentElement.dataset.theme";
    let ground = "getComputedStyle(document.querySelector('#top')).backgroundColor";
    assert_eq!(page.text_of(theme).await, "dark");
    let dark = page.text_of(ground).await;
    page.click("switch-theme").await;
    page.until(&format!("{theme} === 'light'")).await;
    assert_ne!(page.text_of(ground).await, dark);
    // A plot needs two samples, so that there is something to compare.
    page.until(
        "document.querySelector('[data-testid=plot-requests] .plot-line').getAttribute('d')",
    )
    .await;
    page.click("to-lab").await;
    page.until("window.vezLab?.lab.timeline").await;
    page.click("to-dashboard").await;
    page.until("window.vezDashboard?.answers").await;
    page.close().await;
}
