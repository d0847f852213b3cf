//! Tests of the Redis server: stop, kill, pause, flush, TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use runwire_engines::{Redis, RedisOptions};

#[test]
fn a_redis_that_is_stopped_or_killed_comes_back_on_its_port() {
    let mut redis = Redis::start().unwrap();
    let address = redis.address();
    redis.stop();
    assert!(TcpStream::connect(address).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.query(&["SET", "a", "1"]).unwrap(), "+OK");
    redis.kill();
    assert!(TcpStream::connect(address).is_err());
    redis.restart().unwrap();
    assert_eq!(redis.address(), address);
    assert!(TcpStream::connect(address).is_ok());
    assert_eq!(redis.query(&["EXISTS", "a"]).unwrap(), ":0");
}

#[test]
fn a_flushed_redis_is_empty() {
    let redis = Redis::start().unwrap();
    redis.query(&["SET", "a", "1"]).unwrap();
    redis.flush().unwrap();
    assert_eq!(redis.query(&["DBSIZE"]).unwrap(), ":0");
}

#[test]
fn a_paused_redis_is_silent_until_it_goes_on() {
    let mut redis = Redis::start().unwrap();
    redis.pause();
    let mut connection = TcpStream::connect(redis.address()).unwrap();
    connection.write_all(b"PING\r\n").unwrap();
    connection.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut answer = [0; 7];
    assert!(connection.read(&mut answer).is_err());
    redis.resume();
    connection.set_read_timeout(None).unwrap();
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}

#[test]
fn a_redis_behind_tls_and_a_password_can_be_commanded() {
    let options = RedisOptions { tls: true, password: Some("secret".to_owned()) };
    let redis = Redis::start_with(options).unwrap();
    assert!(redis.url().starts_with("rediss://:secret@127.0.0.1:"));
    assert!(redis.certificate().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    assert_eq!(redis.query(&["SET", "a", "1"]).unwrap(), "+OK");
}

#[test]
fn a_refused_command_is_told() {
    let redis = Redis::start().unwrap();
    assert!(redis.query(&["NONSENSE"]).unwrap_err().to_string().contains("unknown command"));
}
