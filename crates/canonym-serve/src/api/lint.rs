//! Quality checks of the terminology. They run once, on a thread of their own, at the first request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use canonym_core::kb::lint::{Check, Findings, lint};

use crate::error::ApiResult;
use crate::state::{App, Lint};
use crate::wire::{LintCheck, LintExample, LintOut, Person};

/// The maximum number of examples per check.
const MAX_EXAMPLES: usize = 20;

/// `GET /kb/lint`: the results, or that the checks are still running.
pub async fn findings(State(app): State<Arc<App>>, _: Person) -> ApiResult<Json<LintOut>> {
    let mut lint = lock(&app.lint);
    if matches!(*lint, Lint::New) {
        *lint = Lint::Running;
        let app = app.clone();
        std::thread::spawn(move || run_checks(&app));
    }
    Ok(Json(match &*lint {
        Lint::New | Lint::Running => LintOut { is_ready: false, seconds: None, checks: Vec::new() },
        Lint::Done(findings, seconds) => {
            LintOut { is_ready: true, seconds: Some(*seconds), checks: findings.iter().map(check).collect() }
        }
    }))
}

fn run_checks(app: &App) {
    let started = Instant::now();
    let work = std::panic::AssertUnwindSafe(|| lint(app.engine.kb(), &Check::ALL, MAX_EXAMPLES));
    let found = std::panic::catch_unwind(work);
    *lock(&app.lint) = match found {
        Ok(found) => Lint::Done(found, started.elapsed().as_secs_f64()),
        // The next request starts them again; the log has the cause.
        Err(_) => Lint::New,
    };
}

fn lock(lint: &Mutex<Lint>) -> std::sync::MutexGuard<'_, Lint> {
    lint.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check(findings: &Findings) -> LintCheck {
    let (word, what) = findings.check.name_and_description();
    let examples = findings.examples.iter().map(|one| LintExample {
        ids: one.ids.clone(),
        name: one.name.clone(),
        note: one.note.clone(),
    });
    LintCheck {
        check: word,
        what,
        n_found: findings.n_found,
        is_note: findings.check.is_note(),
        examples: examples.collect(),
    }
}
