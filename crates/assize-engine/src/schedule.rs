//! Works through cells: so many at once, no more than its limit per provider, always the earliest cell that may start.

use crate::budget::Ledger;
use crate::event::Event;
use crate::instances::{Instance, Instances};
use crate::plan::{Cell, Plan};
use crate::store::{Encoder, TrialRecord, WriterHandle};
use crate::suite::Mode;
use crate::task::TaskSlot;
use crate::trial::{Cancelled, Slot, TrialCell, Trials};
use crate::voids::{VoidReason, Voids};
use assize_contracts::{Caution, CautionCode, Outcome, ProfileRow};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Cells that can be worked on with one set of provider instances.
pub(crate) struct Scheduler {
    pub(crate) trials: Trials,
    pub(crate) plan: Plan,
    pub(crate) encoder: Encoder,
    pub(crate) voids: Voids,
    /// Nothing more is started; running trials continue.
    pub(crate) stop: CancellationToken,
    /// The budget. Absent where nothing is limited.
    pub(crate) ledger: Option<Mutex<Ledger>>,
    /// The moment that the ledger's times count from.
    pub(crate) began: Instant,
}

impl Scheduler {
    /// Runs the cells and hands each finished trial to the writer. Returns the number of cells that were not started.
    pub(crate) async fn run(
        self: &Arc<Self>,
        cells: Vec<u32>,
        instances: &Arc<Instances>,
        writer: &WriterHandle,
    ) -> usize {
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
        queue.left()
    }

    /// The ledger, and the time on its clock.
    pub(crate) fn ledger(&self) -> Option<(MutexGuard<'_, Ledger>, f64)> {
        let ledger = self.ledger.as_ref()?;
        let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
        Some((ledger, self.began.elapsed().as_secs_f64() * 1000.0))
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
                    self.note_void(&record.row);
                    if let Some((mut ledger, now)) = self.ledger() {
                        ledger.settle(cell.block, record.row.spent(), now);
                    }
                    writer.write(self.encoder.encode(record)).await;
                }
                Err(Cancelled) => {
                    if let Some((mut ledger, now)) = self.ledger() {
                        ledger.give_up(cell.block, now);
                    }
                    let position = Some(u64::from(cell.position));
                    self.trials
                        .listener
                        .on_event(&Event::TrialCancelled { position });
                }
            }
            queue.release(&cell);
        }
    }

    /// Reports once why a mode is stopped.
    fn note_void(&self, row: &ProfileRow) {
        let Some(void) = self.voids.add(row) else {
            return;
        };
        let VoidReason {
            mode,
            reason,
            trials,
            ..
        } = &void;
        self.trials.listener.on_event(&Event::Caution(&Caution::about(CautionCode::ModeStopped, format!(
                "mode `{mode}` is stopped: its first {trials} trials are all void for the same reason: {reason}"
            ), mode.clone())));
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
                let mut slot = self.slot(cell, instances);
                slot.cell = slot.cell.into_warmup();
                self.trials.run(&slot).await
            }
            Some(number) => match self.task_slot(cell, number) {
                Ok(mut slot) => {
                    slot.cell = slot.cell.into_warmup();
                    self.trials.run_task(&slot).await
                }
                Err(Cancelled) => Err(Cancelled),
            },
        };
        if let Ok(record) = trial {
            if let Some((mut ledger, _)) = self.ledger() {
                ledger.add(record.row.spent());
            }
            writer.write_warmup(self.encoder.encode(record)).await;
        }
        self.trials.listener.on_event(&Event::WarmupFinished);
    }

    /// A task that cannot be read back leaves its cell open.
    fn task_slot(&self, cell: &Cell, number: u32) -> Result<TaskSlot<'_>, Cancelled> {
        let suite = &self.trials.suite;
        let set = suite.tasks.as_ref().expect("the plan has tasks");
        let task = set.source.load(number).map_err(|error| {
            self.trials
                .listener
                .on_event(&Event::Caution(&Caution::about_all(
                    CautionCode::TaskUnreadable,
                    format!("task {number} cannot be read back and stays open: {error}"),
                )));
            Cancelled
        })?;
        Ok(TaskSlot {
            cell: self.trial_cell(cell),
            task,
            set,
        })
    }

    fn trial_cell(&self, cell: &Cell) -> TrialCell<'_> {
        TrialCell {
            mode: self.mode_of(cell),
            arm: self.plan.arm(cell),
            iteration: i64::from(cell.iteration),
            position: Some(u64::from(cell.position)),
            block: Some(u64::from(cell.block)),
        }
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
            cell: self.trial_cell(cell),
            scenario: &self.trials.suite.scenarios[cell.scenario as usize],
            instance: instances.of(cell.arm as usize),
        }
    }
}

/// Cells that wait, by provider instance. Tasks wait in a lane of their own: how many run at once is their only limit.
struct Queue {
    scheduler: Arc<Scheduler>,
    lanes: Mutex<Lanes>,
    lane_of_arm: BTreeMap<u32, usize>,
    /// The lane of tasks, if there are any.
    tasks: Option<usize>,
    freed: Notify,
    /// Cells of every block, where there is a budget.
    cells_of_block: HashMap<u32, u32>,
}

#[derive(Default)]
struct Lanes {
    all: Vec<Lane>,
    /// Sessions by provider: instances of one provider share the suite's limit for it.
    providers: Vec<Room>,
}

/// The cells of one provider instance, in the order of the plan.
struct Lane {
    waiting: VecDeque<u32>,
    room: Room,
    /// Whose limit it shares.
    provider: Option<usize>,
}

/// Running sessions and their limit.
#[derive(Clone, Copy)]
struct Room {
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
            cells_of_block: HashMap::new(),
        };
        if scheduler.ledger.is_some() {
            for position in &cells {
                let block = plan.cell(*position).block;
                *queue.cells_of_block.entry(block).or_default() += 1;
            }
        }
        let mut lanes = Lanes::default();
        if plan.scenarios.is_empty() {
            queue.tasks = Some(lanes.add(Room::UNLIMITED, None));
            lanes.all[0].waiting = cells.into();
            queue.lanes = Mutex::new(lanes);
            return queue;
        }
        let limits = &scheduler.trials.suite.execution.limits;
        let mut lane_of_instance: Vec<(&Arc<Instance>, usize)> = Vec::new();
        let mut provider_numbers: BTreeMap<&str, usize> = BTreeMap::new();
        for position in cells {
            let cell = plan.cell(position);
            let lane = match plan.task(&cell) {
                Some(_) => *queue
                    .tasks
                    .get_or_insert_with(|| lanes.add(Room::UNLIMITED, None)),
                None => *queue.lane_of_arm.entry(cell.arm).or_insert_with(|| {
                    let instance = instances.of(cell.arm as usize);
                    let is_same = |known: &&(&Arc<Instance>, usize)| Arc::ptr_eq(known.0, instance);
                    if let Some((_, lane)) = lane_of_instance.iter().find(is_same) {
                        return *lane;
                    }
                    let provider = *provider_numbers.entry(&instance.name).or_insert_with(|| {
                        let limit = limits.get(&instance.name).copied();
                        lanes.providers.push(Room::of(limit.unwrap_or(usize::MAX)));
                        lanes.providers.len() - 1
                    });
                    let most = instance.provider.concurrency().most();
                    let lane = lanes.add(Room::of(most), Some(provider));
                    lane_of_instance.push((instance, lane));
                    lane
                }),
            };
            lanes.all[lane].waiting.push_back(position);
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
        for lane in &mut lanes.all {
            self.skip_stopped(lane);
        }
        let (taken, has_budget) = match self.scheduler.ledger() {
            None => (lanes.take(), false),
            Some((mut ledger, now)) => (self.take_within(&mut lanes, &mut ledger, now), true),
        };
        let is_idle = || lanes.all.iter().all(|lane| lane.room.running == 0);
        match taken {
            Some(position) => Next::Cell(self.scheduler.plan.cell(position)),
            None if lanes.all.iter().all(|lane| lane.waiting.is_empty()) => Next::Done,
            // Nothing runs whose end could leave more of the budget.
            None if has_budget && is_idle() => Next::Done,
            None => Next::Wait,
        }
    }

    /// The earliest cell of a started block, or of one that the budget still covers.
    fn take_within(&self, lanes: &mut Lanes, ledger: &mut Ledger, now: f64) -> Option<u32> {
        let plan = &self.scheduler.plan;
        let another = ledger.may_start_another(now);
        let is_allowed = |position: &u32| another || ledger.is_open(plan.cell(*position).block);
        let position = lanes.take_first(is_allowed)?;
        let block = plan.cell(position).block;
        let cells = self.cells_of_block.get(&block).copied().unwrap_or(1);
        ledger.start(block, cells, now);
        Some(position)
    }

    /// Cells that were not started.
    fn left(&self) -> usize {
        let lanes = self.lanes();
        lanes.all.iter().map(|lane| lane.waiting.len()).sum()
    }

    /// Leaves the cells of stopped modes open.
    fn skip_stopped(&self, lane: &mut Lane) {
        let scheduler = &self.scheduler;
        if !scheduler.voids.has_stopped_any() {
            return;
        }
        while let Some(position) = lane.waiting.front() {
            let cell = scheduler.plan.cell(*position);
            if !scheduler.voids.has_stopped(&scheduler.plan.arm(&cell).mode) {
                return;
            }
            lane.waiting.pop_front();
            if let Some((mut ledger, now)) = scheduler.ledger() {
                ledger.give_up(cell.block, now);
            }
        }
    }

    fn release(&self, cell: &Cell) {
        let of_tasks = || {
            self.tasks
                .filter(|_| self.scheduler.plan.task(cell).is_some())
        };
        let lane = of_tasks().unwrap_or_else(|| self.lane_of_arm[&cell.arm]);
        self.lanes().release(lane);
        self.freed.notify_waiters();
    }

    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lanes {
    fn add(&mut self, room: Room, provider: Option<usize>) -> usize {
        self.all.push(Lane {
            waiting: VecDeque::new(),
            room,
            provider,
        });
        self.all.len() - 1
    }

    /// The place of the earliest cell that may start.
    fn take(&mut self) -> Option<u32> {
        let providers = &mut self.providers;
        let may_start = |lane: &&mut Lane| {
            !lane.waiting.is_empty()
                && lane.room.is_free()
                && lane
                    .provider
                    .is_none_or(|number| providers[number].is_free())
        };
        let earliest = self
            .all
            .iter_mut()
            .filter(may_start)
            .min_by_key(|lane| lane.waiting.front().copied())?;
        let position = earliest.waiting.pop_front()?;
        earliest.room.running += 1;
        if let Some(number) = earliest.provider {
            providers[number].running += 1;
        }
        Some(position)
    }

    /// The earliest allowed cell of a lane that has room.
    fn take_first(&mut self, is_allowed: impl Fn(&u32) -> bool) -> Option<u32> {
        let providers = &self.providers;
        let has_room = |lane: &Lane| {
            let provider = lane.provider;
            lane.room.is_free() && provider.is_none_or(|number| providers[number].is_free())
        };
        let lanes = self.all.iter().enumerate();
        let first = |(number, lane): (usize, &Lane)| {
            let place = lane.waiting.iter().position(&is_allowed)?;
            Some((lane.waiting[place], number, place))
        };
        let earliest = lanes
            .filter(|(_, lane)| has_room(lane))
            .filter_map(first)
            .min();
        let (position, number, place) = earliest?;
        let lane = &mut self.all[number];
        lane.waiting.remove(place);
        lane.room.running += 1;
        if let Some(provider) = lane.provider {
            self.providers[provider].running += 1;
        }
        Some(position)
    }

    fn release(&mut self, lane: usize) {
        let lane = &mut self.all[lane];
        lane.room.running -= 1;
        if let Some(number) = lane.provider {
            self.providers[number].running -= 1;
        }
    }
}

impl Room {
    const UNLIMITED: Self = Self {
        running: 0,
        limit: usize::MAX,
    };

    fn of(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            ..Self::UNLIMITED
        }
    }

    fn is_free(self) -> bool {
        self.running < self.limit
    }
}
