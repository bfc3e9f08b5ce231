use crate::Run;
pub fn html(_run: &Run<'_>) -> String {
    String::new()
}
