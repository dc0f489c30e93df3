//! A server in a temporary folder, an engine that follows rules, and requests.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use canonym_core::eval::learned::{Fingerprints, Learned, Role, TrainingSource};
use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::explain::Explanation;
use canonym_core::link::{Candidate, Link};
use canonym_core::text::Span;
use canonym_serve::times::Clock;
use canonym_serve::{App, Engine, LinkOptions, Mentions, ServeConfig, Trainer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// Three documents: with an emoji and a combining mark, with a nested mention, and with a mention without concept.
pub const CORPUS: &str = "1|t|🧪 Famotidine-associated de\u{301}lire.
1|a|She had delirium and was confused.
1\t2\t12\tFamotidine\tChemical\tT:5

2|t|Breast cancer cells.
2|a|Nothing of pepcid.
2\t0\t13\tBreast cancer\tDisorder\t6
2\t7\t13\tcancer\tDisorder\t6

3|t|A new syndrome.
3|a|The syndrome is unknown.
3\t6\t14\tsyndrome\tDisorder\t-1

";

/// ID, preferred name, synonym, type and parent of a concept; empty if there is none.
type Row = [&'static str; 5];

/// A small terminology, whose IDs have an added prefix like those of MeSH.
pub fn kb() -> KnowledgeBase {
    KnowledgeBase::from_vec(kb_bytes(), "test").unwrap()
}

/// Its compiled file.
pub fn kb_bytes() -> Vec<u8> {
    let rows: [Row; 6] = [
        ["T:1", "Mental disorder", "", "Disorder", ""],
        ["T:2", "Delirium", "acute confusional state", "Disorder", "T:1"],
        ["T:3", "Confusion", "confused state", "Disorder", "T:1"],
        ["T:4", "Emergence Delirium", "", "Disorder", "T:2"],
        ["T:5", "Famotidine", "pepcid", "Chemical", ""],
        ["T:6", "Breast cancer", "mammary cancer", "Disorder", ""],
    ];
    let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    let mut builder = KnowledgeBaseBuilder::new();
    for [id, preferred, other, kind, parent] in rows {
        let name = |(text, scope): (String, Scope)| NameRecord { text, scope };
        let others = list(other).into_iter().map(|text| (text, Scope::Exact));
        let record = ConceptRecord {
            id: id.to_owned(),
            names: [(preferred.to_owned(), Scope::Preferred)].into_iter().chain(others).map(name).collect(),
            types: list(kind),
            definition: (id == "T:2").then(|| "A state of being confused.".to_owned()),
            parents: list(parent),
            ..ConceptRecord::default()
        };
        builder.add(record).unwrap();
    }
    let meta = Meta { name: "test".to_owned(), added_prefixes: vec!["T".to_owned()], ..Meta::default() };
    builder.to_bytes(meta).unwrap()
}

/// A word that the engine finds wherever it occurs, the score of the mention, and concepts with scores.
pub type Rule = (&'static str, f32, Vec<(&'static str, f32)>);

/// Blocks the engine while it is shut.
#[derive(Default)]
pub struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    pub fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let _open = self.changed.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap();
    }
}

/// An engine that follows rules and records the size of each batch.
pub struct RuleEngine {
    kb: KnowledgeBase,
    name: String,
    pub rules: Mutex<Vec<Rule>>,
    pub gate: Gate,
    pub batches: Mutex<Vec<usize>>,
    /// Texts that it claims to be trained on.
    pub trained_on: Mutex<Vec<String>>,
}

impl RuleEngine {
    pub fn new(name: &str, rules: Vec<Rule>) -> Arc<RuleEngine> {
        RuleEngine::on(kb(), name, rules)
    }

    pub fn on(kb: KnowledgeBase, name: &str, rules: Vec<Rule>) -> Arc<RuleEngine> {
        Arc::new(RuleEngine {
            kb,
            name: name.to_owned(),
            rules: Mutex::new(rules),
            gate: Gate::default(),
            batches: Mutex::default(),
            trained_on: Mutex::default(),
        })
    }

    fn annotate(&self, document: &mut AnnotatedDocument) {
        let text = document.document.text.clone();
        assert!(!text.contains("PANIC"), "a text asks the engine to panic");
        let mut found = Vec::new();
        for (word, score, concepts) in self.rules.lock().unwrap().iter() {
            found.extend(text.match_indices(word).map(|(start, word)| Annotation {
                spans: vec![Span::new(start, start + word.len())],
                text: word.to_owned(),
                semantic_type: "Disorder".to_owned(),
                score: Some(*score),
                p_mention: Some(*score),
                nil: concepts.is_empty(),
                candidates: self.records(concepts),
                ..Annotation::default()
            }));
        }
        found.sort_by_key(|one| one.spans[0]);
        document.annotations = found;
    }

    fn records(&self, concepts: &[(&str, f32)]) -> Vec<CandidateRecord> {
        let name = |id: &str| self.kb.preferred_name(self.kb.find(id).unwrap()).to_owned();
        concepts
            .iter()
            .map(|(id, score)| CandidateRecord { id: (*id).to_owned(), name: name(id), p_link: *score, p_both: None })
            .collect()
    }
}

impl Engine for RuleEngine {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn learned(&self) -> canonym_core::Result<Learned> {
        let texts = self.trained_on.lock().unwrap();
        let prints = texts.iter().map(|text| Fingerprints::of_text(text));
        let mut learned = Learned::default();
        learned.add(TrainingSource::new("rules", Role::Trained, "train.jsonl", prints));
        Ok(learned)
    }

    fn link(
        &self,
        mut documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        self.batches.lock().unwrap().push(documents.len());
        self.gate.pass();
        if options.mentions == Mentions::Given {
            return self.link_mentions(documents, options.top_k);
        }
        documents.iter_mut().for_each(|document| self.annotate(document));
        Ok(documents)
    }

    fn explain(
        &self,
        documents: Vec<AnnotatedDocument>,
        options: &LinkOptions,
    ) -> canonym_core::Result<Vec<(AnnotatedDocument, Vec<Explanation>)>> {
        Ok(self.link(documents, options)?.into_iter().map(|document| (document, Vec::new())).collect())
    }

    fn link_mentions(
        &self,
        mut documents: Vec<AnnotatedDocument>,
        _: usize,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        for annotation in documents.iter_mut().flat_map(|document| &mut document.annotations) {
            let concepts =
                if self.name == "second" { [("T:3", 0.6)].as_slice() } else { &[("T:4", 0.7), ("T:2", 0.2)] };
            annotation.candidates = self.records(concepts);
        }
        Ok(documents)
    }

    fn map(&self, names: &[String], _: &LinkOptions) -> canonym_core::Result<Vec<Link>> {
        let link = |name: &String| match canonym_core::kb::search::search(&self.kb, name, 1).first() {
            Some(hit) => {
                Link { candidates: vec![Candidate { concept: hit.concept, name: None, p_link: 0.9 }], nil: false }
            }
            None => Link { candidates: Vec::new(), nil: true },
        };
        Ok(names.iter().map(link).collect())
    }

    fn explain_names(&self, names: &[String], options: &LinkOptions) -> canonym_core::Result<Vec<(Link, Explanation)>> {
        let explanation = |name: &String| Explanation { compared: name.clone(), ..Explanation::default() };
        Ok(self.map(names, options)?.into_iter().zip(names.iter().map(explanation)).collect())
    }
}

/// The rules of most tests: the scores of the published example of confidence.
pub fn rules() -> Vec<Rule> {
    vec![
        ("delirium", 0.90, vec![("T:2", 0.81), ("T:3", 0.79)]),
        ("confused", 0.60, vec![("T:3", 0.95), ("T:2", 0.40)]),
        ("pepcid", 0.50, vec![("T:5", 0.50)]),
    ]
}

/// A server, and the headers of requests to it.
pub struct Server {
    pub app: Arc<App>,
    pub router: Router,
    pub headers: Vec<(&'static str, String)>,
    /// Removed with the last server that uses it; `None` if the test owns the folder.
    folder: Option<Arc<TempDir>>,
}

/// A clock that advances by a second each time it is read.
pub fn clock() -> Clock {
    let now = AtomicI64::new(1_700_000_000_000);
    Clock::from_fn(move || now.fetch_add(1000, Ordering::Relaxed))
}

/// Creates a data folder with an empty database, readable by its owner only.
pub fn create_data_folder(folder: &Path) {
    canonym_serve::store::folder::prepare(folder).unwrap();
}

pub fn config(folder: &Path) -> ServeConfig {
    ServeConfig { clock: clock(), runs_jobs: false, ..ServeConfig::new(folder) }
}

/// Opens a data folder with the usual engine.
pub fn open(config: ServeConfig) -> canonym_core::Result<Arc<App>> {
    canonym_serve::open(RuleEngine::new("first", rules()), None, config)
}

impl Server {
    pub fn new(folder: &Path) -> Server {
        Server::with_config(config(folder))
    }

    /// A server on a temporary folder.
    pub fn temporary() -> Server {
        Server::in_temporary_folder(Server::new)
    }

    /// A server on a temporary folder with other settings.
    pub fn configured(change: impl FnOnce(&mut ServeConfig)) -> Server {
        Server::in_temporary_folder(|folder| {
            let mut config = config(folder);
            change(&mut config);
            Server::with_config(config)
        })
    }

    /// A server on a temporary folder that is removed with it.
    pub fn in_temporary_folder(build: impl FnOnce(&Path) -> Server) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let server = build(folder.path());
        Server { folder: Some(Arc::new(folder)), ..server }
    }

    /// A server on a temporary folder with a project of [`CORPUS`], and the numbers of the project and its documents.
    pub async fn with_corpus() -> (Server, i64, [i64; 3]) {
        let server = Server::temporary();
        let (project, ids) = server.corpus().await;
        (server, project, ids)
    }

    /// The temporary folder.
    pub fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    /// A server whose clock stands still.
    pub fn with_stopped_clock() -> Server {
        Server::configured(|config| config.clock = Clock::from_fn(|| 1_700_000_000_000))
    }

    pub fn with_config(config: ServeConfig) -> Server {
        Server::with(RuleEngine::new("first", rules()), None, config)
    }

    pub fn with(engine: Arc<dyn Engine>, trainer: Option<Arc<dyn Trainer>>, config: ServeConfig) -> Server {
        let app = canonym_serve::open(engine, trainer, config).unwrap();
        let router = canonym_serve::api::router(&app);
        Server { app, router, headers: vec![("x-canonym", "1".to_owned())], folder: None }
    }

    /// The same server with other request headers.
    pub fn with_headers(&self, headers: &[(&'static str, &str)]) -> Server {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Server { app: self.app.clone(), router: self.router.clone(), headers, folder: self.folder.clone() }
    }

    pub async fn send(&self, method: Method, path: &str, body: impl Into<Body>) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !self.headers.iter().any(|(name, _)| *name == "host") {
            request = request.header(header::HOST, "127.0.0.1:7878");
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap()
    }

    async fn request(&self, method: Method, path: &str, body: impl Into<Body>) -> (StatusCode, Value) {
        let response = self.send(method, &format!("/api/v1{path}"), body).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let value = serde_json::from_slice(&bytes);
        (status, value.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, value) = self.request(Method::GET, path, Body::empty()).await;
        assert!(status.is_success(), "GET {path}: {status} {value}");
        value
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.request(Method::POST, path, body.to_string()).await;
        assert!(status.is_success(), "POST {path} {body}: {status} {value}");
        value
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.request(Method::PATCH, path, body.to_string()).await;
        assert!(status.is_success(), "PATCH {path}: {status} {value}");
        value
    }

    pub async fn delete(&self, path: &str) -> Value {
        let (status, value) = self.request(Method::DELETE, path, Body::empty()).await;
        assert!(status.is_success(), "DELETE {path}: {status} {value}");
        value
    }

    /// The status and body of a request that fails; the form of the error is checked.
    pub async fn fail(&self, method: Method, path: &str, body: impl Into<Body>) -> (u16, Value) {
        let mark_lines = format!("{method} {path}");
        let (status, value) = self.request(method, path, body).await;
        assert!(
            status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE,
            "{mark_lines}: {status} {value}"
        );
        let error = &value["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{mark_lines}: {value}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.ends_with('.'), "{mark_lines}: {message}");
        (status.as_u16(), value)
    }

    /// Adds a project with PubTator documents, whose annotations are GOLD.
    pub async fn project(&self, pubtator: &str) -> i64 {
        let project = self.empty_project().await;
        self.import(project, "format=pubtator&annotations=gold", pubtator.as_bytes()).await;
        project
    }

    /// Adds a project of [`CORPUS`]; the numbers of the project and its documents.
    pub async fn corpus(&self) -> (i64, [i64; 3]) {
        let project = self.project(CORPUS).await;
        (project, self.documents(project).await.try_into().unwrap())
    }

    pub async fn empty_project(&self) -> i64 {
        self.post("/projects", json!({"name": "Test"})).await["id"].as_i64().unwrap()
    }

    /// Imports a file; returns the report.
    pub async fn import(&self, project: i64, query: &str, bytes: &[u8]) -> Value {
        let (status, report) =
            self.request(Method::POST, &format!("/projects/{project}/import?{query}"), bytes.to_vec()).await;
        assert!(status.is_success(), "{report}");
        report
    }

    /// The bytes of an export.
    pub async fn export(&self, project: i64, query: &str) -> Vec<u8> {
        let path = format!("/api/v1/projects/{project}/export?{query}");
        let response = self.send(Method::GET, &path, Body::empty()).await;
        assert!(response.status().is_success(), "{path}: {}", response.status());
        to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()
    }

    /// The numbers of the documents of a project, in order.
    pub async fn documents(&self, project: i64) -> Vec<i64> {
        let list = self.get(&format!("/projects/{project}/documents")).await;
        list["documents"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
    }

    pub async fn document(&self, id: i64) -> Value {
        self.get(&format!("/documents/{id}")).await
    }

    /// Decides on the current version. Finishing gives the number of open predictions that it accepts, as the page does.
    pub async fn decide(&self, id: i64, mut decision: Value) -> Value {
        let document = self.document(id).await;
        if decision["kind"] == "finish" && decision["value"] == true && decision["accepts"].is_null() {
            let is_open = |mark: &&Value| mark["source"] == "PRED" && mark["state"] == "open";
            decision["accepts"] = document["marks"].as_array().unwrap().iter().filter(is_open).count().into();
        }
        let body = json!({"version": document["version"], "decisions": [decision]});
        self.post(&format!("/documents/{id}/decisions"), body).await
    }

    /// Makes all accounts members of a project.
    pub async fn add_all_members(&self, project: i64) {
        for person in self.get("/people").await["people"].as_array().unwrap() {
            self.post(&format!("/projects/{project}/people"), json!({"id": person["id"]})).await;
        }
    }

    /// Runs the queued jobs.
    pub async fn run_jobs(&self) {
        let app = self.app.clone();
        tokio::task::spawn_blocking(move || while canonym_serve::jobs::run_next(&app) {}).await.unwrap();
    }

    /// Adds a prediction job and runs it.
    pub async fn predict(&self, project: i64) -> Value {
        let job = self.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
        assert_eq!(job["state"], "QUEUED");
        self.run_jobs().await;
        self.get(&format!("/jobs/{}", job["id"])).await
    }

    pub async fn text(&self, path: &str) -> String {
        let response = self.send(Method::GET, &format!("/api/v1{path}"), Body::empty()).await;
        assert!(response.status().is_success(), "{path}: {}", response.status());
        String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap()
    }
}

/// Marks as lines: source, state, spans, text, concept.
pub fn mark_lines(document: &Value) -> Vec<String> {
    let line = |mark: &Value| {
        let concept = match mark["concept"]["id"].as_str() {
            Some(id) => id.to_owned(),
            None if mark["is_nil"] == true => "NIL".to_owned(),
            None => "?".to_owned(),
        };
        let word = |name: &str| mark[name].as_str().unwrap().to_owned();
        format!("{} {} {} {} {concept}", word("source"), word("state"), mark["spans"], word("text"))
    };
    document["marks"].as_array().unwrap().iter().map(line).collect()
}

/// The number of the mark with this text.
pub fn mark_of(document: &Value, text: &str) -> i64 {
    let marks = document["marks"].as_array().unwrap();
    let mark = marks.iter().find(|mark| mark["text"] == text).unwrap_or_else(|| panic!("no mark {text}: {document}"));
    mark["id"].as_i64().unwrap()
}
