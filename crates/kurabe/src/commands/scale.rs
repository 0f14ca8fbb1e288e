//! The scale of existing pgbench tables: the number of rows of `pgbench_branches`, as in pgbench itself.

use crate::output::Output;
use anyhow::Result;
use kurabe_core::Error;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_experiments::custom::counts_scale;
use kurabe_experiments::registry;
use std::sync::Arc;

/// The table that defines the scale.
const BRANCHES: &str = "pgbench_branches";

/// Sets the scale of pgbench's built-in scripts from the existing tables.
pub(super) fn count(plan: &mut Plan, targets: &[Target], output: &Output) -> Result<()> {
    let mut spec = plan.spec.clone();
    let Some(custom) = spec.custom.as_mut().filter(|custom| counts_scale(custom)) else { return Ok(()) };
    let mut found: Option<(u64, &str)> = None;
    let can_be_asked = |target: &&Target| target.skip_reason.is_none() && target.is_described();
    for target in targets.iter().filter(can_be_asked) {
        let scale = branches(target).map_err(|error| {
            error
                .context(format!("{}: counting the rows of {BRANCHES} to find the scale", target.name))
                .hint("create the tables with 'pgbench -i' or --init, or set the scale: -D scale=10")
        })?;
        match found {
            Some((other, name)) if other != scale => {
                let what =
                    format!("pgbench's tables have scale {other} on {name} and {scale} on {}", target.name);
                return Err(Error::usage(what).hint("use the same scale on all targets").into());
            }
            _ => found = Some((scale, &target.name)),
        }
    }
    let Some((scale, _)) = found else { return Ok(()) };
    match custom.scale {
        Some(given) if given != scale => output.warning(&format!(
            "scale {given} is ignored: {BRANCHES} has {scale} rows, so that the scale is {scale}, as in \
             pgbench"
        )),
        _ => output.note(&format!("scale {scale}, the number of rows of {BRANCHES}")),
    }
    if custom.scale != Some(scale) {
        custom.scale = Some(scale);
        plan.rewrite(registry::of(&spec)?, spec)?;
    }
    Ok(())
}

fn branches(target: &Target) -> kurabe_core::Result<u64> {
    let field = Field { name: "bid", kind: FieldType::Int };
    let collection = Arc::new(Collection::new(BRANCHES.to_owned(), vec![field], vec![0]));
    let mut session = target.driver.connect(&ConnectOptions::default())?;
    let prepared = session.prepare(&Operation::Count { collection })?;
    let mut reply = Reply::new();
    session.execute(&prepared, &[], &mut reply)?;
    session.release(prepared)?;
    session.close()?;
    match reply.field(0, 0) {
        Some(Value::Int(rows @ 1..)) => Ok(rows.unsigned_abs()),
        _ => Err(Error::usage(format!("{BRANCHES} is empty"))),
    }
}
