//! Two operators on one cluster: one works, the other takes over, and never both write.
//!
//! Owns how leaders end: killed, stopped and woken, asked to end, cut off. Verdicts come from the recorded AWS calls, which
//! name the access key, and the audit log, which names the token. The election itself is tested in simulated time.

#![expect(clippy::print_stderr, reason = "how long a hand-over took is worth seeing")]

mod load;
mod member;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use self::load::Load;
use self::member::{DEADLINE, LEASE, Member, RETRY};
use crate::testbed::{Fault, Testbed};

/// For something that takes the operators and the simulation a few steps.
const PATIENCE: Duration = Duration::from_mins(1);
/// Until a standby has to act, however the leader ended.
const TAKE_OVER: Duration = Duration::from_secs(15);
/// For a busy machine.
const SLACK: Duration = Duration::from_millis(2500);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_leads_writes_alone_however_the_one_before_ended() -> Result<()> {
    let testbed = Testbed::start("leadership").await?;
    member::install(&testbed).await?;
    let first = Member::start(&testbed, "first").await?;
    first.until_leading(&testbed, PATIENCE).await?;
    let load = Load::start(&testbed).await?;
    // Some write is always under way, with another one to come in the same pass.
    let slow = Fault::on("ec2", "CreateLaunchTemplate").latency(Duration::from_millis(300));
    testbed.aws().inject_fault(slow).await?;

    let second = killed(&testbed, first).await.context("a leader that is killed")?;
    let third = stopped(&testbed, second)
        .await
        .context("a leader that is stopped and woken")?;
    let fourth = asked_to_end(&testbed, third)
        .await
        .context("a leader that is asked to end")?;
    let fifth = cut_off(&testbed, fourth)
        .await
        .context("a leader whose API server is silent")?;

    // Nothing that happened in between was lost.
    testbed.aws().clear_faults().await?;
    load.stop_and_settle(&testbed).await?;
    ensure!(fifth.end(Duration::from_secs(25)).await?.success());
    testbed.stop().await
}

/// A standby beside a leader: ready, and writing nothing while the leader writes.
async fn standby(testbed: &Testbed, leader: &Member, name: &str) -> Result<Member> {
    let standby = Member::start(testbed, name).await?;
    standby.ready().await?;
    let before = testbed.aws().last_sequence().await?;
    leader.until_writing(testbed, before, PATIENCE).await?;
    ensure!(leader.leads().await? && !standby.leads().await?);
    ensure!(standby.writes(testbed, 0).await?.is_empty(), "a standby wrote");
    Ok(standby)
}

async fn killed(testbed: &Testbed, leader: Member) -> Result<Member> {
    let standby = standby(testbed, &leader, "second").await?;
    leader.operator.kill().await?;
    let took = takes_over(testbed, &leader, &standby).await?;
    eprintln!("leadership: killed, {took:?} to the next write");
    Ok(standby)
}

async fn stopped(testbed: &Testbed, leader: Member) -> Result<Member> {
    let standby = standby(testbed, &leader, "third").await?;
    // In the middle of a pass: its answer will be there when it wakes.
    let before = testbed.aws().last_sequence().await?;
    leader.until_in_a_pass(testbed, before).await?;
    leader.operator.signal("STOP")?;
    let took = takes_over(testbed, &leader, &standby).await?;
    eprintln!("leadership: stopped, {took:?} to the next write");
    let woken = testbed.aws().last_sequence().await?;
    let audit = testbed.audit_position()?;
    leader.operator.signal("CONT")?;
    let ended = leader.operator.ended(SLACK).await?;
    ensure!(ended.code() == Some(1), "woken, it ended with {ended}");
    // The one who leads goes on meanwhile.
    standby.until_writing(testbed, woken, PATIENCE).await?;
    let late = leader.writes(testbed, woken).await?;
    ensure!(late.is_empty(), "woken, it wrote at AWS: {late:?}");
    let late = leader.written(testbed, audit)?;
    ensure!(late.is_empty(), "woken, it wrote to the API server: {late:?}");
    alone(testbed, &leader, &standby).await?;
    Ok(standby)
}

async fn asked_to_end(testbed: &Testbed, leader: Member) -> Result<Member> {
    let standby = standby(testbed, &leader, "fourth").await?;
    let ended = leader.end(Duration::from_secs(25)).await?;
    ensure!(ended.success(), "asked to end, it ended with {ended}");
    // Sooner than the Lease could expire: it was given back.
    let given_back = Instant::now();
    standby.until_leading(testbed, RETRY * 2 + SLACK).await?;
    ensure!(given_back.elapsed() < LEASE, "it took {:?}", given_back.elapsed());
    eprintln!(
        "leadership: asked to end, {:?} to the next leader",
        given_back.elapsed()
    );
    takes_over(testbed, &leader, &standby).await?;
    Ok(standby)
}

async fn cut_off(testbed: &Testbed, leader: Member) -> Result<Member> {
    let standby = standby(testbed, &leader, "fifth").await?;
    leader.relay.silence();
    let silent = Instant::now();
    let ended = leader.operator.ended(DEADLINE + SLACK).await?;
    ensure!(ended.code() == Some(1), "cut off, it ended with {ended}");
    eprintln!("leadership: cut off, ended after {:?}", silent.elapsed());
    let log = leader.operator.log()?;
    ensure!(log.contains("lost leadership"), "its last words: {log}");
    let gone = testbed.aws().last_sequence().await?;
    takes_over(testbed, &leader, &standby).await?;
    ensure!(leader.writes(testbed, gone).await?.is_empty());
    Ok(standby)
}

/// Waits until the next one writes; answers how long that took.
async fn takes_over(testbed: &Testbed, before: &Member, next: &Member) -> Result<Duration> {
    let started = Instant::now();
    next.until_writing(testbed, 0, TAKE_OVER).await?;
    let took = started.elapsed();
    alone(testbed, before, next).await?;
    Ok(took)
}

/// Everything that one wrote came before anything that the next one wrote.
async fn alone(testbed: &Testbed, before: &Member, next: &Member) -> Result<()> {
    let (earlier, later) = (before.writes(testbed, 0).await?, next.writes(testbed, 0).await?);
    let (last, first) = (earlier.last().context("writes")?, later.first().context("writes")?);
    ensure!(
        last.sequence < first.sequence,
        "two writers at AWS: {last:?} after {first:?}"
    );
    let start = crate::testbed::AuditPosition::default();
    // The log can be a moment late, and a pass writes at AWS first.
    let (earlier, later) = testbed
        .until(PATIENCE, "writes of both in the audit log", async || {
            let (earlier, later) = (before.written(testbed, start)?, next.written(testbed, start)?);
            Ok((!earlier.is_empty() && !later.is_empty()).then_some((earlier, later)))
        })
        .await?;
    let (last, first) = (
        earlier.iter().max().context("writes")?,
        later.iter().min().context("writes")?,
    );
    ensure!(last < first, "two writers at the API server: {last} after {first}");
    Ok(())
}
