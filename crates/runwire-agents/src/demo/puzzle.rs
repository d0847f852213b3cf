//! Solver for the game of 24: four numbers, each used once, that +, −, × and ÷ turn into 24.

use std::fmt;

use super::cities::SeededRng;

/// What the numbers must make.
const GOAL: i64 = 24;

/// A fraction in lowest terms, its denominator above zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fraction {
    over: i64,
    under: i64,
}

impl Fraction {
    pub(super) fn whole(number: i64) -> Self {
        Self { over: number, under: 1 }
    }

    fn of(over: i64, under: i64) -> Self {
        let shared = common_divisor(over.abs(), under.abs()).max(1) * under.signum();
        Self { over: over / shared, under: under / shared }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.under {
            1 => write!(f, "{}", self.over),
            under => write!(f, "{}/{under}", self.over),
        }
    }
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// A number on the table, and how it was made.
#[derive(Debug, Clone)]
pub(super) struct Number {
    pub(super) value: Fraction,
    pub(super) made: String,
}

/// A way to turn two numbers into one.
#[derive(Debug, Clone)]
pub(super) struct Move {
    /// The equation: `8 ÷ 2 = 4`.
    pub(super) equation: String,
    /// The numbers that are left.
    pub(super) left: Vec<Number>,
}

/// Puts numbers on the table.
pub(super) fn table(numbers: [i64; 4]) -> Vec<Number> {
    numbers.map(|n| Number { value: Fraction::whole(n), made: n.to_string() }).into()
}

/// Lists the numbers on the table: `1, 4, 8`.
pub(super) fn listed(numbers: &[Number]) -> String {
    numbers.iter().map(|number| number.value.to_string()).collect::<Vec<_>>().join(", ")
}

/// Lists all moves, each equation once.
pub(super) fn moves(numbers: &[Number]) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    for (at, a) in numbers.iter().enumerate() {
        for (other, b) in numbers.iter().enumerate().skip(at + 1) {
            let rest = numbers.iter().enumerate().filter(|(n, _)| *n != at && *n != other);
            let rest: Vec<&Number> = rest.map(|(_, number)| number).collect();
            for (x, sign, y, value) in results(a, b) {
                let equation = format!("{} {sign} {} = {value}", x.value, y.value);
                if moves.iter().any(|known| known.equation == equation) {
                    continue;
                }
                let made = Number { value, made: format!("({} {sign} {})", x.made, y.made) };
                let left = rest.iter().map(|number| (*number).clone()).chain([made]).collect();
                moves.push(Move { equation, left });
            }
        }
    }
    moves
}

/// What two numbers can become, with the larger one first where the order does not matter.
fn results<'n>(a: &'n Number, b: &'n Number) -> Vec<(&'n Number, char, &'n Number, Fraction)> {
    let (Fraction { over: p, under: q }, Fraction { over: r, under: s }) = (a.value, b.value);
    let (a, b, p, q, r, s) = if p * s < r * q { (b, a, r, s, p, q) } else { (a, b, p, q, r, s) };
    let mut results = vec![
        (a, '+', b, Fraction::of(p * s + r * q, q * s)),
        (a, '×', b, Fraction::of(p * r, q * s)),
        (a, '−', b, Fraction::of(p * s - r * q, q * s)),
    ];
    if r != 0 {
        results.push((a, '÷', b, Fraction::of(p * s, q * r)));
    }
    if p != 0 && a.value != b.value {
        results.push((b, '÷', a, Fraction::of(r * q, s * p)));
    }
    results
}

/// Returns true if the numbers can become the goal.
pub(super) fn solvable(numbers: &[Number]) -> bool {
    match numbers {
        [] => false,
        [last] => last.value == Fraction::whole(GOAL),
        numbers => moves(numbers).iter().any(|step| solvable(&step.left)),
    }
}

/// Returns true if the numbers can become the goal, but not by every first move.
fn tricky(numbers: &[Number]) -> bool {
    let (good, dead): (Vec<Move>, Vec<Move>) =
        moves(numbers).into_iter().partition(|step| solvable(&step.left));
    !good.is_empty() && !dead.is_empty()
}

/// Takes the four numbers that a message names, if they are solvable, else draws four that are tricky.
pub(super) fn numbers(message: &str, rng: &mut SeededRng) -> [i64; 4] {
    let named = message.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let named = named.map(|digits| digits.parse().unwrap_or(0)).filter(|number| *number != GOAL);
    let named: Vec<i64> = named.take(5).collect();
    if let Ok(named) = <[i64; 4]>::try_from(named)
        && named.iter().all(|number| (1..=13).contains(number))
        && solvable(&table(named))
    {
        return named;
    }
    for _ in 0..16 {
        let drawn = [(); 4].map(|()| rng.between(1, 10));
        if tricky(&table(drawn)) {
            return drawn;
        }
    }
    [4, 7, 8, 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_solved_is_known() {
        for solved in [[4, 7, 8, 8], [3, 3, 8, 8], [1, 5, 5, 5], [13, 13, 13, 1], [6, 6, 6, 6]] {
            assert_eq!(solvable(&table(solved)), solved != [13, 13, 13, 1], "{solved:?}");
        }
        assert!(!solvable(&table([1, 1, 1, 1])));
    }

    #[test]
    fn numbers_of_the_message_are_taken_where_they_can_be_solved() {
        let take = |message: &str| numbers(message, &mut SeededRng::from(message));
        assert_eq!(take("用 3, 3, 8, 8 算 24 点"), [3, 3, 8, 8]);
        assert_eq!(take("make it with 3 3 8 8"), [3, 3, 8, 8]);
        for message in ["", "1 1 1 1", "99999999999999999999 1 2 3", "1 2 3 4 5", "14 2 3 4"] {
            assert!(solvable(&table(take(message))), "{message}");
        }
    }

    #[test]
    fn drawn_numbers_can_be_solved_and_can_lead_nowhere() {
        for message in ["", "a", "天气怎么样", "hello", "4 4 4", "1 2 3 4 5"] {
            assert!(tricky(&table(numbers(message, &mut SeededRng::from(message)))), "{message}");
        }
        // Whatever one does first with these, 24 can be reached.
        assert!(solvable(&table([4, 4, 4, 6])) && !tricky(&table([4, 4, 4, 6])));
        assert!(tricky(&table([4, 7, 8, 8])));
    }
}
