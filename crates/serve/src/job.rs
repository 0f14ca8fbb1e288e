//! The page of a job.

use crate::answer::{Response, redirect};
use crate::call::Call;
use crate::{page, trials};
use kurabe_core::Result;
use kurabe_report::Message;
use maud::html;

pub(crate) fn page(call: &Call) -> Result<Response> {
    let (shared, id, language) = (&call.shared, &call.name, call.language());
    let say = |message: Message| message.text(language);
    let job = shared.jobs.find(id)?;
    let run = job.run();
    let running = job.is_running();
    let body = html! {
        p { code { (job.command) } }
        p class="meta" {
            span id="state" class=[running.then_some("running")] { (say(if running { Message::Running } else { Message::Ended })) }
            @if let Some(run) = &run { " · " (say(Message::RunName)) " " a href={ "/runs/" (page::in_url(run)) } { (run) } }
        }
        @if running {
            @let action = format!("/jobs/{id}/stop");
            form method="post" action=(action) { (shared.access.field(&action)) button { (say(Message::StopRun)) } }
        }
        (trials::job_panel(&format!("/jobs/{id}/events"), running, language))
        h2 { (say(Message::Output)) }
        pre { (job.said()) }
    };
    Ok(page::layout(language, say(Message::RunFromHere), &body))
}

pub(crate) fn stop(Call { shared, name: id, .. }: &Call) -> Result<Response> {
    shared.jobs.find(id)?.stop()?;
    Ok(redirect(&format!("/jobs/{id}")))
}
