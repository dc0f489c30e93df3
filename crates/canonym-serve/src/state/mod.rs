//! What all requests share: the store, the engines, the bus of events, settings and limits. It knows no handlers.

mod config;
mod job_control;
mod presence;
mod scope;
mod tree;

pub use config::{PublicUrl, ServeConfig};
pub(crate) use job_control::lock;
pub use job_control::{JobControl, SpreadTask};
pub use presence::Presence;
pub use tree::Tree;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use canonym_core::kb::lint::Findings;
use canonym_core::kb::subset::Subset;
use rusqlite::Connection;
use tokio::sync::{Semaphore, watch};

use crate::abort;
use crate::audit::Audit;
use crate::auth::{self, Limiter};
use crate::batcher::Batcher;
use crate::engine::{Engine, Trainer, check_kb};
use crate::error::{ApiError, ApiResult};
use crate::events::EventBus;
use crate::marks::disagree::{Conflict, conflicts};
use crate::metrics::Metrics;
use crate::store::folder::{self, MODELS};
use crate::store::members::{self, Named};
use crate::store::{FILE, Store, events, jobs, models, people, projects};
use crate::times::Millis;
use crate::wire::{Person, ProjectScope, Role};

/// Requests that may call the model without waiting in the batch queue: names, and candidates of one mention.
const MAX_UNBATCHED: usize = 2;

/// Concurrent imports, and threads that may wait for a password hash.
const MAX_CONCURRENT: usize = 2;

/// How long the result of a write probe is reused, in milliseconds.
const PROBE_TTL: Millis = 5_000;

/// Uploads of the maximum size that may be held in memory.
const MAX_UPLOADS: usize = 4;

/// The state of the quality checks of the terminology.
#[derive(Debug, Default)]
pub enum Lint {
    /// Not requested yet.
    #[default]
    New,
    /// Running.
    Running,
    /// The findings, and how many seconds they took.
    Done(Vec<Findings>, f64),
}

/// The conflicts of a document at a version.
type Conflicts = (i64, Arc<Vec<Conflict>>);

/// What all requests share.
pub struct App {
    /// The engine that the server was started with.
    pub engine: Arc<dyn Engine>,
    /// Trains and opens models, where that is possible.
    pub trainer: Option<Arc<dyn Trainer>>,
    /// The database.
    pub store: Store,
    /// The batch queue in front of the engines.
    pub batcher: Batcher,
    /// Events for connected clients.
    pub bus: EventBus,
    /// Counters.
    pub metrics: Metrics,
    /// Settings.
    pub config: ServeConfig,
    /// Failed logins.
    pub limiter: Limiter,
    /// Wakes and cancels jobs.
    pub jobs: JobControl,
    /// The number of the model that the server was started with.
    pub base_model: i64,
    /// Permits for calling an engine without the batch queue.
    pub unbatched_permits: Semaphore,
    /// Permits for imports: each holds its file in memory.
    pub import_permits: Arc<Semaphore>,
    /// KiB of uploads that may still be held in memory.
    pub upload_permits: Arc<Semaphore>,
    /// Permits for threads that wait for a password hash.
    pub hash_permits: Semaphore,
    /// Who is looking at which document.
    pub presence: Presence,
    /// Quality checks of the terminology.
    pub lint: Mutex<Lint>,
    has_accounts: AtomicBool,
    engines: Mutex<HashMap<i64, Arc<dyn Engine>>>,
    /// The hierarchy of the terminology, read on first use.
    tree: OnceLock<Tree>,
    /// Concepts in the scopes of projects.
    subsets: Mutex<Vec<(ProjectScope, Arc<Subset>)>>,
    /// Conflicts by document.
    conflicts: Mutex<HashMap<i64, Conflicts>>,
    stopping: watch::Sender<bool>,
    permissions: watch::Sender<()>,
    /// The audit log.
    pub audit: Audit,
    /// When the database was last probed for writing, and the result.
    probed: Mutex<Option<(Millis, ApiResult<()>)>>,
    /// Keeps other servers out of the data folder.
    _lock: Option<File>,
}

/// The folder that a training job writes its model to.
pub fn model_folder(data: &Path, job: i64) -> PathBuf {
    data.join(MODELS).join(format!("job-{job}"))
}

impl App {
    /// Opens the data folder.
    pub(crate) fn open(
        engine: Arc<dyn Engine>,
        trainer: Option<Arc<dyn Trainer>>,
        config: ServeConfig,
    ) -> canonym_core::Result<Arc<App>> {
        let store = Store::open(&config.data)?;
        let lock = if config.owns_jobs { Some(folder::lock(&config.data)?) } else { None };
        let now = config.clock.now();
        let opened = store.write(|transaction| {
            people::ensure_local(transaction, now)?;
            // Without ownership another process may be running them.
            let stopped = if config.owns_jobs { jobs::end_stopped(transaction, now)? } else { Vec::new() };
            let base_model = models::ensure_base(transaction, engine.name(), now)?;
            Ok((base_model, people::has_accounts(transaction)?, stopped))
        });
        let (base_model, has_accounts, stopped) = opened.map_err(|error| {
            let failed = canonym_core::Error::artifact(&config.data.join(FILE), error.message);
            match error.hint {
                Some(hint) => failed.with_hint(hint),
                None => failed,
            }
        })?;
        for folder in stopped.into_iter().map(|id| model_folder(&config.data, id)).filter(|folder| folder.exists()) {
            std::fs::remove_dir_all(&folder).map_err(|error| canonym_core::Error::io("remove", &folder, error))?;
        }
        let audit = Audit::new(&config.data);
        let upload_kib = MAX_UPLOADS * config.max_upload_bytes.div_ceil(1024);
        Ok(Arc::new(App {
            batcher: Batcher::new(config.batcher),
            engine,
            trainer,
            store,
            bus: EventBus::default(),
            metrics: Metrics::default(),
            config,
            limiter: Limiter::default(),
            jobs: JobControl::default(),
            base_model,
            unbatched_permits: Semaphore::new(MAX_UNBATCHED),
            import_permits: Arc::new(Semaphore::new(MAX_CONCURRENT)),
            upload_permits: Arc::new(Semaphore::new(upload_kib)),
            hash_permits: Semaphore::new(MAX_CONCURRENT),
            presence: Presence::default(),
            lint: Mutex::default(),
            has_accounts: AtomicBool::new(has_accounts),
            engines: Mutex::default(),
            tree: OnceLock::new(),
            subsets: Mutex::default(),
            conflicts: Mutex::default(),
            stopping: watch::Sender::new(false),
            permissions: watch::Sender::new(()),
            audit,
            probed: Mutex::default(),
            _lock: lock,
        }))
    }

    /// The current time.
    pub fn now(&self) -> i64 {
        self.config.clock.now()
    }

    /// Whether the server has accounts, so that people must sign in.
    pub fn has_accounts(&self) -> bool {
        self.has_accounts.load(Ordering::Relaxed)
    }

    /// Records that there are accounts: from now on people must sign in.
    pub fn accounts_exist(&self) {
        self.has_accounts.store(true, Ordering::Relaxed);
        self.permissions_changed();
    }

    /// Makes event streams check their permissions again, after a sign-out or a change of role or membership.
    pub fn permissions_changed(&self) {
        self.permissions.send_replace(());
    }

    /// Changes with [`App::permissions_changed`].
    pub fn permissions(&self) -> watch::Receiver<()> {
        self.permissions.subscribe()
    }

    /// Whether an active admin exists; a server that other machines can reach does not start without one.
    pub fn has_admin(&self) -> bool {
        self.store.read(people::has_admin).unwrap_or(false)
    }

    /// Adds an admin, or sets the password of an existing one.
    pub fn put_admin(&self, name: &str, password: &str) -> ApiResult<()> {
        let name = auth::checked_name(name)?;
        let hash = auth::hash(auth::checked_password(password, name)?)?;
        let now = self.now();
        self.store.write(|transaction| people::put(transaction, name, Role::Admin, &hash, now))?;
        self.accounts_exist();
        self.audit.record(now, "command line", None, "admin put", name);
        Ok(())
    }

    /// The fingerprint of the terminology.
    pub fn kb_fingerprint(&self) -> String {
        format!("{:032x}", self.engine.kb().container().fingerprint())
    }

    /// Fails if the knowledge base file was modified after it was opened.
    pub fn check_kb(&self) -> ApiResult<()> {
        check_kb(self.engine.as_ref())
    }

    /// Whether decisions can be stored. Probing writes, so the result is reused for some seconds.
    pub fn probe(&self) -> ApiResult<()> {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        match probed.as_ref() {
            Some((at, known)) if (0..PROBE_TTL).contains(&(now - at)) => known.clone(),
            _ => probed.insert((now, self.store.probe())).1.clone(),
        }
    }

    /// Runs blocking work on a thread for it.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<App>,
        work: impl FnOnce(&App) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let app = self.clone();
        let request = abort::REQUEST.try_with(Arc::clone).ok();
        let done = tokio::task::spawn_blocking(move || abort::during(request, || work(&app))).await;
        done.unwrap_or_else(|error| Err(ApiError::internal(&error)))
    }

    /// The number and the engine of the model that a project uses.
    pub fn engine_of(&self, project: i64) -> ApiResult<(i64, Arc<dyn Engine>)> {
        let model = self.store.read(|connection| projects::model(connection, project))?.unwrap_or(self.base_model);
        Ok((model, self.engine_of_model(model)?))
    }

    /// The folder of a model: inside the data folder, which may have been moved since the model was trained.
    pub fn model_path(&self, stored: &Path) -> PathBuf {
        let here = stored.file_name().map(|name| self.config.data.join(MODELS).join(name));
        here.filter(|here| here.is_dir()).unwrap_or_else(|| stored.to_owned())
    }

    /// The engine of the model that a project uses, if the person is a member; without a project that of the server.
    pub async fn engine_for(self: &Arc<App>, person: Person, project: Option<i64>) -> ApiResult<Arc<dyn Engine>> {
        let Some(project) = project else { return Ok(self.engine.clone()) };
        self.blocking(move |app| {
            app.store.read(|connection| members::check(connection, &person, Named::Project(project)))?;
            Ok(app.engine_of(project)?.1)
        })
        .await
    }

    /// Drops the cached engine of a model.
    pub fn forget_model(&self, model: i64) {
        self.engines().remove(&model);
    }

    /// The engine of a model.
    pub fn engine_of_model(&self, model: i64) -> ApiResult<Arc<dyn Engine>> {
        if let Some(engine) = self.engines().get(&model) {
            return Ok(engine.clone());
        }
        let stored = self.store.read(|connection| models::get(connection, model))?;
        let engine = match (&stored.folder, &self.trainer) {
            // The base model of an earlier start has no folder; the current base model replaces it.
            (None, _) => self.engine.clone(),
            (Some(folder), Some(trainer)) => trainer.open(&self.model_path(folder)).map_err(|error| {
                let hint = "switch the project to an older model";
                ApiError::unavailable(format!("cannot open model “{}”: {error}", stored.model.name)).hint(hint)
            })?,
            (Some(_), None) => {
                let hint = "switch the project to the base model";
                return Err(ApiError::unavailable("this server cannot open trained models").hint(hint));
            }
        };
        let mut engines = self.engines();
        // Models are large: only the last one used stays in memory.
        engines.clear();
        engines.insert(model, engine.clone());
        Ok(engine)
    }

    fn engines(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<dyn Engine>>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The conflicts between the annotators of a document.
    pub fn conflicts_of(&self, connection: &Connection, document: i64, version: i64) -> ApiResult<Arc<Vec<Conflict>>> {
        let known = || self.conflicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, conflicts)) = known().get(&document)
            && *of == version
        {
            return Ok(conflicts.clone());
        }
        let conflicts = Arc::new(conflicts(&events::of_document(connection, document)?));
        known().insert(document, (version, conflicts.clone()));
        Ok(conflicts)
    }

    /// The hierarchy of the terminology.
    pub fn tree(&self) -> &Tree {
        self.tree.get_or_init(|| Tree::of(self.engine.kb()))
    }

    /// Stops jobs, event streams and the server.
    pub fn stop(&self) {
        self.jobs.stop();
        self.stopping.send_replace(true);
    }

    /// Becomes true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
