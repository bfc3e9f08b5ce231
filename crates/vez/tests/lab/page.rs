//! The lab's page in a real browser: what a person can do there, in both languages.

use fantoccini::key::Key;
use serde_json::json;

use crate::browser::{Browser, Manner, is_there};

/// One test, if there is a browser.
macro_rules! page_tests {
    ($($(#[$meta:meta])* $name:ident($browser:ident, $manner:expr) $body:block)*) => {
        $(
            $(#[$meta])*
            #[tokio::test]
            async fn $name() {
                if !is_there() {
                    return;
                }
                let $browser = Browser::open($manner, "/").await;
                $body
                $browser.close().await;
            }
        )*
    };
}

const PORTUGUESE: Manner = Manner { language: "pt-BR", size: (1440, 900), dark: false };
const PHONE: Manner = Manner { language: "en-US", size: (390, 844), dark: false };

page_tests! {
    an_algorithm_and_a_story_can_be_picked(page, Manner::default()) {
        page.click("open-library").await;
        page.write("library-search", "bully").await;
        page.click("algorithm-bully").await;
        page.until("lab.side.scenario.algorithm === 'bully'").await;
        page.click("open-library").await;
        page.write("library-search", "S26").await;
        let story = page.text_of(
            "document.querySelector('[data-testid^=story-s26]').dataset.testid").await;
        page.click(&story).await;
        page.until("lab.side.scenario.name === 'S26'").await;
        assert!(!page.read("story-look").await.is_empty());
        let stories = page.value("lab.catalogue.stories.length").await;
        assert!(70 <= stories.as_u64().unwrap(), "{stories}");
    }

    size_seed_and_wiring_can_be_set(page, Manner::default()) {
        page.click("open-library").await;
        page.click("algorithm-ricart-agrawala").await;
        page.until("lab.side.scenario.algorithm === 'ricart-agrawala'").await;
        page.click("tab-setup").await;
        page.write("setup-nodes", "7").await;
        page.special(Key::Enter).await;
        page.until("lab.timeline.n === 7").await;
        page.write("setup-seed", "42").await;
        page.special(Key::Enter).await;
        page.until("lab.side.timeline.run.result.seed === 42").await;
    }

    a_run_plays_pauses_and_goes_both_ways_by_keyboard(page, Manner::default()) {
        page.special(Key::Right).await;
        page.special(Key::Right).await;
        let there = page.value("lab.side.position").await.as_u64().unwrap();
        page.special(Key::Left).await;
        assert_eq!(page.value("lab.side.position").await, json!(there - 1));
        page.key(' ').await;
        page.until("lab.playing").await;
        page.until(&format!("lab.side.position > {}", there + 1)).await;
        page.key(' ').await;
        page.until("!lab.playing").await;
        page.special(Key::End).await;
        page.until("lab.side.position === lab.timeline.steps").await;
        page.special(Key::Home).await;
        page.until("lab.side.position === lab.timeline.base").await;
        page.key('m').await;
        assert!(page.read("now-text").await.contains("hears"));
    }

    a_promise_turns_red_at_the_very_event_and_says_why(page, Manner::default()) {
        let light = "document.querySelector('[data-testid=promise-mutual-exclusion]').classList.contains('broken')";
        assert_eq!(page.value(light).await, json!(false));
        page.key('v').await;
        page.until(light).await;
        let at = page.value("lab.time").await;
        assert_eq!(page.value("lab.timeline.run.result.promises[0].broken_at_ms").await, at);
        assert!(page.read("promise-mutual-exclusion").await.contains("P3"));
        page.special(Key::Left).await;
        page.until(&format!("!{light}")).await;
    }

    the_log_the_rules_and_the_counters_follow(page, Manner::default()) {
        page.key('m').await;
        page.until("document.querySelector('[data-testid=log-row].current')").await;
        let row = page.text_of("document.querySelector('[data-testid=log-row].current').textContent").await;
        assert!(row.contains("P0 hears Request"), "{row}");
        let clause = "document.querySelector('[data-testid=clause].current, [data-testid=clause][aria-current]')?.dataset.upon";
        assert_eq!(page.text_of(clause).await, "message Request");
        page.click("tab-counters").await;
        page.special(Key::End).await;
        page.key('v').await;
        page.click("to-end").await;
        page.until("document.querySelector('[data-testid=count-Request]').textContent.includes('3')").await;
    }

    the_page_says_why_a_process_waits(page, Manner::default()) {
        page.click("tab-waiting").await;
        page.click("to-end").await;
        page.key('e').await;
        page.click("to-start").await;
        // P3 has asked while P2 is inside.
        page.value("lab.seek(10)").await;
        page.until("document.querySelector('[data-testid=wait-reason]')").await;
        let reasons = page.text_of("[...document.querySelectorAll('[data-testid=wait-reason]')].map((e) => e.textContent).join(' ')").await;
        assert!(reasons.contains("P3") && reasons.contains("P2"), "{reasons}");
    }

    a_process_can_be_crashed_and_the_crash_undone(page, Manner::default()) {
        page.value("lab.seek(3)").await;
        page.click("process-0").await;
        page.click("menu-crash").await;
        page.until("lab.side.scenario.at.some((at) => at.crash?.length)").await;
        page.until("lab.timeline.run.result.promises.some((promise) => promise.name === 'no-deadlock' && !promise.kept)").await;
        assert!(3.0 <= page.value("lab.time").await.as_f64().unwrap());
        page.click("undo").await;
        page.until("!lab.side.scenario.at.some((at) => at.crash?.length)").await;
        page.click("redo").await;
        page.until("lab.side.scenario.at.some((at) => at.crash?.length)").await;
    }

    a_message_can_be_dropped_held_and_doubled(page, Manner::default()) {
        page.click("tab-edit").await;
        for (menu, times) in [("drop", 0), ("twice", 2), ("hold", 1)] {
            page.value("lab.seek(0.5)").await;
            page.until("document.querySelector('[data-testid^=flight-]')").await;
            page.click(&format!("flight-{menu}")).await;
            page.until(&format!("lab.side.scenario.message?.[0]?.arrives.length === {times}")).await;
            page.click("undo").await;
            page.until("!lab.side.scenario.message?.length").await;
        }
    }

    a_network_can_be_parted_and_a_link_cut(page, Manner::default()) {
        page.click("tab-edit").await;
        page.choose("edit-action", "partition").await;
        page.write("edit-groups", "0,1/2,3").await;
        page.click("edit-apply").await;
        page.until("lab.side.scenario.at.some((at) => at.partition?.length)").await;
        page.choose("edit-action", "cut").await;
        page.choose("edit-who", "0").await;
        page.choose("edit-whom", "3").await;
        page.click("edit-apply").await;
        page.until("lab.side.scenario.at.some((at) => at.cut?.length)").await;
    }

    two_algorithms_run_side_by_side_on_one_clock(page, Manner::default()) {
        page.click("open-compare").await;
        page.choose("compare-algorithm-choice", "lamport").await;
        page.click("compare-algorithm").await;
        page.click("compare-go").await;
        page.until("lab.sides.length === 2 && lab.sides[1].timeline").await;
        page.until("document.querySelectorAll('[data-testid=stage]').length === 2").await;
        page.value("lab.seek(5)").await;
        page.until("lab.sides.every((side) => side.position === side.timeline.positionAt(5))").await;
    }

    the_search_finds_a_broken_run_and_plays_it(page, Manner::default()) {
        page.click("open-library").await;
        page.click("algorithm-bully").await;
        page.until("lab.side.scenario.algorithm === 'bully'").await;
        page.click("tab-setup").await;
        page.write("setup-nodes", "3").await;
        page.special(Key::Enter).await;
        page.until("lab.timeline.n === 3").await;
        page.click("open-find").await;
        page.click("find-without-synchrony").await;
        page.click("find-go").await;
        page.click("find-play").await;
        page.until("lab.timeline.run.result.promises.some((promise) => !promise.kept)").await;
    }

    a_link_holds_the_whole_scenario(page, Manner::default()) {
        page.value("lab.seek(3)").await;
        page.click("process-1").await;
        page.click("menu-crash").await;
        page.until("lab.side.scenario.at.some((at) => at.crash?.length)").await;
        let before = page.value("lab.side.scenario").await;
        page.click("open-share").await;
        page.until("document.querySelector('[data-testid=share-link]').value.includes('#')").await;
        let link = page.text_of("document.querySelector('[data-testid=share-link]').value").await;
        let fragment = link.split_once('#').unwrap().1.to_owned();
        page.go(&format!("/#{fragment}")).await;
        page.until("lab.side.scenario.at?.some((at) => at.crash?.length)").await;
        assert_eq!(page.value("lab.side.scenario").await, before);
    }

    a_scenario_and_a_trace_can_be_imported(page, Manner::default()) {
        let directory = std::env::temp_dir().join(format!("vez-lab-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let toml = directory.join("mine.toml");
        std::fs::write(&toml, "algorithm = \"token-ring\"\nnodes = 4\nuntil = \"20ms\"\n").unwrap();
        page.click("open-share").await;
        page.write("import-file", toml.to_str().unwrap()).await;
        page.until("lab.side.scenario.algorithm === 'token-ring' && lab.timeline.n === 4").await;
        let bully = json!({ "scenario": { "algorithm": "bully", "nodes": 3, "at": [{ "time": "0ms", "start": [1] }] } });
        let trace = page.lab.post("/api/export?format=jsonl", &bully).body;
        let jsonl = directory.join("run.jsonl");
        std::fs::write(&jsonl, trace).unwrap();
        if !page.is_shown("import-file").await {
            page.click("open-share").await;
        }
        page.write("import-file", jsonl.to_str().unwrap()).await;
        page.until("lab.side.readOnly && lab.timeline.n === 3").await;
        // As a real process writes it, killed in the middle of a line.
        let real = concat!(
            "{\"event\":\"header\",\"algorithm\":\"lamport\",\"node\":1,\"life\":7,\"group\":{}}\n",
            "{\"t_ms\":1700000000000.5,\"node\":1,\"event\":\"boot\"}\n",
            "{\"t_ms\":1700000000002.5,\"node\":2,\"event\":\"boot\"}\n",
            "{\"t_ms\":17000"
        );
        std::fs::write(&jsonl, real).unwrap();
        page.click("open-share").await;
        page.write("import-file", jsonl.to_str().unwrap()).await;
        page.until("lab.timeline.n === 2 && lab.side.scenario.algorithm === 'lamport'").await;
        assert_eq!(page.value("lab.duration").await, json!(2));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    predictions_are_asked_for_and_scored(page, Manner::default()) {
        page.click("toggle-predict").await;
        let right = "document.querySelector('[data-testid=predict-option][data-answer=right]')";
        page.until(right).await;
        let before = page.value("lab.side.position").await.as_u64().unwrap();
        page.value(&format!("{right}.click()")).await;
        page.until("document.querySelector('[data-testid=predict-verdict]')").await;
        assert_eq!(page.value("lab.side.position").await, json!(before + 1));
        assert!(page.read("predict-score").await.contains('1'));
        page.click("predict-next").await;
        page.until(right).await;
    }

    the_browser_s_language_is_spoken_and_can_be_switched(page, PORTUGUESE) {
        assert_eq!(page.text_of("document.documentElement.lang").await, "pt-BR");
        page.key('m').await;
        assert!(page.read("now-text").await.contains("ouve"), "{}", page.read("now-text").await);
        assert!(page.read("story-look").await.contains("vivo, mas lento"));
        page.click("switch-language").await;
        page.until("document.documentElement.lang.startsWith('en')").await;
        assert!(page.read("story-look").await.contains("alive but slow"));
    }

    every_control_has_a_name_and_nothing_overflows_a_phone(page, PHONE) {
        let nameless = "[...document.querySelectorAll('button, input, select, [role=tab]')].filter((e) => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.length || e.title)).map((e) => e.outerHTML.slice(0, 120))";
        assert_eq!(page.value(nameless).await, json!([]));
        assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth").await, json!(true));
        page.click("step-forward").await;
        assert!(!page.read("now-text").await.is_empty());
    }

    names_in_a_scenario_are_never_markup(page, Manner::default()) {
        let scenario = json!({ "algorithm": "bully", "nodes": 3, "name": "<img src=x onerror=alert(1)>",
            "title": { "en": "<b id=evil>x</b>", "pt": "<b id=evil>x</b>" },
            "look": { "en": "<script>1</script>", "pt": "<script>1</script>" } });
        page.value(&format!("lab.open({scenario})")).await;
        page.until("lab.side.scenario.algorithm === 'bully'").await;
        assert_eq!(page.value("document.querySelector('#evil, img[src=x]')").await, json!(null));
    }

    a_large_run_loads_and_the_page_stays_usable(page, Manner::default()) {
        let scenario = json!({ "algorithm": "token-ring", "nodes": 200, "until": "12s", "at": [{ "time": "11999ms", "acquire": [{ "node": 5, "hold": "1ms" }] }] });
        page.value(&format!("(lab.open({scenario}), null)")).await;
        page.until("lab.timeline.n === 200").await;
        assert!(20_000 <= page.value("lab.timeline.run.events.length").await.as_u64().unwrap());
        page.special(Key::End).await;
        page.until("lab.side.position === lab.timeline.steps").await;
        page.special(Key::Left).await;
        page.until("lab.side.position === lab.timeline.steps - 1").await;
        assert!(!page.read("now-text").await.is_empty());
    }

    both_themes_are_drawn(page, Manner { dark: true, ..Manner::default() }) {
        let theme = "document.documentElement.dataset.theme";
        let ground = "getComputedStyle(document.documentElement).getPropertyValue('color-scheme') + getComputedStyle(document.querySelector('#top')).backgroundColor";
        assert_eq!(page.text_of(theme).await, "dark");
        let dark = page.text_of(ground).await;
        page.click("switch-theme").await;
        page.until(&format!("{theme} === 'light'")).await;
        assert_ne!(page.text_of(ground).await, dark);
        assert!(10_000 < page.screenshot().await.len());
    }
}
