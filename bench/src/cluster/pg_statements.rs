//! The slowest statements of a round (`pg_stat_statements`), to find out why appending is slow.

use runwire_engines::Postgres;

use crate::Failure;

/// The setting that Postgres needs.
pub(crate) const SETTING: &str = "shared_preload_libraries=pg_stat_statements";

/// Limits the statements printed.
const MAX_STATEMENTS: usize = 15;

/// Resets the statistics.
pub(crate) fn begin(postgres: &Postgres, database: &str) -> Result<(), Failure> {
    postgres.query(database, "create extension if not exists pg_stat_statements")?;
    postgres.query(database, "select pg_stat_statements_reset()")?;
    Ok(())
}

/// Prints the slowest statements: milliseconds, calls, rows, text; and statistics of updates.
pub(crate) fn print(postgres: &Postgres, database: &str) -> Result<(), Failure> {
    let statements = format!(
        "select round(total_exec_time), calls, rows, left(regexp_replace(query, '\\s+', ' ', 'g'), 100) \
         from pg_stat_statements order by total_exec_time desc limit {MAX_STATEMENTS}"
    );
    eprintln!("ms|calls|rows|statement\n{}", postgres.query(database, &statements)?);
    let tables = "select relname, n_tup_ins, n_tup_upd, n_tup_hot_upd from pg_stat_user_tables \
                  where n_tup_ins + n_tup_upd > 0 order by n_tup_upd desc";
    eprintln!("table|inserted|updated|of that in place\n{}", postgres.query(database, tables)?);
    let sizes = "select round(avg(length(head))), round(avg(length(request))), \
                 (select round(avg(length(decoder))) from producer) from run";
    eprintln!("bytes of a run's head|its request|its producer\n{}", postgres.query(database, sizes)?);
    Ok(())
}
