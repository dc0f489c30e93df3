//! What all requests share.

use std::collections::HashMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Semaphore, watch};

use crate::abandon;
use crate::api::lint::Lint;
use crate::audit::Audit;
use crate::care::MODELS;
use crate::engine::{Engine, Trainer};
use crate::error::{ApiError, ApiResult};
use crate::events::Hub;
use crate::guard::PublicUrl;
use crate::jobs::Runner;
use crate::lane::{Lane, LaneConfig};
use crate::marks::disagree::{Place, places};
use crate::metrics::Metrics;
use crate::people::{Desks, Limiter};
use crate::store::members::{self, Named};
use crate::store::people::Person;
use crate::store::{Store, events, folder, jobs, models, people, projects};
use crate::times::{Clock, Millis};

/// How the server works.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The folder of data.
    pub data: PathBuf,
    /// Whether only this machine can reach the server: then the name by which it is called must be one of this machine.
    pub is_loopback: bool,
    /// How people call the server where a proxy stands in front of it.
    pub public_url: Option<PublicUrl>,
    /// Proxies that tell from where a request comes.
    pub trusted_proxies: Vec<IpAddr>,
    /// How long a request may take.
    pub timeout: Duration,
    /// The longest body of a request that links, in bytes.
    pub max_link_bytes: usize,
    /// The longest text that is linked or imported, in bytes.
    pub max_text_bytes: usize,
    /// The longest answer to a request that links, in bytes.
    pub max_answer_bytes: usize,
    /// The longest file that is imported, in bytes.
    pub max_upload_bytes: usize,
    /// The most bytes that come out of a packed file.
    pub max_unpacked_bytes: u64,
    /// What may wait in front of the model.
    pub lane: LaneConfig,
    /// Where the time comes from.
    pub clock: Clock,
    /// Whether jobs run by themselves; tests run them one by one.
    pub runs_jobs: bool,
    /// Whether the folder of data is this program's: no other server may use it, and jobs that are said to run were those of one that ended. Not so
    /// for a program that only looks in.
    pub owns_jobs: bool,
}

impl ServeConfig {
    /// The usual limits, on loopback.
    pub fn new(data: impl Into<PathBuf>) -> ServeConfig {
        ServeConfig {
            data: data.into(),
            is_loopback: true,
            public_url: None,
            trusted_proxies: Vec::new(),
            timeout: Duration::from_secs(120),
            max_link_bytes: 8 << 20,
            max_text_bytes: 2 << 20,
            max_answer_bytes: 64 << 20,
            max_upload_bytes: 64 << 20,
            max_unpacked_bytes: 256 << 20,
            lane: LaneConfig::default(),
            clock: Clock::system(),
            runs_jobs: true,
            owns_jobs: true,
        }
    }
}

/// Questions to the model that are answered beside the lane: names and candidates of one mention.
const SIDE_QUESTIONS: usize = 2;

/// Imports at a time, and threads that wait for the hash of a password.
const AT_ONCE: usize = 2;

/// How long it is believed that the disk takes what is written.
const PROBED: Millis = 5_000;

/// Whole files that may be held in memory while they are sent.
const UPLOADS: usize = 4;

/// Disagreements of a document, with its version.
type Places = (i64, Arc<Vec<Place>>);

/// What all requests share.
pub struct App {
    /// The model that the server was started with.
    pub engine: Arc<dyn Engine>,
    /// Makes models, where that is possible.
    pub trainer: Option<Arc<dyn Trainer>>,
    /// What is kept.
    pub store: Store,
    /// What waits for the model.
    pub lane: Lane,
    /// Who listens to what happens.
    pub hub: Hub,
    /// Counts.
    pub metrics: Metrics,
    /// Settings.
    pub config: ServeConfig,
    /// Failed logins.
    pub limiter: Limiter,
    /// Jobs.
    pub runner: Runner,
    /// The number of the model that the server was started with.
    pub base_model: i64,
    /// Questions beside the lane.
    pub side: Semaphore,
    /// Files that are imported at a time: each is held in memory.
    pub imports: Arc<Semaphore>,
    /// KiB of files that are being sent.
    pub uploads: Arc<Semaphore>,
    /// Threads that wait for the hash of a password.
    pub doors: Semaphore,
    /// Who works on which document.
    pub desks: Desks,
    /// What may be wrong with the terminology.
    pub lint: Mutex<Lint>,
    has_accounts: AtomicBool,
    engines: Mutex<HashMap<i64, Arc<dyn Engine>>>,
    /// Disagreements by document.
    places: Mutex<HashMap<i64, Places>>,
    stopping: watch::Sender<bool>,
    keys: watch::Sender<()>,
    /// Who came in, and who may do what.
    pub audit: Audit,
    /// When it was last looked whether decisions can be kept, and what was found.
    probed: Mutex<Option<(Millis, ApiResult<()>)>>,
    /// Keeps other servers out of the folder of data.
    _lock: Option<File>,
}

/// Fails where the file of the knowledge base of a model was written to since it was opened.
pub fn check_kb(engine: &dyn Engine) -> ApiResult<()> {
    engine.kb().container().check_unchanged().map_err(|error| {
        tracing::error!("{error}");
        ApiError::unavailable("the file of the knowledge base was changed while the server used it")
            .hint("nothing was changed; build it again with `canonym kb build`, which replaces it whole, and restart the server")
    })
}

/// Where the model of a training goes.
pub fn model_folder(data: &Path, job: i64) -> PathBuf {
    data.join(MODELS).join(format!("job-{job}"))
}

impl App {
    /// Opens the folder of data and starts what works beside requests.
    pub fn open(
        engine: Arc<dyn Engine>,
        trainer: Option<Arc<dyn Trainer>>,
        config: ServeConfig,
    ) -> canonym_core::Result<Arc<App>> {
        let store = Store::open(&config.data)?;
        let lock = if config.owns_jobs { Some(folder::lock(&config.data)?) } else { None };
        let now = config.clock.now();
        let prepared = store.write(|transaction| {
            people::ensure_local(transaction, now)?;
            // Where this program only looks in, another one may be running them.
            let stopped = if config.owns_jobs { jobs::end_stopped(transaction, now)? } else { Vec::new() };
            let base_model = models::ensure_base(transaction, engine.name(), now)?;
            Ok((base_model, people::has_accounts(transaction)?, stopped))
        });
        let (base_model, has_accounts, stopped) =
            prepared.map_err(|error| canonym_core::Error::invalid(error.message))?;
        for folder in stopped.into_iter().map(|id| model_folder(&config.data, id)).filter(|folder| folder.exists()) {
            std::fs::remove_dir_all(&folder).map_err(|error| canonym_core::Error::io("remove", &folder, error))?;
        }
        let runs_jobs = config.runs_jobs;
        let audit = Audit::new(&config.data);
        let uploads = UPLOADS * config.max_upload_bytes.div_ceil(1024);
        let app = Arc::new(App {
            lane: Lane::new(config.lane),
            engine,
            trainer,
            store,
            hub: Hub::default(),
            metrics: Metrics::default(),
            config,
            limiter: Limiter::default(),
            runner: Runner::default(),
            base_model,
            side: Semaphore::new(SIDE_QUESTIONS),
            imports: Arc::new(Semaphore::new(AT_ONCE)),
            uploads: Arc::new(Semaphore::new(uploads)),
            doors: Semaphore::new(AT_ONCE),
            desks: Desks::default(),
            lint: Mutex::default(),
            has_accounts: AtomicBool::new(has_accounts),
            engines: Mutex::default(),
            places: Mutex::default(),
            stopping: watch::Sender::new(false),
            keys: watch::Sender::new(()),
            audit,
            probed: Mutex::default(),
            _lock: lock,
        });
        if runs_jobs {
            Runner::start(&app);
        }
        Ok(app)
    }

    /// The time.
    pub fn now(&self) -> i64 {
        self.config.clock.now()
    }

    /// Whether people have to log in.
    pub fn has_accounts(&self) -> bool {
        self.has_accounts.load(Ordering::Relaxed)
    }

    /// From now on people have to log in.
    pub fn accounts_exist(&self) {
        self.has_accounts.store(true, Ordering::Relaxed);
        self.keys_changed();
    }

    /// Somebody logged out, or may do something else than before: streams look again who listens.
    pub fn keys_changed(&self) {
        self.keys.send_replace(());
    }

    /// Tells when that happens.
    pub fn keys(&self) -> watch::Receiver<()> {
        self.keys.subscribe()
    }

    /// Whether somebody may let others in: without that a server that others can reach does not start.
    pub fn has_admin(&self) -> bool {
        self.store.read(people::has_admin).unwrap_or(false)
    }

    /// Adds an admin, or gives one a new password.
    pub fn put_admin(&self, name: &str, password: &str) -> ApiResult<()> {
        let name = crate::people::checked_name(name)?;
        let hash = crate::people::hash(crate::people::checked_password(password, name)?)?;
        let now = self.now();
        self.store.write(|transaction| people::put(transaction, name, (people::Role::Admin, &hash), now))?;
        self.accounts_exist();
        self.audit.note(now, ("command line", None), "admin put", name);
        Ok(())
    }

    /// What tells the terminology from others.
    pub fn kb_fingerprint(&self) -> String {
        format!("{:032x}", self.engine.kb().container().fingerprint())
    }

    /// Fails where the file of the knowledge base was written to since it was opened.
    pub fn check_kb(&self) -> ApiResult<()> {
        check_kb(self.engine.as_ref())
    }

    /// Whether what people decide can be kept; it is looked at most every few seconds, since it writes.
    pub fn probe(&self) -> ApiResult<()> {
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now();
        match probed.as_ref() {
            Some((at, known)) if (0..PROBED).contains(&(now - at)) => known.clone(),
            _ => probed.insert((now, self.store.probe())).1.clone(),
        }
    }

    /// Runs what blocks on a thread that may.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<App>,
        work: impl FnOnce(&App) -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let app = self.clone();
        let request = abandon::REQUEST.try_with(Arc::clone).ok();
        let done = tokio::task::spawn_blocking(move || abandon::during(request, || work(&app))).await;
        done.unwrap_or_else(|error| Err(ApiError::internal(&error)))
    }

    /// The number and the engine of the model that a project uses.
    pub fn engine_of(&self, project: i64) -> ApiResult<(i64, Arc<dyn Engine>)> {
        let model = self.store.read(|connection| projects::model(connection, project))?.unwrap_or(self.base_model);
        Ok((model, self.engine_of_model(model)?))
    }

    /// Where a model lies: in the folder of data, which may be a copy that stands elsewhere than when the model was made.
    pub fn model_path(&self, kept: &Path) -> PathBuf {
        let here = kept.file_name().map(|name| self.config.data.join(MODELS).join(name));
        here.filter(|here| here.is_dir()).unwrap_or_else(|| kept.to_owned())
    }

    /// The engine of the model that a project uses, for somebody who sees the project; that of the server where none is named.
    pub async fn engine_for(self: &Arc<App>, person: Person, project: Option<i64>) -> ApiResult<Arc<dyn Engine>> {
        let Some(project) = project else { return Ok(self.engine.clone()) };
        self.blocking(move |app| {
            app.store.read(|connection| members::check(connection, &person, Named::Project(project)))?;
            Ok(app.engine_of(project)?.1)
        })
        .await
    }

    /// A model is not used any more.
    pub fn forget_model(&self, model: i64) {
        self.engines().remove(&model);
    }

    /// The engine of a model.
    pub fn engine_of_model(&self, model: i64) -> ApiResult<Arc<dyn Engine>> {
        if let Some(engine) = self.engines().get(&model) {
            return Ok(engine.clone());
        }
        let kept = self.store.read(|connection| models::get(connection, model))?;
        let engine = match (&kept.folder, &self.trainer) {
            // A model of an earlier start has no folder of its own; that of this start takes its place.
            (None, _) => self.engine.clone(),
            (Some(folder), Some(trainer)) => trainer.open(&self.model_path(folder)).map_err(|error| {
                let hint = "use an older model of the project";
                ApiError::unavailable(format!("the model {} cannot be opened: {error}", kept.model.name)).hint(hint)
            })?,
            (Some(_), None) => {
                let hint = "use the model of the server in this project";
                return Err(ApiError::unavailable("this server cannot open trained models").hint(hint));
            }
        };
        let mut engines = self.engines();
        // Models are large: the last one that was asked for stays.
        engines.clear();
        engines.insert(model, engine.clone());
        Ok(engine)
    }

    fn engines(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<dyn Engine>>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The places of a document of which people said different things.
    pub fn places_of(&self, connection: &Connection, (document, version): (i64, i64)) -> ApiResult<Arc<Vec<Place>>> {
        let known = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, places)) = known().get(&document)
            && *of == version
        {
            return Ok(places.clone());
        }
        let places = Arc::new(places(&events::of_document(connection, document)?));
        known().insert(document, (version, places.clone()));
        Ok(places)
    }

    /// Ends what does not end by itself: jobs and streams of events.
    pub fn stop(&self) {
        self.runner.stop();
        self.stopping.send_replace(true);
    }

    /// Tells when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}
