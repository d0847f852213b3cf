//! Parses the arguments of `cargo xtask`.

use std::path::PathBuf;

/// Default duration of fuzzing.
const FUZZ_MINUTES: u64 = 60;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum XtaskCommand {
    Help,
    Test { long: bool, fuzz_minutes: u64, only: Option<Vec<String>> },
    Format,
    Cluster { long: bool },
    Deploy,
    NewDialect { target: Option<PathBuf> },
    Vectors,
    Console,
    Tidy,
    Fuzz { minutes: u64 },
    Bench { arguments: Vec<String> },
}

/// Reads the arguments after `cargo xtask`; the error is for the person who typed them.
pub(crate) fn parse(arguments: &[String]) -> Result<XtaskCommand, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err("which command?".to_owned());
    };
    match command.as_str() {
        "help" | "--help" | "-h" => Ok(XtaskCommand::Help),
        "test" => {
            let flags = Flags::parse(rest, &["--long", "--minutes", "--only"])?;
            if flags.minutes.is_some() && !flags.long {
                return Err("--minutes is for the fuzzing, which only --long does".to_owned());
            }
            let only = flags.only.map(|names| names.split(',').map(|name| name.replace('-', " ")).collect());
            let fuzz_minutes = flags.minutes.unwrap_or(FUZZ_MINUTES);
            Ok(XtaskCommand::Test { long: flags.long, fuzz_minutes, only })
        }
        "format" => Flags::parse(rest, &[]).map(|_| XtaskCommand::Format),
        "cluster" => Flags::parse(rest, &["--long"]).map(|flags| XtaskCommand::Cluster { long: flags.long }),
        "deploy" => Flags::parse(rest, &[]).map(|_| XtaskCommand::Deploy),
        "new-dialect" => {
            let flags = Flags::parse(rest, &["--target-dir"])?;
            Ok(XtaskCommand::NewDialect { target: flags.target.map(PathBuf::from) })
        }
        "vectors" => Flags::parse(rest, &[]).map(|_| XtaskCommand::Vectors),
        "console" => Flags::parse(rest, &[]).map(|_| XtaskCommand::Console),
        "tidy" => Flags::parse(rest, &[]).map(|_| XtaskCommand::Tidy),
        "fuzz" => {
            let flags = Flags::parse(rest, &["--minutes"])?;
            Ok(XtaskCommand::Fuzz { minutes: flags.minutes.unwrap_or(FUZZ_MINUTES) })
        }
        "bench" if rest.is_empty() => {
            Err("which benchmark? For example: cargo xtask bench codecs".to_owned())
        }
        "bench" => Ok(XtaskCommand::Bench { arguments: rest.to_vec() }),
        unknown => Err(format!("there is no command `{unknown}`")),
    }
}

#[derive(Default)]
struct Flags {
    long: bool,
    minutes: Option<u64>,
    only: Option<String>,
    target: Option<String>,
}

impl Flags {
    fn parse(arguments: &[String], allowed: &[&str]) -> Result<Flags, String> {
        let mut flags = Flags::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if !allowed.contains(&argument.as_str()) {
                return Err(format!("`{argument}` is not understood here"));
            }
            match argument.as_str() {
                "--long" => flags.long = true,
                "--only" => flags.only = Some(rest.next().ok_or("--only needs names of stages")?.clone()),
                "--target-dir" => {
                    flags.target = Some(rest.next().ok_or("--target-dir needs a folder")?.clone());
                }
                _ => {
                    let minutes =
                        rest.next().and_then(|value| value.parse().ok()).filter(|minutes| *minutes > 0);
                    flags.minutes = Some(minutes.ok_or("--minutes needs a whole number above 0")?);
                }
            }
        }
        Ok(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<XtaskCommand, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn commands_and_their_flags_are_understood() {
        let test = |long, fuzz_minutes| XtaskCommand::Test { long, fuzz_minutes, only: None };
        assert_eq!(parsed("test"), Ok(test(false, 60)));
        assert_eq!(parsed("test --long --minutes 5"), Ok(test(true, 5)));
        let only = Some(vec!["tests".to_owned(), "ag ui oracle".to_owned()]);
        let some = XtaskCommand::Test { long: false, fuzz_minutes: 60, only };
        assert_eq!(parsed("test --only tests,ag-ui-oracle"), Ok(some));
        assert_eq!(parsed("cluster --long"), Ok(XtaskCommand::Cluster { long: true }));
        assert_eq!(parsed("format"), Ok(XtaskCommand::Format));
        assert_eq!(parsed("deploy"), Ok(XtaskCommand::Deploy));
        assert_eq!(parsed("new-dialect"), Ok(XtaskCommand::NewDialect { target: None }));
        let target = Some(PathBuf::from("/tmp/target"));
        assert_eq!(parsed("new-dialect --target-dir /tmp/target"), Ok(XtaskCommand::NewDialect { target }));
        assert_eq!(parsed("fuzz"), Ok(XtaskCommand::Fuzz { minutes: 60 }));
        assert_eq!(parsed("vectors"), Ok(XtaskCommand::Vectors));
        assert_eq!(parsed("console"), Ok(XtaskCommand::Console));
        assert_eq!(parsed("tidy"), Ok(XtaskCommand::Tidy));
        assert_eq!(parsed("bench codecs"), Ok(XtaskCommand::Bench { arguments: vec!["codecs".to_owned()] }));
    }

    #[test]
    fn what_is_not_understood_is_refused_and_named() {
        for line in [
            "",
            "tset",
            "bench",
            "tidy --long",
            "test --log",
            "test --minutes 5",
            "fuzz --minutes",
            "test --only",
        ] {
            assert!(parsed(line).is_err(), "`{line}` was accepted");
        }
        assert!(parsed("test --log").is_err_and(|problem| problem.contains("--log")));
        assert!(parsed("fuzz --minutes 0").is_err());
    }
}
