//! The script of `thought-tree`: makes 24 out of four numbers, with a dead end on the way.

use runwire_model::Json;
use runwire_model::event::{TotBacktracked, TotEvaluated, TotExpanded};
use serde_json::json;

use super::puzzle::{Move, Number, listed, moves, numbers, solvable, table};
use super::script_writer::ScriptWriter;
use super::{ScriptEnding, Transition};

/// The thoughts of one expansion.
const CANDIDATES: usize = 3;

pub(super) fn opening(t: &mut ScriptWriter) -> Transition {
    let message = t.message.clone();
    let numbers = table(numbers(&message, &mut t.rng));
    t.begin();
    let thought = t.words(
        format!(
            "Make 24 out of {}. I try a few first moves, judge them, and go on with the best.",
            listed(&numbers)
        ),
        format!("用 {} 算出 24。先列出几个第一步（candidates），打分后沿最好的走。", listed(&numbers)),
    );
    t.think("planning", &thought);
    Transition::scene(move |t| first_try(t, &numbers))
}

/// Follows a first move that looks good and leads nowhere, and comes back.
fn first_try(t: &mut ScriptWriter, numbers: &[Number]) -> Transition {
    let (good, dead): (Vec<Move>, Vec<Move>) =
        moves(numbers).into_iter().partition(|step| solvable(&step.left));
    // The numbers were chosen so that there is one.
    let Some(good) = pick(t, &good) else { return answer(t, numbers, &[], false) };
    let Some(trap) = pick(t, &dead) else {
        return Transition::scene(move |t| onwards(t, &good, Vec::new(), false));
    };
    let mut thoughts = vec![good.clone(), trap.clone()];
    thoughts.extend(pick(t, &without(&dead, &trap)));
    let at = t.rng.between(0, thoughts.len() as i64 - 1) as usize;
    thoughts.swap(1, at);
    let trapped = thoughts.iter().position(|step| step.equation == trap.equation).unwrap_or_default();
    let scores =
        thoughts.iter().enumerate().map(|(at, step)| match (at == trapped, step.equation == good.equation) {
            (true, _) => t.rng.between(68, 79),
            (_, true) => t.rng.between(55, 66),
            _ => t.rng.between(20, 45),
        });
    let scores: Vec<i64> = scores.collect();
    grow(t, &thoughts, trapped, &scores);

    let further = some(t, moves(&trap.left));
    let scores: Vec<i64> = further.iter().map(|_| t.rng.between(2, 14)).collect();
    let best = (0..scores.len()).max_by_key(|at| scores[*at]).unwrap_or_default();
    grow(t, &further, best, &scores);
    t.begin_step("backtrack");
    t.pause(500);
    let left = listed(&trap.left);
    let reason = t.words(format!("{left} cannot make 24"), format!("{left} 无论如何都得不到 24"));
    t.emit(TotBacktracked { reason: Some(reason), to_depth: Json::from_value(&json!(0)) });
    t.end_step();
    t.usage();
    thoughts.retain(|step| step.equation != trap.equation);
    let others = without(&thoughts, &good);
    Transition::scene(move |t| onwards(t, &good, others, true))
}

/// Follows a move that leads to the goal, and all after it.
fn onwards(t: &mut ScriptWriter, first: &Move, others: Vec<Move>, went_back: bool) -> Transition {
    let (mut step, mut others, mut path) = (first.clone(), others, Vec::new());
    loop {
        let at = t.rng.between(0, others.len() as i64) as usize;
        others.insert(at, step.clone());
        let best = if step.left.len() == 1 { 100 } else { t.rng.between(82, 95) };
        let scores = (0..others.len()).map(|other| if other == at { best } else { t.rng.between(5, 30) });
        let scores: Vec<i64> = scores.collect();
        grow(t, &others, at, &scores);
        path.push(step.equation.clone());
        let (good, dead): (Vec<Move>, Vec<Move>) =
            moves(&step.left).into_iter().partition(|step| solvable(&step.left));
        match pick(t, &good) {
            Some(next) => (step, others) = (next, pick(t, &dead).into_iter().collect()),
            None => return answer(t, &step.left, &path, went_back),
        }
    }
}

fn answer(t: &mut ScriptWriter, left: &[Number], path: &[String], went_back: bool) -> Transition {
    let whole = left.first().map_or("", |number| number.made.as_str());
    let whole = whole.strip_prefix('(').and_then(|whole| whole.strip_suffix(')')).unwrap_or(whole);
    let path: String = path.iter().enumerate().map(|(at, step)| format!("{}. `{step}`\n", at + 1)).collect();
    let note = match went_back {
        true => t.words(
            "The first idea scored highest and led nowhere, so I went back once.",
            "第一个想法得分最高，却走不通，所以回溯（backtrack）了一次。",
        ),
        false => t.words("No first move leads astray here.", "这四个数第一步怎么走都行。"),
    };
    let reply = format!("**{whole} = 24**\n\n{path}\n{note}");
    t.begin_step("answer");
    t.say(&reply);
    t.usage();
    t.end_step();
    Transition::End(ScriptEnding::Completed { reply })
}

/// Emits thoughts and their scores.
fn grow(t: &mut ScriptWriter, thoughts: &[Move], chosen: usize, scores: &[i64]) {
    let candidates = thoughts.iter().map(|step| match step.left.len() {
        1 => step.equation.clone(),
        _ => format!("{}  → {}", step.equation, listed(&step.left)),
    });
    let candidates: Vec<String> = candidates.collect();
    let scores: Vec<f64> = scores.iter().map(|score| *score as f64 / 100.0).collect();
    t.begin_step("think_expand");
    t.pause(700);
    t.emit(TotExpanded { candidates: Json::from_value(&json!(candidates)) });
    t.end_step();
    t.begin_step("think_evaluate");
    t.pause(900);
    let (chosen, scores) = (Json::from_value(&json!(chosen)), Json::from_value(&json!(scores)));
    t.emit(TotEvaluated { chosen, scores });
    t.end_step();
    t.pause(400);
}

fn pick(t: &mut ScriptWriter, moves: &[Move]) -> Option<Move> {
    let last = (moves.len() as i64).checked_sub(1).filter(|last| *last >= 0)?;
    moves.get(t.rng.between(0, last) as usize).cloned()
}

/// Picks a few moves.
fn some(t: &mut ScriptWriter, mut moves: Vec<Move>) -> Vec<Move> {
    let mut picked: Vec<Move> = Vec::new();
    while let Some(step) = pick(t, &moves).filter(|_| picked.len() < CANDIDATES) {
        moves = without(&moves, &step);
        picked.push(step);
    }
    picked
}

fn without(moves: &[Move], step: &Move) -> Vec<Move> {
    moves.iter().filter(|other| other.equation != step.equation).cloned().collect()
}
