//! The keeper's loop: wait for output, signals, the host and the clock, then decide what happens to the tree.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};

use crate::exit::{Exit, Stopped};
use crate::running::Stream;
use crate::sys;
use crate::wire::{CANCEL, Frame, Order};

use super::elsewhere;
use super::outbox::Outbox;
use super::program::Program;
use super::relay::Relay;
use super::signals::Signals;
use super::tree::Tree;

/// Helpers of a program that ended (a `tee`, say) may finish by themselves for this long.
const LINGER: Duration = Duration::from_millis(100);
/// The longest time that processes left behind get to end after having been asked.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// Without a host nothing may live for a second: errors would go unnoticed.
const ORPHANED_GRACE: Duration = Duration::from_millis(300);
/// A process that survives this long cannot be killed by the keeper.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two rounds of killing, and between two looks where signals cannot be heard.
const TICK: Duration = Duration::from_millis(10);

pub(super) struct Watch {
    order: Order,
    started: Instant,
    tree: Tree,
    stdout: Relay,
    stderr: Relay,
    signals: Signals,
    outbox: Outbox,
    phase: Phase,
    stopped: Option<Stopped>,
    wall: Option<Duration>,
    leftovers: u32,
    is_host_gone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program runs.
    Running,
    /// The program ended by itself, but not all it started.
    Lingering {
        until: Instant,
    },
    /// The program was asked to end.
    Asked {
        until: Instant,
    },
    /// The program has ended; the rest was asked to.
    AskedRest {
        until: Instant,
    },
    /// Asking is over.
    Killing {
        until: Instant,
    },
    Over,
}

impl Watch {
    pub(super) fn new(
        order: Order,
        program: Program,
        signals: Signals,
        mut outbox: Outbox,
    ) -> Self {
        let Program {
            pid,
            started,
            stdout,
            stderr,
            cgroup,
        } = program;
        let since_start = started.elapsed();
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
        outbox.push(&Frame::Started {
            pid: pid.as_raw() as u32,
            monotonic: now.saturating_sub(since_start),
        });
        Self {
            stdout: Relay::new(Stream::Stdout, stdout, order.stdout, started),
            stderr: Relay::new(Stream::Stderr, stderr, order.stderr, started),
            order,
            started,
            tree: Tree::new(pid, cgroup),
            signals,
            outbox,
            phase: Phase::Running,
            stopped: None,
            wall: None,
            leftovers: 0,
            is_host_gone: false,
        }
    }

    /// Returns when nothing of the tree is left and the host knows it.
    pub(super) fn run(mut self) {
        let mut buffer = vec![0; 64 << 10];
        while self.phase != Phase::Over {
            self.wait();
            self.outbox.flush();
            self.read_output(&mut buffer);
            self.hear();
            self.reap();
            self.decide(Instant::now());
        }
        self.end_elsewhere();
        self.drain(&mut buffer);
        self.report();
    }

    /// Waits until something may have happened.
    fn wait(&self) {
        let stdin = io::stdin();
        let control = (!self.is_host_gone).then(|| stdin.as_fd());
        let readable = [
            control,
            self.signals.descriptor(),
            self.stdout.descriptor(&self.outbox),
            self.stderr.descriptor(&self.outbox),
        ];
        let mut awaited: Vec<_> = readable
            .into_iter()
            .flatten()
            .map(|source| PollFd::new(source, PollFlags::POLLIN))
            .collect();
        if !self.outbox.is_empty() {
            awaited.push(PollFd::new(self.outbox.descriptor(), PollFlags::POLLOUT));
        }
        let _ = poll(&mut awaited, self.time_to_wait());
    }

    fn time_to_wait(&self) -> PollTimeout {
        if self.tree.has_more_dead() {
            return PollTimeout::ZERO;
        }
        let now = Instant::now();
        let deadline = match self.phase {
            Phase::Running => self.order.timeout.map(|timeout| self.started + timeout),
            Phase::Lingering { until } | Phase::Asked { until } | Phase::AskedRest { until } => {
                Some(until)
            }
            Phase::Killing { .. } => Some(now + TICK),
            Phase::Over => Some(now),
        };
        let deadline = if cfg!(target_os = "linux") {
            deadline
        } else {
            Some(now + TICK)
        };
        let Some(deadline) = deadline else {
            return PollTimeout::NONE;
        };
        // Poll counts in whole milliseconds; rounding down would make it spin during the last one.
        let left = deadline.saturating_duration_since(now) + Duration::from_micros(999);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn read_output(&mut self, buffer: &mut [u8]) {
        for relay in [&mut self.stdout, &mut self.stderr] {
            if relay.descriptor(&self.outbox).is_some() {
                relay.read(buffer, &mut self.outbox);
            }
        }
    }

    /// Listens to the host and to signals.
    fn hear(&mut self) {
        if self.signals.hear().is_asked_to_end {
            self.stop(Stopped::Cancelled);
        }
        if self.is_host_gone {
            return;
        }
        let stdin = io::stdin();
        let mut control = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut control, PollTimeout::ZERO);
        let news = control[0].revents().unwrap_or(PollFlags::empty());
        let mut wish = [0];
        if news.contains(PollFlags::POLLIN) && nix::unistd::read(stdin.as_fd(), &mut wish) == Ok(1)
        {
            match wish {
                [CANCEL] => self.stop(Stopped::Cancelled),
                _ => self.kill(Stopped::Cancelled),
            }
        } else if !news.is_empty() || self.outbox.is_host_gone() {
            self.is_host_gone = true;
            self.stop(Stopped::Cancelled);
            self.shorten(ORPHANED_GRACE);
        }
    }

    fn reap(&mut self) {
        self.tree.reap();
        if self.tree.status().is_some() && self.wall.is_none() {
            self.wall = Some(self.started.elapsed());
        }
    }

    fn decide(&mut self, now: Instant) {
        if self.tree.is_gone() {
            self.phase = Phase::Over;
            return;
        }
        let has_ended = self.tree.status().is_some();
        // A tree that dies and multiplies faster than it is reaped does not deserve more patience.
        let is_raging = self.tree.has_more_dead();
        match self.phase {
            Phase::Running if has_ended => {
                self.phase = Phase::Lingering {
                    until: now + LINGER,
                }
            }
            Phase::Running if self.is_out_of_time(now) => self.stop(Stopped::TimedOut),
            Phase::Lingering { until } if now >= until => self.ask_rest(now + self.order.grace),
            Phase::Asked { until } if has_ended && !is_raging => self.ask_rest(until),
            Phase::Asked { until } | Phase::AskedRest { until } if now >= until || is_raging => {
                self.start_killing();
            }
            Phase::Killing { until } if now >= until => self.phase = Phase::Over,
            Phase::Killing { .. } => self.tree.kill(),
            _ => {}
        }
    }

    fn is_out_of_time(&self, now: Instant) -> bool {
        self.order
            .timeout
            .is_some_and(|timeout| now >= self.started + timeout)
    }

    /// Asks the program to end, unless it was asked before.
    fn stop(&mut self, why: Stopped) {
        match self.phase {
            Phase::Running => {
                self.stopped = Some(why);
                match elsewhere::ask(&self.order) {
                    true => {}
                    false => self.tree.ask_program(self.polite_signal()),
                }
                self.phase = Phase::Asked {
                    until: Instant::now() + self.order.grace,
                };
            }
            Phase::Lingering { .. } => self.ask_rest(Instant::now() + self.order.grace),
            _ => {}
        }
    }

    /// Kills the program without asking.
    fn kill(&mut self, why: Stopped) {
        if self.phase == Phase::Running {
            self.stopped = Some(why);
        }
        self.start_killing();
    }

    fn ask_rest(&mut self, until: Instant) {
        self.leftovers = self.leftovers.max(self.tree.count_others());
        // Helpers of a client are left alone: they end by themselves, or are killed.
        if self.order.elsewhere.is_none() {
            self.tree.ask_all(self.polite_signal());
        }
        self.phase = Phase::AskedRest { until };
        self.shorten(LEFTOVER_GRACE);
    }

    /// Ends what the program spoke for, once, if it was stopped or if that is to be done in any case.
    fn end_elsewhere(&mut self) {
        let is_stopped = self.stopped.is_some() || self.is_host_gone;
        if elsewhere::end(&self.order, is_stopped) {
            self.order.elsewhere = None;
        }
    }

    fn start_killing(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. } | Phase::Over) {
            sys::hurry();
            // First what the program spoke for: after that the program ends by itself.
            self.end_elsewhere();
            self.leftovers = self.leftovers.max(self.tree.count_others());
            self.phase = Phase::Killing {
                until: Instant::now() + PATIENCE,
            };
            self.tree.kill();
        }
    }

    fn shorten(&mut self, grace: Duration) {
        let latest = Instant::now() + grace;
        if let Phase::Asked { until } | Phase::AskedRest { until } = &mut self.phase {
            *until = latest.min(*until);
        }
    }

    fn polite_signal(&self) -> Signal {
        Signal::try_from(self.order.polite_signal).unwrap_or(Signal::SIGTERM)
    }

    /// Reads what is still in the pipes. Not until their end: a process outside the tree may hold them open.
    fn drain(&mut self, buffer: &mut [u8]) {
        const CAPACITY_OF_A_PIPE: usize = 1 << 20;
        for relay in [&mut self.stdout, &mut self.stderr] {
            let mut drained = 0;
            while drained < CAPACITY_OF_A_PIPE {
                match relay.read(buffer, &mut self.outbox) {
                    0 => break,
                    count => drained += count,
                }
            }
        }
    }

    fn report(mut self) {
        let exit = Exit {
            status: self.tree.status(),
            stopped: self.stopped,
            wall: self.wall.unwrap_or_else(|| self.started.elapsed()),
            cpu: self.tree.cpu(),
            peak_memory: self.tree.peak_memory(),
            leftovers: self.leftovers,
            survivors: if self.tree.is_gone() {
                0
            } else {
                self.tree.count()
            },
            stdout: self.stdout.finish(&mut self.outbox),
            stderr: self.stderr.finish(&mut self.outbox),
        };
        self.outbox.push(&Frame::Ended(exit));
        self.outbox.flush_all();
    }
}
