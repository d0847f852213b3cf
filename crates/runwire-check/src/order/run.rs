//! Checks the life of a run: it starts, continues and ends.

use runwire_model::dialect::document::{LifeRules, SecondStart};
use serde::{Deserialize, Serialize};

use super::open::UsedIds;
use super::{Counters, OpenParts, OrderCheck, already_open};
use crate::finding::Finding;
use crate::rule::Rule;

/// Order state of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RunOrder {
    has_frames: bool,
    is_started: bool,
    ended_by: Option<String>,
    pub(super) parts: OpenParts,
    pub(super) used: UsedIds,
    pub(super) counters: Counters,
}

impl RunOrder {
    pub(super) fn is_open(&self, rules: &LifeRules) -> bool {
        let has_begun = if rules.needs_start { self.is_started } else { self.has_frames };
        has_begun && self.ended_by.is_none()
    }

    /// Checks that a frame may follow in its run, and records its start or end.
    pub(super) fn check_life(&mut self, check: &mut OrderCheck<'_, '_>, id: Option<&str>) {
        let (rules, word, kind) = (&check.rules.life, check.word, check.frame.kind);
        let starts = rules.starts.contains(&word);
        let ended_by = self.ended_by.as_deref();
        let may_follow = ended_by.is_some_and(|ended_by| rules.may_follow.contains(&(ended_by, word)));
        match ended_by {
            Some(_) if rules.restarts.contains(&word) => *self = Self::default(),
            Some(_) if may_follow => {}
            Some(ended_by) => {
                let message = format!("`{kind}` comes after the run's end (`{ended_by}`)");
                let finding = Finding::problem(Rule::AfterEnd, message).section(rules.section);
                check.findings.push(finding.hint(rules.after_end));
            }
            None if starts => self.check_second_start(check, id),
            None if !self.has_frames && !(rules.may_be_first)(check.frame) => {
                if let Some((first, section)) = rules.first {
                    let message = format!("`{kind}` comes before `{first}`, which opens the run");
                    check.findings.push(Finding::problem(Rule::NotStarted, message).section(section));
                }
            }
            None => {}
        }
        self.has_frames = true;
        self.is_started |= starts;
        if let Some((_, end)) = rules.ends.iter().find(|(known, _)| *known == word) {
            // A run that nothing restarts has one end, its first.
            if self.ended_by.is_none() || !rules.restarts.is_empty() {
                self.ended_by = Some((*end).to_owned());
            }
        }
    }

    /// Checks a start of a run that has not ended.
    fn check_second_start(&mut self, check: &mut OrderCheck<'_, '_>, id: Option<&str>) {
        match check.rules.life.second_start {
            SecondStart::Ignored => {}
            SecondStart::Restarts => *self = Self::default(),
            SecondStart::RestartsWrongly { section, message, hint } => {
                if self.is_started {
                    let finding = Finding::problem(Rule::AlreadyOpen, message).section(section);
                    check.findings.push(finding.hint(hint));
                }
                *self = Self::default();
            }
            SecondStart::Refused { section, noun, pointer } if self.has_frames => {
                check.findings.push(match id.filter(|id| !id.is_empty()) {
                    Some(id) => already_open(section, pointer, noun, id),
                    None => {
                        let message = "a run is open already, and this frame names no other";
                        let finding =
                            Finding::problem(Rule::AlreadyOpen, message).at("/type").section(section);
                        finding.hint("end the run before the next one begins, or name each run in its frames")
                    }
                });
            }
            SecondStart::Refused { .. } => {}
        }
    }

    /// Checks that no part is open where the run ends.
    pub(super) fn check_completeness(&mut self, check: &mut OrderCheck<'_, '_>) {
        let Some(rule) = check.rules.life.completeness.as_ref().filter(|rule| rule.word == check.word) else {
            return;
        };
        for (part, plural) in rule.parts {
            let open = self.parts.get_mut(*part);
            if !open.is_empty() {
                let message = format!("the run finishes while {plural} are open: {}", open.listed());
                let finding = Finding::problem(Rule::StillOpen, message).section(rule.section);
                check.findings.push(finding.hint(rule.hint));
                open.clear();
            }
        }
    }
}
