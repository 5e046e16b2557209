//! Works through cells: so many at once, no more than its limit per provider, always the earliest cell that may start.

use crate::event::Event;
use crate::instances::Instances;
use crate::plan::{Cell, Plan};
use crate::store::{Encoder, WriterHandle};
use crate::trial::{Cancelled, Slot, Trials};
use assize_contracts::Outcome;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Cells that can be worked on with one set of provider instances.
pub(crate) struct Scheduler {
    pub(crate) trials: Trials,
    pub(crate) plan: Plan,
    pub(crate) encoder: Encoder,
    /// Nothing more is started; what runs goes on.
    pub(crate) stop: CancellationToken,
}

impl Scheduler {
    /// Runs the cells and hands each finished trial to the writer.
    pub(crate) async fn run(
        self: &Arc<Self>,
        cells: Vec<Cell>,
        instances: &Arc<Instances>,
        writer: &WriterHandle,
    ) {
        let concurrency = self
            .trials
            .suite
            .execution
            .concurrency
            .clamp(1, cells.len().max(1));
        let queue = Arc::new(Queue::new(self, cells, instances));
        let mut workers = JoinSet::new();
        for _ in 0..concurrency {
            let work =
                Arc::clone(self).work(Arc::clone(&queue), Arc::clone(instances), writer.clone());
            workers.spawn(work);
        }
        workers.join_all().await;
    }

    async fn work(
        self: Arc<Self>,
        queue: Arc<Queue>,
        instances: Arc<Instances>,
        writer: WriterHandle,
    ) {
        while let Some(cell) = queue.next(&self.stop).await {
            let slot = self.slot(&cell, &instances);
            match self.trials.run(&slot).await {
                Ok(record) => {
                    let passed = record.row.outcome == Some(Outcome::Pass);
                    if self.trials.suite.execution.fail_fast && !passed {
                        self.stop.cancel();
                    }
                    writer.write(self.encoder.encode(record)).await;
                }
                Err(Cancelled) => {
                    let position = slot.position;
                    self.trials
                        .listener
                        .on_event(&Event::TrialCancelled { position });
                }
            }
            queue.release(&cell);
        }
    }

    /// One trial of the plan's first cell that counts for nothing but warms everything up.
    pub(crate) async fn warm_up(&self, cell: &Cell, instances: &Instances, writer: &WriterHandle) {
        let slot = Slot {
            iteration: -1,
            position: None,
            block: None,
            ..self.slot(cell, instances)
        };
        if let Ok(record) = self.trials.run(&slot).await {
            writer.write_warmup(self.encoder.encode(record)).await;
        }
        self.trials.listener.on_event(&Event::WarmupFinished);
    }

    fn slot<'a>(&'a self, cell: &Cell, instances: &'a Instances) -> Slot<'a> {
        let arm = self.plan.arm(cell);
        let modes = &self.trials.suite.modes;
        Slot {
            scenario: &self.trials.suite.scenarios[cell.scenario as usize],
            mode: modes
                .iter()
                .find(|mode| mode.name == arm.mode)
                .expect("arms come from modes"),
            arm,
            iteration: i64::from(cell.iteration),
            position: Some(u64::from(cell.position)),
            block: Some(u64::from(cell.block)),
            instance: instances.of(cell.arm as usize),
        }
    }
}

/// Cells that wait, by provider.
struct Queue {
    lanes: Mutex<Vec<Lane>>,
    lane_of_arm: BTreeMap<u32, usize>,
    freed: Notify,
}

/// The cells of one provider, in the order of the plan.
struct Lane {
    waiting: VecDeque<Cell>,
    running: usize,
    limit: usize,
}

enum Next {
    Cell(Cell),
    /// Cells wait, but their providers are busy.
    Wait,
    Done,
}

impl Queue {
    fn new(scheduler: &Scheduler, cells: Vec<Cell>, instances: &Instances) -> Self {
        let limits = &scheduler.trials.suite.execution.limits;
        let mut lane_of_provider: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lane_of_arm = BTreeMap::new();
        let mut lanes: Vec<Lane> = Vec::new();
        for cell in cells {
            let lane = *lane_of_arm.entry(cell.arm).or_insert_with(|| {
                let provider = instances.of(cell.arm as usize).name.as_str();
                *lane_of_provider.entry(provider).or_insert_with(|| {
                    let limit = limits.get(provider).copied().unwrap_or(usize::MAX).max(1);
                    lanes.push(Lane {
                        waiting: VecDeque::new(),
                        running: 0,
                        limit,
                    });
                    lanes.len() - 1
                })
            });
            lanes[lane].waiting.push_back(cell);
        }
        Self {
            lanes: Mutex::new(lanes),
            lane_of_arm,
            freed: Notify::new(),
        }
    }

    /// The earliest cell whose provider has room. Nothing when all are started or the run stops.
    async fn next(&self, stop: &CancellationToken) -> Option<Cell> {
        loop {
            if stop.is_cancelled() {
                return None;
            }
            // Asked for before looking, so that a provider freed in between is not missed.
            let freed = self.freed.notified();
            match self.take() {
                Next::Cell(cell) => return Some(cell),
                Next::Done => return None,
                Next::Wait => tokio::select! {
                    () = freed => {}
                    () = stop.cancelled() => {}
                },
            }
        }
    }

    fn take(&self) -> Next {
        let mut lanes = self.lanes();
        let has_room = |lane: &&mut Lane| lane.running < lane.limit && !lane.waiting.is_empty();
        let earliest = lanes
            .iter_mut()
            .filter(has_room)
            .min_by_key(|lane| lane.waiting.front().map(|cell| cell.position));
        if let Some(lane) = earliest
            && let Some(cell) = lane.waiting.pop_front()
        {
            lane.running += 1;
            return Next::Cell(cell);
        }
        if lanes.iter().all(|lane| lane.waiting.is_empty()) {
            Next::Done
        } else {
            Next::Wait
        }
    }

    fn release(&self, cell: &Cell) {
        let lane = self.lane_of_arm[&cell.arm];
        self.lanes()[lane].running -= 1;
        self.freed.notify_waiters();
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
