//! Works through cells: so many at once, no more than its limit per provider, always the earliest cell that may start.

use crate::event::{Caution, Event};
use crate::instances::Instances;
use crate::plan::{Cell, Plan};
use crate::store::{Encoder, TrialRecord, WriterHandle};
use crate::suite::Mode;
use crate::task::TaskSlot;
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
        cells: Vec<u32>,
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
            match self.trial(&cell, &instances).await {
                Ok(record) => {
                    let passed = record.row.outcome == Some(Outcome::Pass);
                    if self.trials.suite.execution.fail_fast && !passed {
                        self.stop.cancel();
                    }
                    writer.write(self.encoder.encode(record)).await;
                }
                Err(Cancelled) => {
                    let position = Some(u64::from(cell.position));
                    self.trials
                        .listener
                        .on_event(&Event::TrialCancelled { position });
                }
            }
            queue.release(&cell);
        }
    }

    async fn trial(&self, cell: &Cell, instances: &Instances) -> Result<TrialRecord, Cancelled> {
        match self.plan.task(cell) {
            None => self.trials.run(&self.slot(cell, instances)).await,
            Some(number) => self.trials.run_task(&self.task_slot(cell, number)?).await,
        }
    }

    /// One trial of the plan's first cell that counts for nothing but warms everything up.
    pub(crate) async fn warm_up(&self, first: u32, instances: &Instances, writer: &WriterHandle) {
        let cell = &self.plan.cell(first);
        let trial = match self.plan.task(cell) {
            None => {
                let slot = Slot {
                    iteration: -1,
                    position: None,
                    block: None,
                    ..self.slot(cell, instances)
                };
                self.trials.run(&slot).await
            }
            Some(number) => match self.task_slot(cell, number) {
                Ok(slot) => self.trials.run_task(&slot.into_warmup()).await,
                Err(Cancelled) => Err(Cancelled),
            },
        };
        if let Ok(record) = trial {
            writer.write_warmup(self.encoder.encode(record)).await;
        }
        self.trials.listener.on_event(&Event::WarmupFinished);
    }

    /// A task that cannot be read back leaves its cell open.
    fn task_slot(&self, cell: &Cell, number: u32) -> Result<TaskSlot<'_>, Cancelled> {
        let suite = &self.trials.suite;
        let set = suite.tasks.as_ref().expect("the plan has tasks");
        let task = set.source.load(number).map_err(|error| {
            self.trials.listener.on_event(&Event::Caution(&Caution {
                code: "task-unreadable".to_owned(),
                text: format!("task {number} cannot be read back and stays open: {error}"),
                place: None,
            }));
            Cancelled
        })?;
        Ok(TaskSlot {
            task,
            set,
            mode: self.mode_of(cell),
            arm: self.plan.arm(cell),
            iteration: i64::from(cell.iteration),
            position: Some(u64::from(cell.position)),
            block: Some(u64::from(cell.block)),
        })
    }

    fn mode_of(&self, cell: &Cell) -> &Mode {
        let arm = self.plan.arm(cell);
        let mut modes = self.trials.suite.modes.iter();
        modes
            .find(|mode| mode.name == arm.mode)
            .expect("arms come from modes")
    }

    fn slot<'a>(&'a self, cell: &Cell, instances: &'a Instances) -> Slot<'a> {
        Slot {
            scenario: &self.trials.suite.scenarios[cell.scenario as usize],
            mode: self.mode_of(cell),
            arm: self.plan.arm(cell),
            iteration: i64::from(cell.iteration),
            position: Some(u64::from(cell.position)),
            block: Some(u64::from(cell.block)),
            instance: instances.of(cell.arm as usize),
        }
    }
}

/// Cells that wait, by provider. Tasks wait in a lane of their own: how many run at once is the only limit they have.
struct Queue {
    scheduler: Arc<Scheduler>,
    lanes: Mutex<Vec<Lane>>,
    lane_of_arm: BTreeMap<u32, usize>,
    /// The lane of tasks, if there are any.
    tasks: Option<usize>,
    freed: Notify,
}

/// The cells of one provider, in the order of the plan.
struct Lane {
    waiting: VecDeque<u32>,
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
    fn new(scheduler: &Arc<Scheduler>, cells: Vec<u32>, instances: &Instances) -> Self {
        let plan = &scheduler.plan;
        let mut queue = Self {
            scheduler: Arc::clone(scheduler),
            lanes: Mutex::default(),
            lane_of_arm: BTreeMap::new(),
            tasks: None,
            freed: Notify::new(),
        };
        if plan.scenarios.is_empty() {
            queue.tasks = Some(0);
            queue.lanes = Mutex::new(vec![Lane::unlimited(cells.into())]);
            return queue;
        }
        let limits = &scheduler.trials.suite.execution.limits;
        let mut lane_of_provider: BTreeMap<&str, usize> = BTreeMap::new();
        let mut lanes: Vec<Lane> = Vec::new();
        for position in cells {
            let cell = plan.cell(position);
            let lane = match plan.task(&cell) {
                Some(_) => *queue.tasks.get_or_insert_with(|| {
                    lanes.push(Lane::unlimited(VecDeque::new()));
                    lanes.len() - 1
                }),
                None => *queue.lane_of_arm.entry(cell.arm).or_insert_with(|| {
                    let provider = instances.of(cell.arm as usize).name.as_str();
                    *lane_of_provider.entry(provider).or_insert_with(|| {
                        let limit = limits.get(provider).copied().unwrap_or(usize::MAX).max(1);
                        lanes.push(Lane {
                            limit,
                            ..Lane::unlimited(VecDeque::new())
                        });
                        lanes.len() - 1
                    })
                }),
            };
            lanes[lane].waiting.push_back(position);
        }
        queue.lanes = Mutex::new(lanes);
        queue
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
            .min_by_key(|lane| lane.waiting.front().copied());
        if let Some(lane) = earliest
            && let Some(position) = lane.waiting.pop_front()
        {
            lane.running += 1;
            return Next::Cell(self.scheduler.plan.cell(position));
        }
        if lanes.iter().all(|lane| lane.waiting.is_empty()) {
            Next::Done
        } else {
            Next::Wait
        }
    }

    fn release(&self, cell: &Cell) {
        let of_tasks = || {
            self.tasks
                .filter(|_| self.scheduler.plan.task(cell).is_some())
        };
        let lane = of_tasks().unwrap_or_else(|| self.lane_of_arm[&cell.arm]);
        self.lanes()[lane].running -= 1;
        self.freed.notify_waiters();
    }

    fn lanes(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    fn unlimited(waiting: VecDeque<u32>) -> Self {
        Self {
            waiting,
            running: 0,
            limit: usize::MAX,
        }
    }
}
