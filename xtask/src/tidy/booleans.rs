//! No `bool` arguments in public functions: `read(true)` does not tell what is true.

use super::{Check, Violation};
use crate::repository::{Repository, crate_of};
use crate::source::{Place, Reach};

/// The check.
pub const CHECK: Check = Check {
    rule: "booleans",
    about: "no `bool` argument in a public function",
    run,
};

fn run(repository: &Repository) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in repository.rust() {
        if crate_of(path).is_none() {
            continue;
        }
        for function in &source.functions {
            if function.reach != Reach::Public || source.place(function.line) != Place::Code {
                continue;
            }
            for argument in &function.arguments {
                if argument.kind.as_deref() == Some("bool") {
                    let message = format!(
                        "`{}` takes `{}: bool` (use an enum whose variants say what happens, or two functions)",
                        function.name, argument.name
                    );
                    found.push(Violation::at(path, argument.line, message));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::tidy::tests::places;

    const PATH: &str = "crates/drive/src/a.rs";

    #[test]
    fn a_bool_argument_of_a_public_function_is_reported() {
        for item in [
            "pub fn go(fast: bool) {}",
            "impl A { pub const fn go(&self, fast: bool) {} }",
            "pub trait A { fn go(&self, fast: &bool); }",
        ] {
            let text = format!("//! A.\n{item}\n");
            assert_eq!(
                places(&CHECK, &[(PATH, &text)]),
                [format!("{PATH}:2")],
                "{item}"
            );
        }
    }

    #[test]
    fn answers_private_functions_tests_and_foreign_traits_are_fine() {
        let text = "//! A.\npub fn is_fast() -> bool { true }\nfn go(fast: bool) {}\n\
                    impl Serializer for A { fn serialize_bool(self, v: bool) {} }\n\
                    #[cfg(test)]\nmod tests { pub fn go(fast: bool) {} }\n";
        assert_eq!(places(&CHECK, &[(PATH, text)]), [""; 0]);
    }
}
