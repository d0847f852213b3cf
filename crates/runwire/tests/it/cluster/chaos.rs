//! Chaos test: random disturbances while clients write, read, request and answer.

use std::collections::BTreeMap;
use std::env;
use std::thread;
use std::time::{Duration, Instant};

use super::check::{every_run_ends, every_run_has_one_end, no_process_is_left};
use super::disturbance::Disturbance;
use super::probes::Probes;
use super::test_cluster::{Setup, TestCluster};
use super::users::{Users, agents};
use crate::crash::context::TestContext;
use crate::crash::random::{Random, Seed};
use crate::crash::workload::Workload;

/// Default duration of the chaos.
const SECONDS: u64 = 35;
/// How much goes wrong in a short run, and in one that has time for what takes longer than any limit.
const SHORT: Measure = Measure { longest: Duration::from_millis(1500), lease: 20 };
const LONG: Measure = Measure { longest: Duration::from_secs(12), lease: 40 };

/// People who start agents.
const PEOPLE: usize = 8;

#[derive(Clone, Copy)]
struct Measure {
    /// How long a disturbance lasts, at most.
    longest: Duration,
    /// Longer than any silence of a writer, in seconds; short enough to wait for.
    lease: u32,
}

impl Measure {
    /// Limits consecutive disturbances: a writer may be hit by all of them, and then waits for its last node to time out.
    fn max_consecutive(self) -> Duration {
        Duration::from_secs(u64::from(self.lease)) * 5 / 8
    }
}

/// How long each disturbance took to heal.
type RecoveryTimes = BTreeMap<Disturbance, Vec<Duration>>;

/// What goes wrong, over all rounds.
#[derive(Default)]
struct Course {
    /// What comes next, the last one first: all kinds have their turn before any comes again.
    deck: Vec<Disturbance>,
    recovery_times: RecoveryTimes,
}

#[test]
fn a_cluster_in_chaos_loses_nothing_shows_one_order_to_everyone_and_ends_every_run() {
    let seed = Seed::of("RUNWIRE_CHAOS_SEED");
    eprintln!("chance: {seed}");
    let mut random = seed.random();
    let told = env::var("RUNWIRE_CHAOS_SECONDS").ok();
    let seconds = told.map_or(SECONDS, |told| told.parse().expect("RUNWIRE_CHAOS_SECONDS is a number"));
    let mark = format!("chaos-agent-{}", std::process::id());
    let measure = if seconds > SECONDS { LONG } else { SHORT };
    let mut cluster =
        TestCluster::start(Setup { lease: measure.lease, agents: &agents(&mark), ..Setup::default() });
    let (begun, mut course, mut round) = (Instant::now(), Course::default(), 0);
    // Runs that go on for an hour would take as long to check; these go on for a round.
    while begun.elapsed().as_secs() < seconds {
        let lasts = Duration::from_secs(seconds.min(SECONDS));
        Chaos { name: format!("c{round}"), lasts, measure }.run(&mut cluster, &mut random, &mut course);
        round += 1;
        no_process_is_left(&mark);
    }
    eprintln!("{}", table(&course.recovery_times));
    cluster.stop();
    no_process_is_left(&mark);
}

/// A while in which things go wrong.
struct Chaos {
    /// What the names of its runs begin with.
    name: String,
    lasts: Duration,
    measure: Measure,
}

impl Chaos {
    /// Runs the workload during disturbances, and checks the result.
    #[expect(clippy::print_stderr, reason = "whoever runs it for an hour wants to see it go on")]
    fn run(&self, cluster: &mut TestCluster, random: &mut Random, course: &mut Course) {
        let (name, context) = (self.name.as_str(), cluster.context());
        let probes = Probes::new(name, cluster.addresses());
        let (outcome, memories) = thread::scope(|threads| {
            let _watch = context.watch();
            probes.begin(threads, &context);
            let workload = Workload::without_lifecycle(threads, &context, &random.named("cast"), name, 0);
            let users = Users::begin(threads, &context, &random.named("people"), name, PEOPLE);
            self.disturb(cluster, &context, &probes, random, course);
            context.finish_writers();
            (workload.end(&context), users.end())
        });
        every_run_ends(cluster, name);
        let counts = thread::scope(|threads| {
            let check = |node| {
                let (outcome, memories) = (&outcome, &memories);
                threads.spawn(move || {
                    outcome.check(&TestContext::new(node));
                    memories.check(node)
                })
            };
            let checks: Vec<_> = cluster.addresses().into_iter().map(check).collect();
            checks.into_iter().map(|check| check.join().expect("all is well")).next_back()
        });
        let runs = every_run_has_one_end(cluster, name);
        let (frames, cuts, connections) = outcome.counts();
        eprintln!(
            "{runs} runs, {frames} frames, {cuts} writes cut off, {connections} connections of readers"
        );
        eprintln!("{:?}", counts.unwrap_or_default());
    }

    /// Causes one disturbance after another, and measures the recovery from each.
    #[expect(clippy::print_stderr, reason = "whoever runs it for an hour wants to see it go on")]
    fn disturb(
        &self,
        cluster: &mut TestCluster,
        context: &TestContext,
        probes: &Probes,
        random: &mut Random,
        course: &mut Course,
    ) {
        let begun = Instant::now();
        eprintln!("nothing is wrong yet: {:.3} s from node to node", probes.heal(context).as_secs_f64());
        let mut calm = Instant::now();
        while begun.elapsed() < self.lasts {
            if course.deck.is_empty() {
                course.deck = shuffled(random);
            }
            let Some(disturbance) = course.deck.pop() else { break };
            let from = begun.elapsed().as_secs_f64();
            disturbance.happen(cluster, random, self.measure.longest);
            let (until, what) = (begun.elapsed().as_secs_f64(), disturbance.name());
            // Now and then the next one comes before anybody has taken breath.
            let may_go_on = calm.elapsed() + self.measure.longest < self.measure.max_consecutive();
            if random.one_in(4) && may_go_on {
                eprintln!("{from:6.1} to {until:6.1} s: {what}, and at once:");
                continue;
            }
            let healed = probes.heal(context);
            eprintln!("{from:6.1} to {until:6.1} s: {what}, healed after {:.3} s", healed.as_secs_f64());
            course.recovery_times.entry(disturbance).or_default().push(healed);
            thread::sleep(random.millis(400));
            calm = Instant::now();
        }
        probes.heal(context);
    }
}

fn shuffled(random: &mut Random) -> Vec<Disturbance> {
    let mut deck: Vec<_> =
        Disturbance::ALL.into_iter().flat_map(|one| std::iter::repeat_n(one, one.weight())).collect();
    for at in (1..deck.len()).rev() {
        deck.swap(at, random.below(at + 1));
    }
    deck
}

/// Formats the times from the end of each disturbance until every node shows the others' writes.
fn table(recovery_times: &RecoveryTimes) -> String {
    let mut text = format!("{:<36} {:>5} {:>9} {:>9}\n", "what went wrong", "times", "median s", "longest s");
    for (disturbance, recovery_times) in recovery_times {
        let mut recovery_times = recovery_times.clone();
        recovery_times.sort_unstable();
        let seconds = |at: usize| recovery_times[at].as_secs_f64();
        let (median, longest) = (seconds(recovery_times.len() / 2), seconds(recovery_times.len() - 1));
        text +=
            &format!("{:<36} {:>5} {median:>9.3} {longest:>9.3}\n", disturbance.name(), recovery_times.len());
    }
    text
}
