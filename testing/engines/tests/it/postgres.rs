//! Tests of the PostgreSQL server: stop, kill, pause, TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use runwire_engines::{Postgres, PostgresOptions};

#[test]
fn a_postgres_keeps_its_data_and_port_through_a_stop_and_a_kill() {
    let mut postgres = Postgres::start().unwrap();
    let address = postgres.address();
    postgres.create_database("one").unwrap();
    postgres.query("one", "create table t (n int)").unwrap();
    for n in 0..3 {
        postgres.query("one", &format!("insert into t values ({n})")).unwrap();
        if n == 1 {
            postgres.stop()
        } else {
            postgres.kill()
        }
        assert!(postgres.query("one", "select 1").is_err());
        postgres.restart().unwrap();
    }
    assert_eq!(postgres.address(), address);
    assert_eq!(postgres.query("one", "select n from t order by n").unwrap(), "0\n1\n2");
}

#[test]
fn a_postgres_waits_for_the_disk_where_it_is_told_to() {
    let options =
        PostgresOptions { fsync: true, settings: vec!["work_mem=1MB".to_owned()], ..Default::default() };
    let postgres = Postgres::start_with(options).unwrap();
    assert_eq!(postgres.query("postgres", "show fsync").unwrap(), "on");
    assert_eq!(postgres.query("postgres", "show synchronous_commit").unwrap(), "on");
    assert_eq!(postgres.query("postgres", "show work_mem").unwrap(), "1MB");
}

#[test]
fn cut_connections_are_counted() {
    let postgres = Postgres::start().unwrap();
    let mut connection = connect(&postgres);
    assert_eq!(postgres.cut_connections().unwrap(), 1);
    // The connection ends after any messages.
    connection.read_to_end(&mut Vec::new()).unwrap();
    while postgres.cut_connections().unwrap() != 0 {}
}

#[test]
fn a_paused_postgres_is_silent_until_it_goes_on() {
    let mut postgres = Postgres::start().unwrap();
    let mut connection = connect(&postgres);
    postgres.pause();
    connection.write_all(b"Q\0\0\0\x0dselect 1\0").unwrap();
    connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert!(connection.read(&mut [0]).is_err());
    postgres.resume();
    connection.set_read_timeout(None).unwrap();
    assert_eq!(connection.read(&mut [0]).unwrap(), 1);
}

#[test]
fn a_postgres_that_was_told_to_offers_tls() {
    let postgres = Postgres::start_with(PostgresOptions { tls: true, ..Default::default() }).unwrap();
    assert!(postgres.url("postgres").ends_with("/postgres?sslmode=require"));
    assert!(postgres.certificate().is_some());
    let mut connection = TcpStream::connect(postgres.address()).unwrap();
    connection.write_all(&[0, 0, 0, 8, 4, 210, 22, 47]).unwrap();
    let mut answer = [0];
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"S");
}

/// Opens a connection and waits until the server takes queries on it.
fn connect(postgres: &Postgres) -> TcpStream {
    let mut connection = TcpStream::connect(postgres.address()).unwrap();
    let words = b"\0\x03\0\0user\0runwire\0database\0postgres\0\0";
    let length = u32::try_from(words.len() + 4).unwrap().to_be_bytes();
    connection.write_all(&[&length[..], words].concat()).unwrap();
    loop {
        let mut head = [0; 5];
        connection.read_exact(&mut head).unwrap();
        let length = u32::from_be_bytes(head[1..].try_into().unwrap());
        connection.read_exact(&mut vec![0; length as usize - 4]).unwrap();
        if head[0] == b'Z' {
            return connection;
        }
    }
}
