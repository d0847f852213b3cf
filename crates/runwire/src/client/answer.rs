//! `runwire answer`: says what a person says, or asks the person.

mod ask;
mod field;
mod words;

use std::io::{self, IsTerminal, Read, Write};

use runwire_client::{Answer, Decision, Error, Interaction, InteractionFilter, Json, RunHandle};
use runwire_model::event::InteractionKind;
use serde_json::{Map, Value};

use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{AnswerArguments, ServerArguments};
use crate::failure::{Failure, plain};
use crate::screen;
use crate::table::tame;
use field::Form;

/// Answers a question, and says what became of it.
pub(crate) fn run(arguments: &AnswerArguments) -> Result<Verdict, Failure> {
    with_room(|| block_on(answer(arguments)))
}

/// Asks the person every question of a run that is open, one after the other.
pub(super) fn ask_all(server: &ServerArguments, run: &str) -> Result<(), Failure> {
    with_room(|| {
        block_on(async {
            let client = connect(server)?;
            let filter =
                InteractionFilter { run: Some(run.to_owned()), limit: Some(200), ..Default::default() };
            let newest_first = client.interactions(&filter).await?.interactions;
            for asked in newest_first.iter().rev() {
                if let Settled::No(Verdict::HasProblems) = converse(&client.run(run), asked, None).await? {
                    break;
                }
            }
            Ok(Verdict::Fine)
        })
    })
    .map(drop)
}

/// Works on a thread with a large stack: schemas may go deep, and they are an agent's.
fn with_room(work: impl FnOnce() -> Result<Verdict, Failure> + Send) -> Result<Verdict, Failure> {
    let stack = runwire_server::limits::CHECK_STACK_BYTES;
    std::thread::scope(|scope| {
        let working = std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work);
        match working.map_err(Failure::Start)?.join() {
            Ok(verdict) => verdict,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

async fn answer(arguments: &AnswerArguments) -> Result<Verdict, Failure> {
    let run = connect(&arguments.server)?.run(&arguments.run);
    let (asked, fields) = find(arguments, &run).await?;
    let Some(said) = said(arguments, &asked, fields)? else {
        return match converse(&run, &asked, arguments.reason.as_deref()).await? {
            Settled::Yes(settled) => tell(arguments, &settled).map(|()| Verdict::Fine),
            Settled::No(verdict) => Ok(verdict),
        };
    };
    match run.answer(&asked.interaction_id, &said).await {
        Ok(settled) => {
            tell(arguments, &settled)?;
            Ok(Verdict::Fine)
        }
        Err(error) => refused(error),
    }
}

/// Finds the question: the one that is named, or the one that is open.
async fn find<'a>(
    arguments: &'a AnswerArguments,
    run: &RunHandle,
) -> Result<(Interaction, &'a [String]), Failure> {
    let words = &arguments.words;
    let named = words.first().filter(|first| !first.contains('='));
    if let Some(id) = named {
        return Ok((run.interaction(id).await?, &words[1..]));
    }
    let info = run.info().await?;
    // An id may look like a field.
    if let Some(id) =
        words.first().filter(|first| info.interactions.iter().any(|asked| asked.interaction_id == **first))
    {
        return Ok((run.interaction(id).await?, &words[1..]));
    }
    let filter =
        InteractionFilter { run: Some(arguments.run.clone()), limit: Some(200), ..Default::default() };
    let mut open = connect(&arguments.server)?.interactions(&filter).await?.interactions;
    match open.len() {
        1 => Ok((open.remove(0), words)),
        0 => Err(Failure::Usage {
            message: format!("the run `{}` has no open question", shown(&arguments.run)),
            hint: "`runwire inbox` lists those that are open",
        }),
        _ => {
            let ids: Vec<_> = open.iter().rev().map(|asked| shown(&asked.interaction_id)).collect();
            Err(Failure::Usage {
                message: format!("several questions are open: {}", ids.join(", ")),
                hint: "name one of them after the run",
            })
        }
    }
}

/// Reads the answer from the command line; nothing where a person is to be asked.
fn said(
    arguments: &AnswerArguments,
    asked: &Interaction,
    fields: &[String],
) -> Result<Option<Answer>, Failure> {
    let reason = arguments.reason.clone();
    let given = given_values(arguments, asked, fields)?;
    let decision = match (arguments.approve, arguments.reject, arguments.cancel) {
        (true, ..) => Decision::Approved,
        (_, true, _) => Decision::Rejected,
        (.., true) => Decision::Cancelled,
        _ if asked.kind == InteractionKind::Form && given.is_some() => Decision::Submitted,
        // One that is settled needs no person to find out.
        _ if can_ask() && asked.is_open() => return Ok(None),
        _ if asked.kind == InteractionKind::Form => {
            return Err(Failure::Usage {
                message: "a form needs its fields".to_owned(),
                hint: "give them as NAME=VALUE or --values; at a terminal they are asked for",
            });
        }
        _ => {
            return Err(Failure::Usage {
                message: "an approval needs a decision".to_owned(),
                hint: "add --approve or --reject",
            });
        }
    };
    Ok(Some(Answer { decision, values: given.map(|values| Json::from_value(&values)), reason }))
}

fn given_values(
    arguments: &AnswerArguments,
    asked: &Interaction,
    fields: &[String],
) -> Result<Option<Value>, Failure> {
    let usage = |message: String| Failure::Usage { message, hint: "`runwire answer --help` shows examples" };
    let mut values = match &arguments.values {
        None => None,
        Some(text) => {
            let text = match text.strip_prefix('@') {
                Some(file) => read(file)?,
                None => text.clone(),
            };
            let values = serde_json::from_str(&text);
            Some(values.map_err(|error| usage(format!("--values is no JSON: {error}")))?)
        }
    };
    if fields.is_empty() {
        return Ok(values);
    }
    let Value::Object(object) = values.get_or_insert_with(|| Value::Object(Map::new())) else {
        return Err(usage("--values is no object, so it takes no fields".to_owned()));
    };
    let form = Form::of(asked);
    for word in fields {
        let Some((name, text)) = word.split_once('=') else {
            return Err(usage(format!("`{}` is no NAME=VALUE", shown(word))));
        };
        form.set(object, name, text).map_err(|wrong| usage(format!("{}: {wrong}", shown(name))))?;
    }
    Ok(values)
}

fn read(file: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let done = match file {
        "-" => io::stdin().lock().read_to_string(&mut text).map(drop),
        file => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)).map(drop),
    };
    done.map_err(|error| Failure::Read { name: file.to_owned(), error })?;
    Ok(text)
}

/// Tells whether there is a person to ask.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// What came of asking a person.
enum Settled {
    Yes(Box<Interaction>),
    No(Verdict),
}

/// Asks the person until the answer is taken.
async fn converse(run: &RunHandle, asked: &Interaction, reason: Option<&str>) -> Result<Settled, Failure> {
    let mut asking = ask::Asking::new(asked);
    loop {
        let Some(mut answer) = asking.answer()? else {
            screen::say_note("nothing was sent; the question stays open");
            return Ok(Settled::No(Verdict::HasProblems));
        };
        answer.reason = answer.reason.or_else(|| reason.map(str::to_owned));
        match send(run, &asked.interaction_id, &answer).await {
            Ok(settled) => return Ok(Settled::Yes(Box::new(settled))),
            // What was typed is not lost: it can be sent again when the server is back.
            Err(error) if error.is_temporary() => screen::say_problem(plain(&error), None),
            Err(error) => match error.problem().map(runwire_client::Problem::field_problems) {
                Some(wrong) if !wrong.is_empty() => asking.correct(wrong),
                _ => return refused(error).map(Settled::No),
            },
        }
    }
}

/// Sends an answer that a person took time for. The connection may have been closed meanwhile, and the same answer again
/// changes nothing: one that breaks is tried once more.
async fn send(run: &RunHandle, interaction: &str, answer: &Answer) -> Result<Interaction, Error> {
    match run.answer(interaction, answer).await {
        Err(Error::Broken { .. }) => run.answer(interaction, answer).await,
        sent => sent,
    }
}

fn tell(arguments: &AnswerArguments, settled: &Interaction) -> Result<(), Failure> {
    let said = if arguments.json {
        serde_json::to_string_pretty(settled).map_err(|error| Failure::Write(error.into()))?
    } else {
        settled.status.chars().map(tame).collect()
    };
    writeln!(io::stdout().lock(), "{said}").map_err(Failure::Write)
}

/// Says why the answer was not taken: which fields are wrong, or which answer won.
fn refused(error: Error) -> Result<Verdict, Failure> {
    let Some(problem) = error.problem() else { return Err(error.into()) };
    let wrong = problem.field_problems();
    if !wrong.is_empty() {
        screen::say_problem("the answer does not fit", None);
        for field in wrong {
            let place = if field.pointer.is_empty() { "the values" } else { &field.pointer };
            screen::say_plainly(format_args!("  {}: {}", shown(place), shown(&field.message)));
        }
        return Ok(Verdict::HasProblems);
    }
    if let Some(won) = problem.answer() {
        screen::say_problem(plain(&error), None);
        screen::say_plainly(format_args!("  its answer: {}", shown(&words::given(&won))));
        return Ok(Verdict::HasProblems);
    }
    Err(error.into())
}

/// Shows what came from outside, so that it cannot act on the terminal.
fn shown(text: &str) -> String {
    text.chars().map(tame).collect()
}
