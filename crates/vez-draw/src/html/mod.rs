//! A page that needs nothing but itself: the result, the space–time diagram, and the story beside
//! it, each pointing at the other.

mod data;
mod summary;

use std::fmt::Write as _;

use crate::Run;
use crate::scene::Scene;
use crate::story::tell;
use crate::svg::{Setting, picture};
use crate::words::{escape, moment};

/// Leaves room for the story beside the picture.
const LANES_WIDTH: f64 = 680.0;

/// The run as one self-contained HTML page.
pub fn html(run: &Run<'_>) -> String {
    let scene = Scene::new(run);
    let (title, subtitle) = (escape(run.title), escape(run.subtitle));
    format!(
        "<!doctype html>\n\
         <html lang=\"en\">\n\
         <head>\n\
         <meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; \
         form-action 'none'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title} – {subtitle}</title>\n\
         <style>\n{css}</style>\n\
         </head>\n\
         <body>\n\
         <header><h1>{title}</h1><p>{subtitle}</p></header>\n\
         <section class=\"summary\" aria-label=\"Result\">\n{summary}</section>\n\
         <main>\n\
         <div class=\"picture\" tabindex=\"0\" aria-label=\"Space–time diagram\">\n{svg}</div>\n\
         <aside>\n\
         <section class=\"detail\" aria-live=\"polite\"><p class=\"hint\">Point at a message or a \
         process, or walk through the story with the arrow keys.</p></section>\n\
         <ol class=\"story\" role=\"listbox\" tabindex=\"0\" aria-label=\"What happened\">\n\
         {story}</ol>\n\
         </aside>\n\
         </main>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n{js}</script>\n\
         </body>\n\
         </html>\n",
        css = include_str!("page.css"),
        js = include_str!("page.js"),
        summary = summary::summary(run),
        svg = picture(&scene, Setting { lanes_width: LANES_WIDTH, captioned: false }),
        story = story(&scene),
        data = data::data(&scene),
    )
}

fn story(scene: &Scene<'_>) -> String {
    let mut out = String::new();
    for index in 0..scene.steps.len() {
        if let Some(words) = tell(scene, index) {
            line(&mut out, index, "", &moment(scene.steps[index].at()), &words);
        }
        for violation in scene.violations(index) {
            let remark = if violation.claimed { "" } else { " (not promised)" };
            let class = if violation.claimed { " class=\"broken\"" } else { "" };
            let words = format!("✘ {}{remark}: {}", violation.promise, violation.detail);
            line(&mut out, index, class, &moment(violation.at), &words);
        }
    }
    out
}

fn line(out: &mut String, step: usize, class: &str, time: &str, words: &str) {
    writeln!(
        out,
        "<li role=\"option\" data-step=\"{step}\"{class}><time>{}</time> {}</li>",
        escape(time),
        escape(words)
    )
    .expect("to a string");
}
