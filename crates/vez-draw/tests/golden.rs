//! Two small runs as text, to be read. `UPDATE=1` writes the files anew: commit the difference
//! only if you can say why.

mod common;

use std::path::PathBuf;
use std::{env, fs};

use common::{Made, lease_outlived, top_crashed};

fn check(made: &Made) {
    let run = made.run();
    let texts = [
        ("mermaid", vez_draw::mermaid(&run)),
        ("story", vez_draw::story(&run).join("\n") + "\n"),
        ("shiviz", vez_draw::shiviz(&run)),
    ];
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    for (format, text) in texts {
        let path = directory.join(format!("{}.{format}.txt", made.name));
        if env::var_os("UPDATE").is_some() {
            fs::write(&path, &text).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, golden, "{}: run with UPDATE=1 and read the difference", path.display());
    }
}

#[test]
fn the_fourth_of_seven_finds_the_top_crashed() {
    check(&top_crashed());
}

#[test]
fn a_slow_holder_outlives_its_lease() {
    check(&lease_outlived());
}
