//! `runwire answer`: answers an interaction from arguments, or prompts for the answer.

mod form;
mod prompt;
mod text;

use std::io::{self, IsTerminal, Read, Write};

use runwire_client::{Answer, Decision, Error, Interaction, InteractionFilter, Json, RunHandle};
use runwire_model::event::InteractionKind;
use serde_json::{Map, Value};

use super::{block_on, connect};
use crate::Verdict;
use crate::arguments::{AnswerArguments, ServerArguments};
use crate::failure::{Failure, plain};
use crate::screen;
use crate::table::sanitize;
use form::AnswerForm;

/// Answers an interaction, and prints the result.
pub(crate) fn run(arguments: &AnswerArguments) -> Result<Verdict, Failure> {
    with_large_stack(|| block_on(answer(arguments)))
}

/// Prompts for every open interaction of a run, oldest first.
pub(super) fn ask_all(server: &ServerArguments, run: &str) -> Result<(), Failure> {
    with_large_stack(|| {
        block_on(async {
            let client = connect(server)?;
            let filter =
                InteractionFilter { run: Some(run.to_owned()), limit: Some(200), ..Default::default() };
            let newest_first = client.interactions(&filter).await?.interactions;
            for interaction in newest_first.iter().rev() {
                if let PromptOutcome::NotAnswered(Verdict::HasProblems) =
                    prompt_until_accepted(&client.run(run), interaction, None).await?
                {
                    break;
                }
            }
            Ok(Verdict::Fine)
        })
    })
    .map(drop)
}

/// Runs on a thread with a large stack, as untrusted schemas may be deeply nested.
fn with_large_stack(work: impl FnOnce() -> Result<Verdict, Failure> + Send) -> Result<Verdict, Failure> {
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
    let (interaction, fields) = find(arguments, &run).await?;
    let Some(given) = answer_from_arguments(arguments, &interaction, fields)? else {
        return match prompt_until_accepted(&run, &interaction, arguments.reason.as_deref()).await? {
            PromptOutcome::Answered(resolved) => print_result(arguments, &resolved).map(|()| Verdict::Fine),
            PromptOutcome::NotAnswered(verdict) => Ok(verdict),
        };
    };
    match run.answer(&interaction.interaction_id, &given).await {
        Ok(resolved) => {
            print_result(arguments, &resolved)?;
            Ok(Verdict::Fine)
        }
        Err(error) => refused(error),
    }
}

/// Finds the interaction: the given one, or the only open one.
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
    // An id may contain `=`.
    if let Some(id) = words
        .first()
        .filter(|first| info.interactions.iter().any(|interaction| interaction.interaction_id == **first))
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
            let ids: Vec<_> =
                open.iter().rev().map(|interaction| shown(&interaction.interaction_id)).collect();
            Err(Failure::Usage {
                message: format!("several questions are open: {}", ids.join(", ")),
                hint: "name one of them after the run",
            })
        }
    }
}

/// Builds the answer from the arguments; `None` if the person must be prompted.
fn answer_from_arguments(
    arguments: &AnswerArguments,
    interaction: &Interaction,
    fields: &[String],
) -> Result<Option<Answer>, Failure> {
    let reason = arguments.reason.clone();
    let given = given_values(arguments, interaction, fields)?;
    let decision = match (arguments.approve, arguments.reject, arguments.cancel) {
        (true, ..) => Decision::Approved,
        (_, true, _) => Decision::Rejected,
        (.., true) => Decision::Cancelled,
        _ if interaction.kind == InteractionKind::Form && given.is_some() => Decision::Submitted,
        // A resolved interaction needs no prompt.
        _ if can_ask() && interaction.is_open() => return Ok(None),
        _ if interaction.kind == InteractionKind::Form => {
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
    interaction: &Interaction,
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
    let form = AnswerForm::of(interaction);
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

/// Returns true if there is a terminal to prompt on.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The result of a prompt.
enum PromptOutcome {
    Answered(Box<Interaction>),
    NotAnswered(Verdict),
}

/// Prompts until the server accepts the answer.
async fn prompt_until_accepted(
    run: &RunHandle,
    interaction: &Interaction,
    reason: Option<&str>,
) -> Result<PromptOutcome, Failure> {
    let mut prompt = prompt::InteractionPrompt::new(interaction);
    loop {
        let Some(mut answer) = prompt.answer()? else {
            screen::say_note("nothing was sent; the question stays open");
            return Ok(PromptOutcome::NotAnswered(Verdict::HasProblems));
        };
        answer.reason = answer.reason.or_else(|| reason.map(str::to_owned));
        match send(run, &interaction.interaction_id, &answer).await {
            Ok(resolved) => return Ok(PromptOutcome::Answered(Box::new(resolved))),
            // Keep what was typed, to send it again when the server is back.
            Err(error) if error.is_temporary() => screen::say_problem(plain(&error), None),
            Err(error) => match error.problem().map(runwire_client::Problem::field_problems) {
                Some(wrong) if !wrong.is_empty() => prompt.correct(wrong),
                _ => return refused(error).map(PromptOutcome::NotAnswered),
            },
        }
    }
}

/// Sends an answer, and retries once if the connection broke: the pool may have lost it during the prompt, and
/// answering is idempotent.
async fn send(run: &RunHandle, interaction: &str, answer: &Answer) -> Result<Interaction, Error> {
    match run.answer(interaction, answer).await {
        Err(Error::Broken { .. }) => run.answer(interaction, answer).await,
        sent => sent,
    }
}

fn print_result(arguments: &AnswerArguments, resolved: &Interaction) -> Result<(), Failure> {
    let text = if arguments.json {
        serde_json::to_string_pretty(resolved).map_err(|error| Failure::Write(error.into()))?
    } else {
        resolved.status.chars().map(sanitize).collect()
    };
    writeln!(io::stdout().lock(), "{text}").map_err(Failure::Write)
}

/// Prints why the answer was refused: the invalid fields, or the earlier answer.
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
        screen::say_plainly(format_args!("  its answer: {}", shown(&text::format_answer(&won))));
        return Ok(Verdict::HasProblems);
    }
    Err(error.into())
}

/// Sanitizes untrusted text for the terminal.
fn shown(text: &str) -> String {
    text.chars().map(sanitize).collect()
}
