//! The frontier: the actions that are ready because everything they depend on is resolved.
//!
//! Everything that walks the matrix drives this one value: a run executes what is stale, a plan counts it, an offline run
//! refuses it, prune marks what is reached. So a forecast cannot disagree with a run. The judges' self-tests come first, for
//! grades wait for them. The value holds indices and digests of the open chains, no outputs; chains are opened one by one,
//! depth first.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use super::side_tasks::selftests;
use super::task::{
    AnswerTask, CompressTask, JudgeTask, Resolved, ResolvedContext, Task, TaskOutcome,
};
use super::texts::FixtureTexts;
use crate::answer::Exchange;
use crate::compress;
use crate::pipeline::{AnswerCell, Chain, CompressCell, Matrix, MatrixCounts, Pipeline};
use models::{Lane, ModelUse};

/// A walk is near its end if no chain is left to open and at most this many tasks are ready. Before that, cells are
/// finished one after the other, so that few are open.
const FEW_TASKS: usize = 128;

/// The walk over the matrix.
#[derive(Debug)]
pub struct Frontier<'p> {
    pipeline: &'p Pipeline,
    chains: Vec<Chain>,
    opened: usize,
    texts: Option<Rc<FixtureTexts>>,
    ready: Vec<Task>,
    warms_prompt_caches: bool,
}

impl<'p> Frontier<'p> {
    /// A walk that has not begun: over the self-tests, then over the matrix.
    pub fn new(pipeline: &'p Pipeline) -> Frontier<'p> {
        let cases = selftests(pipeline).collect();
        Frontier {
            chains: Matrix(pipeline).chains().collect(),
            ..Frontier::from_tasks(pipeline, cases)
        }
    }

    /// A walk over these tasks only.
    pub fn from_tasks(pipeline: &'p Pipeline, mut ready: Vec<Task>) -> Frontier<'p> {
        ready.reverse();
        Frontier {
            pipeline,
            chains: Vec::new(),
            opened: 0,
            texts: None,
            ready,
            warms_prompt_caches: false,
        }
    }

    /// Lets the first answer from a long context, and the first judgement by each rubric, go ahead of the others, so that
    /// these find the provider's prompt cache warm.
    pub fn warming_prompt_caches(self) -> Frontier<'p> {
        Frontier {
            warms_prompt_caches: true,
            ..self
        }
    }

    /// The same walk without the cells of the matrix.
    pub fn without_cells(self) -> Frontier<'p> {
        Frontier {
            chains: Vec::new(),
            ..self
        }
    }

    /// Puts a task back that could not be begun yet; it is ready again at once.
    pub fn put_back(&mut self, task: Task) {
        self.ready.push(task);
    }

    /// Whether another task can be begun now.
    pub fn has_more(&self) -> bool {
        !self.ready.is_empty() || self.opened < self.chains.len()
    }

    /// The next task whose inputs are known, if there is one now.
    pub fn next_ready(&mut self) -> Option<Task> {
        while self.ready.is_empty() {
            let chain = *self.chains.get(self.opened)?;
            self.opened += 1;
            self.open(chain);
        }
        self.take_awaited().or_else(|| self.ready.pop())
    }

    /// Near the end of the walk, takes a task that others wait for. Nothing waits for most judgements: they are left to
    /// run beside the last answers.
    fn take_awaited(&mut self) -> Option<Task> {
        if self.opened < self.chains.len() || self.ready.len() > FEW_TASKS {
            return None;
        }
        let at = self.ready.iter().rposition(|task| self.is_awaited(task))?;
        Some(self.ready.remove(at))
    }

    fn is_awaited(&self, task: &Task) -> bool {
        let Task::Judge(task) = task else { return true };
        matches!(
            task.context
                .judging
                .borrow()
                .get(&task.shared_rubric(self.pipeline)),
            Some(Some(_))
        )
    }

    fn open(&mut self, chain: Chain) {
        let texts = match &self.texts {
            Some(texts) if texts.are_of(chain) => texts.clone(),
            _ => {
                let texts = FixtureTexts::from_chain(chain, self.pipeline.fixture(chain.fixture));
                self.texts.insert(Rc::new(texts)).clone()
            }
        };
        if let Some(cell) = Matrix(self.pipeline).compressions(chain).next() {
            self.ready.push(Task::Compress(CompressTask {
                cell,
                before: None,
                texts,
            }));
        }
    }

    /// Records the outcome of a task and makes ready what depends on it. Returns the number of cells, each repetition
    /// counted, that can have no output because this one has none.
    pub fn resolve(&mut self, task: &Task, outcome: TaskOutcome) -> MatrixCounts {
        match task {
            Task::Side(_) | Task::Selftest(_) => MatrixCounts::default(),
            Task::Compress(task) => self.resolve_compress(task, outcome),
            Task::Answer(task) => {
                self.ready.append(&mut task.context.waiting.borrow_mut());
                self.resolve_answer(task, outcome)
            }
            Task::Judge(task) => {
                let rubric = task.shared_rubric(self.pipeline);
                let waiting = task
                    .context
                    .judging
                    .borrow_mut()
                    .get_mut(&rubric)
                    .and_then(Option::take);
                self.ready.extend(waiting.into_iter().flatten().rev());
                MatrixCounts::default()
            }
        }
    }

    /// Whether requests to a model wait until one of them has filled the provider's prompt cache. In batches they do not:
    /// that one would take a batch of its own.
    fn warms(&self, model: &ModelUse) -> bool {
        self.warms_prompt_caches && model.lane != Lane::Batch && model.provider.caches_prompts()
    }

    /// Lets a judgement wait if another one whose request begins with the same text goes ahead of it; else returns it.
    fn warm_judge(&self, task: JudgeTask) -> Option<Task> {
        let warms = self.pipeline.settings.judge_context
            && self.warms(&self.pipeline.judge(task.cell.judge).model)
            && task.context.texts.is_worth_warming(task.context.cell.point);
        if !warms {
            return Some(Task::Judge(task));
        }
        let (context, rubric) = (task.context.clone(), task.shared_rubric(self.pipeline));
        match context.judging.borrow_mut().entry(rubric) {
            Entry::Vacant(vacant) => {
                vacant.insert(Some(Vec::new()));
                Some(Task::Judge(task))
            }
            Entry::Occupied(mut first) => match first.get_mut() {
                Some(waiting) => {
                    waiting.push(Task::Judge(task));
                    None
                }
                None => Some(Task::Judge(task)),
            },
        }
    }

    fn resolve_compress(&mut self, task: &CompressTask, outcome: TaskOutcome) -> MatrixCounts {
        match outcome {
            TaskOutcome::Resolved(resolved) => {
                let context = self.context(task, resolved);
                self.resolve_context(task, context);
                MatrixCounts::default()
            }
            TaskOutcome::Unresolved | TaskOutcome::Searched(_) => {
                if !Matrix(self.pipeline).keeps_state(task.cell.chain.method) {
                    self.push_next(task, None);
                }
                self.downstream(task.cell)
            }
        }
    }

    /// The context that a compression made.
    pub fn context(&self, task: &CompressTask, resolved: Resolved) -> Rc<ResolvedContext> {
        let method = self.pipeline.method(task.cell.chain.method);
        Rc::new(ResolvedContext {
            cell: task.cell,
            key: resolved.key,
            state: compress::state_digest(method, resolved.out),
            reference: task.reference(method, resolved.out),
            texts: task.texts.clone(),
            cost: resolved.cost,
            unchanged: resolved.unchanged,
            waiting: RefCell::default(),
            judging: RefCell::default(),
        })
    }

    /// Records the context that a compression made, and makes ready what depends on it.
    pub fn resolve_context(&mut self, task: &CompressTask, context: Rc<ResolvedContext>) {
        self.push_answers(&context);
        let keeps_state = Matrix(self.pipeline).keeps_state(task.cell.chain.method);
        self.push_next(task, keeps_state.then_some(context));
    }

    /// Makes the next compression of the chain ready, before any answer: a chain is the longest way to the end.
    fn push_next(&mut self, task: &CompressTask, before: Option<Rc<ResolvedContext>>) {
        if let Some(cell) = self.after(task.cell) {
            self.ready.push(Task::Compress(CompressTask {
                cell,
                before,
                texts: task.texts.clone(),
            }));
        }
    }

    /// Pushes the answers of a context so that they are popped in order, one right after the other: they share
    /// their prefix.
    fn push_answers(&mut self, context: &Rc<ResolvedContext>) {
        let exchange = Rc::new(Exchange::default());
        let cells: Vec<AnswerCell> = Matrix(self.pipeline).answers(context.cell).collect();
        let tasks = cells.iter().map(|cell| AnswerTask {
            cell: *cell,
            context: context.clone(),
            exchange: exchange.clone(),
        });
        let mut answers: Vec<Task> = tasks.map(Task::Answer).rev().collect();
        let warms = cells
            .first()
            .is_some_and(|cell| self.warms(&self.pipeline.answerer(cell.answerer).model));
        if warms && context.texts.is_worth_warming(context.cell.point) {
            let first = answers.pop();
            *context.waiting.borrow_mut() = answers;
            self.ready.extend(first);
        } else {
            self.ready.append(&mut answers);
        }
    }

    fn resolve_answer(&mut self, task: &AnswerTask, outcome: TaskOutcome) -> MatrixCounts {
        let judgements = Matrix(self.pipeline).judgements(task.cell);
        let resolved = match outcome {
            TaskOutcome::Resolved(resolved) => resolved,
            TaskOutcome::Searched(exchange) => {
                self.ready.push(Task::Answer(AnswerTask {
                    exchange,
                    ..task.clone()
                }));
                return MatrixCounts::default();
            }
            TaskOutcome::Unresolved => {
                return MatrixCounts {
                    judge: judgements.count() as u64,
                    ..MatrixCounts::default()
                };
            }
        };
        let answer = Rc::new(resolved);
        let context = &task.context;
        let first = self.ready.len();
        for cell in judgements {
            let exchange = task.exchange.clone();
            let task = JudgeTask {
                cell,
                context: context.clone(),
                answer: answer.clone(),
                exchange,
            };
            self.ready.extend(self.warm_judge(task));
        }
        if let Some(pushed) = self.ready.get_mut(first..) {
            pushed.reverse();
        }
        MatrixCounts::default()
    }

    /// The compression after this one in its chain.
    fn after(&self, cell: CompressCell) -> Option<CompressCell> {
        Matrix(self.pipeline)
            .compressions(cell.chain)
            .find(|next| next.point > cell.point)
    }

    /// What depends on a compression: its answers, and for a method with state the points after it.
    fn downstream(&self, cell: CompressCell) -> MatrixCounts {
        let mut counts = self.downstream_answers(cell);
        if Matrix(self.pipeline).keeps_state(cell.chain.method) {
            for later in Matrix(self.pipeline)
                .compressions(cell.chain)
                .filter(|next| next.point > cell.point)
            {
                let after = self.downstream_answers(later);
                counts.compress += 1;
                counts.answer += after.answer;
                counts.judge += after.judge;
            }
        }
        counts
    }

    fn downstream_answers(&self, cell: CompressCell) -> MatrixCounts {
        MatrixCounts {
            compress: 0,
            answer: Matrix(self.pipeline).answers(cell).count() as u64,
            judge: Matrix(self.pipeline).downstream_judgements(cell),
        }
    }
}
