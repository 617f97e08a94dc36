//! An agent's flight: a program works in a sealed session on a baseline, its commit comes out as a
//! bundle and is certified in another session, and what was refused goes back to it.

mod attempts;
mod freight;
mod plan;
mod recovery;
mod replay;
mod report;
mod room;
mod sealed;
mod sortie;

pub use plan::{AGENT_PLAN_SCHEMA, AgentPlan};
pub use recovery::{Recovered, recover};
pub use replay::{binding, recorded_as, replay};
pub use report::{AttemptReport, Report};
pub use sortie::{Asked, Sortie};
