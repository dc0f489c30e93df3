//! What may be wrong with the terminology: looked for once, on a thread of its own, when somebody asks first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use canonym_core::kb::lint::{Check, Findings, lint};

use crate::app::App;
use crate::error::ApiResult;
use crate::store::people::Person;
use crate::wire::{LintCheck, LintExample, LintOut};

/// Examples of a finding.
const MAX_EXAMPLES: usize = 20;

/// Whether the terminology was looked through.
#[derive(Debug, Default)]
pub enum Lint {
    /// Nobody asked.
    #[default]
    New,
    /// It is being done.
    Running,
    /// What was found, and how many seconds it took.
    Done(Vec<Findings>, f64),
}

/// `GET /kb/lint`: what was found, or that it is still being looked for.
pub async fn findings(State(app): State<Arc<App>>, _: Person) -> ApiResult<Json<LintOut>> {
    let mut lint = lock(&app.lint);
    if matches!(*lint, Lint::New) {
        *lint = Lint::Running;
        let app = app.clone();
        std::thread::spawn(move || look(&app));
    }
    Ok(Json(match &*lint {
        Lint::New | Lint::Running => LintOut { is_ready: false, seconds: None, checks: Vec::new() },
        Lint::Done(findings, seconds) => {
            LintOut { is_ready: true, seconds: Some(*seconds), checks: findings.iter().map(check).collect() }
        }
    }))
}

fn look(app: &App) {
    let started = Instant::now();
    let work = std::panic::AssertUnwindSafe(|| lint(app.engine.kb(), &Check::ALL, MAX_EXAMPLES));
    let found = std::panic::catch_unwind(work);
    *lock(&app.lint) = match found {
        Ok(found) => Lint::Done(found, started.elapsed().as_secs_f64()),
        // The next one who asks starts it anew; the log says what happened.
        Err(_) => Lint::New,
    };
}

fn lock(lint: &Mutex<Lint>) -> std::sync::MutexGuard<'_, Lint> {
    lint.lock().unwrap_or_else(PoisonError::into_inner)
}

fn check(findings: &Findings) -> LintCheck {
    let (word, what) = findings.check.words();
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
