//! The schema in docs/ is the one that the program goes by.

#[test]
#[allow(clippy::disallowed_methods, reason = "a test is told by a variable to write the file anew")]
fn the_schema_in_the_docs_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/linetender.schema.json");
    let made = format!("{:#}\n", linetender_gateway::config::schema());
    if std::env::var("UPDATE_DOCS").is_ok() {
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == made, "run UPDATE_DOCS=1 cargo nextest run -p linetender-gateway schema");
}
