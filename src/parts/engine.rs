//! Engines that start numbered tasks: the variables that hold a task's number, and how to start some of the tasks
//! again.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{PartFault, PartNumber};

/// An engine, by its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// An Indexed Job. Its tasks do not learn how many there are.
    Kubernetes,
    /// A job array, numbered from 1. Its count and its lowest number are those of the tasks that were submitted, so
    /// they change when missing tasks are submitted again; the number of a task does not.
    Slurm,
    AwsBatch,
    CloudRun,
    Gitlab,
}

/// The variables from which a task knows its number.
struct EngineVariables {
    index: &'static str,
    /// The number of the first task.
    first: u32,
    count: Option<&'static str>,
}

/// Why the environment does not say which part to run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    #[error(
        "this is no task of a job array: none of {} is set; give the number, as in --part 3/8",
        names()
    )]
    None,
    #[error(
        "both {_0} and {_1} are set, so `auto` is ambiguous; give the number, as in --part 3/8"
    )]
    Several(&'static str, &'static str),
    #[error("{variable} is `{value}`, which is not a number from {first}")]
    NotANumber {
        variable: &'static str,
        value: String,
        first: u32,
    },
    #[error(
        "{_0} does not say how many tasks there are; give the number of parts, as in --part auto/8"
    )]
    NoCount(&'static str),
    #[error("{variable} says {found} tasks, and --part says {given}; give one of them")]
    OtherCount {
        variable: &'static str,
        found: u32,
        given: u32,
    },
    #[error("{variable} is {value}, so this is task {index} of {of}: {fault}")]
    Outside {
        variable: &'static str,
        value: u32,
        index: u32,
        of: u32,
        fault: PartFault,
    },
    #[error("{_0} is 0, and parts are numbered from 1; submit the array as --array=1-N")]
    FromZero(&'static str),
}

fn names() -> String {
    Engine::ALL
        .map(|engine| engine.variables().index)
        .join(", ")
}

impl Engine {
    pub const ALL: [Engine; 5] = [
        Engine::Kubernetes,
        Engine::Slurm,
        Engine::AwsBatch,
        Engine::CloudRun,
        Engine::Gitlab,
    ];

    fn variables(self) -> EngineVariables {
        let (index, first, count) = match self {
            Engine::Kubernetes => ("JOB_COMPLETION_INDEX", 0, None),
            Engine::Slurm => ("SLURM_ARRAY_TASK_ID", 1, None),
            Engine::AwsBatch => (
                "AWS_BATCH_JOB_ARRAY_INDEX",
                0,
                Some("AWS_BATCH_JOB_ARRAY_SIZE"),
            ),
            Engine::CloudRun => ("CLOUD_RUN_TASK_INDEX", 0, Some("CLOUD_RUN_TASK_COUNT")),
            Engine::Gitlab => ("CI_NODE_INDEX", 1, Some("CI_NODE_TOTAL")),
        };
        EngineVariables {
            index,
            first,
            count,
        }
    }

    /// The engine whose variable is set, with that variable's name.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<(Engine, &'static str)> {
        let named = Engine::ALL.map(|engine| (engine, engine.variables().index));
        named.into_iter().find(|(_, name)| variable(name).is_some())
    }

    /// The part that this task runs, by the engine's variables. `given` is the number of parts on the command line.
    ///
    /// # Errors
    /// No engine or several, a variable that is not a number, no number of parts or two different ones.
    pub fn part(
        variable: impl Fn(&str) -> Option<String>,
        given: Option<NonZeroU32>,
    ) -> Result<(PartNumber, Engine), EngineError> {
        let set: Vec<Engine> = Engine::ALL
            .into_iter()
            .filter(|engine| variable(engine.variables().index).is_some())
            .collect();
        let engine = match set.as_slice() {
            [] => return Err(EngineError::None),
            [engine] => *engine,
            [one, other, ..] => {
                return Err(EngineError::Several(
                    one.variables().index,
                    other.variables().index,
                ));
            }
        };
        let EngineVariables {
            index: name,
            first,
            count,
        } = engine.variables();
        let value = number_in(name, variable(name), first)?;
        if value < first {
            return Err(EngineError::FromZero(name));
        }
        let found = match count.filter(|count| variable(count).is_some()) {
            Some(count) => Some((count, number_in(count, variable(count), 1)?)),
            None => None,
        };
        let of = match (found, given) {
            (Some((variable, found)), Some(given)) if found != given.get() => {
                return Err(EngineError::OtherCount {
                    variable,
                    found,
                    given: given.get(),
                });
            }
            (_, Some(given)) => given.get(),
            (Some((_, found)), None) => found,
            (None, None) => return Err(EngineError::NoCount(name)),
        };
        let index = value + 1 - first;
        let part = PartNumber::new(index, of);
        Ok((
            part.map_err(|fault| EngineError::Outside {
                variable: name,
                value,
                index,
                of,
                fault,
            })?,
            engine,
        ))
    }

    /// How to start the tasks of these parts again, in the engine's notation; `None` if it has none.
    pub fn start_again(self, parts: &[PartNumber]) -> Option<String> {
        let first = self.variables().first;
        let numbers: Vec<u32> = parts.iter().map(|part| part.index() - 1 + first).collect();
        let list = ranges(&numbers);
        Some(match self {
            Engine::Slurm => format!("sbatch --array={list}"),
            Engine::Kubernetes => format!("completion indexes {list}"),
            Engine::AwsBatch => format!("array indexes {list}"),
            Engine::CloudRun => format!("task indexes {list}"),
            Engine::Gitlab => return None,
        })
    }
}

/// The number in a variable, `first` or more.
fn number_in(
    variable: &'static str,
    value: Option<String>,
    first: u32,
) -> Result<u32, EngineError> {
    let value = value.unwrap_or_default();
    let number = value
        .trim()
        .parse::<u32>()
        .ok()
        .filter(|number| *number <= PartNumber::MOST);
    number.ok_or(EngineError::NotANumber {
        variable,
        value,
        first,
    })
}

/// Numbers in rising order as `3,7-9`.
fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.iter().map(|(from, to)| {
        if from == to {
            from.to_string()
        } else {
            format!("{from}-{to}")
        }
    });
    runs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], given: Option<u32>) -> Result<(String, Engine), String> {
        let of = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let part = Engine::part(of, given.and_then(NonZeroU32::new));
        part.map(|(part, engine)| (part.to_string(), engine))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn each_engine_names_its_tasks_in_its_own_way() {
        let ok = |part: &str, engine| Ok((part.to_owned(), engine));
        assert_eq!(
            read(&[("JOB_COMPLETION_INDEX", "2")], Some(8)),
            ok("3/8", Engine::Kubernetes)
        );
        let slurm = [
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_TASK_MIN", "3"),
            ("SLURM_ARRAY_TASK_COUNT", "2"),
        ];
        assert_eq!(
            read(&slurm, Some(8)),
            ok("3/8", Engine::Slurm),
            "a task that was submitted again"
        );
        let aws = [
            ("AWS_BATCH_JOB_ARRAY_INDEX", "7"),
            ("AWS_BATCH_JOB_ARRAY_SIZE", "8"),
        ];
        assert_eq!(read(&aws, None), ok("8/8", Engine::AwsBatch));
        assert_eq!(read(&aws, Some(8)), ok("8/8", Engine::AwsBatch));
        let cloud_run = [("CLOUD_RUN_TASK_INDEX", "0"), ("CLOUD_RUN_TASK_COUNT", "8")];
        assert_eq!(read(&cloud_run, None), ok("1/8", Engine::CloudRun));
        assert_eq!(
            read(&[("CI_NODE_INDEX", "8"), ("CI_NODE_TOTAL", "8")], None),
            ok("8/8", Engine::Gitlab)
        );
    }

    #[test]
    fn variables_that_give_no_part_are_named() {
        let why = |variables: &[(&str, &str)], given| read(variables, given).unwrap_err();
        assert!(why(&[], None).contains("none of JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID"));
        assert!(why(&[("JOB_COMPLETION_INDEX", "2")], None).contains("--part auto/8"));
        assert!(
            why(&[("JOB_COMPLETION_INDEX", "two")], Some(8))
                .contains("JOB_COMPLETION_INDEX is `two`")
        );
        assert!(why(&[("JOB_COMPLETION_INDEX", "-1")], Some(8)).contains("not a number from 0"));
        assert!(why(&[("JOB_COMPLETION_INDEX", "99999999999")], Some(8)).contains("not a number"));
        assert!(why(&[("JOB_COMPLETION_INDEX", "8")], Some(8)).contains("task 9 of 8"));
        assert!(why(&[("SLURM_ARRAY_TASK_ID", "0")], Some(8)).contains("--array=1-N"));
        assert!(
            why(&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "8")], Some(4))
                .contains("says 8 tasks")
        );
        assert!(
            why(&[("CI_NODE_INDEX", "1"), ("CI_NODE_TOTAL", "x")], None)
                .contains("CI_NODE_TOTAL is `x`")
        );
        let two = [("JOB_COMPLETION_INDEX", "2"), ("CI_NODE_INDEX", "1")];
        assert!(why(&two, Some(8)).contains("both JOB_COMPLETION_INDEX and CI_NODE_INDEX"));
    }

    #[test]
    fn missing_tasks_are_named_as_their_engine_takes_them() {
        let parts: Vec<PartNumber> = [3, 7, 8]
            .map(|index| PartNumber::new(index, 8).unwrap())
            .into();
        let again = |engine: Engine| engine.start_again(&parts).unwrap_or_default();
        assert_eq!(again(Engine::Slurm), "sbatch --array=3,7-8");
        assert_eq!(again(Engine::Kubernetes), "completion indexes 2,6-7");
        assert_eq!(again(Engine::AwsBatch), "array indexes 2,6-7");
        assert_eq!(again(Engine::Gitlab), "");
    }
}
