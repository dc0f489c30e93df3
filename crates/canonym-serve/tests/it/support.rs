//! A server in a folder that vanishes, an engine that finds what it is told to, and requests.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, Response, StatusCode, header};
use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use canonym_core::eval::learned::{Learned, Role, TrainingSource, fingerprint};
use canonym_core::kb::format::Meta;
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
use canonym_core::link::explain::Explanation;
use canonym_core::link::{Candidate, Link};
use canonym_core::text::Span;
use canonym_serve::times::Clock;
use canonym_serve::{App, Engine, LinkOptions, ServeConfig, Trainer};
use serde_json::{Value, json};
use tower::ServiceExt;

/// Id, preferred name, another name, type and parent of a concept; empty where there is none.
type Row = [&'static str; 5];

/// A small terminology; ids have their prefix added, as those of MeSH do.
pub fn kb() -> KnowledgeBase {
    KnowledgeBase::from_vec(kb_bytes(), "test").unwrap()
}

/// Its file.
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

/// What the engine says of a word wherever it stands: how sure it is of the place, and concepts with scores.
pub type Rule = (&'static str, f32, Vec<(&'static str, f32)>);

/// A door that can be shut in front of the engine.
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

/// An engine that follows rules, and notes how many documents it was given at a time.
pub struct Ruled {
    kb: KnowledgeBase,
    name: String,
    pub rules: Mutex<Vec<Rule>>,
    pub gate: Gate,
    pub batches: Mutex<Vec<usize>>,
    /// Texts that it says it was trained on.
    pub trained_on: Mutex<Vec<String>>,
}

impl Ruled {
    pub fn new(name: &str, rules: Vec<Rule>) -> Arc<Ruled> {
        Ruled::on(kb(), name, rules)
    }

    pub fn on(kb: KnowledgeBase, name: &str, rules: Vec<Rule>) -> Arc<Ruled> {
        Arc::new(Ruled {
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
            .map(|(id, score)| CandidateRecord { id: (*id).to_owned(), name: name(id), score: *score })
            .collect()
    }
}

impl Engine for Ruled {
    fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn learned(&self) -> canonym_core::Result<Learned> {
        let texts = self.trained_on.lock().unwrap();
        let prints = texts.iter().filter_map(|text| fingerprint(text));
        let mut learned = Learned::default();
        learned.add(TrainingSource::new("rules", Role::Trained, "train.jsonl", prints));
        Ok(learned)
    }

    fn link(
        &self,
        mut documents: Vec<AnnotatedDocument>,
        _: &LinkOptions,
    ) -> canonym_core::Result<Vec<AnnotatedDocument>> {
        self.batches.lock().unwrap().push(documents.len());
        self.gate.pass();
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

    fn map(&self, names: &[String], _: usize) -> canonym_core::Result<Vec<Link>> {
        let link = |name: &String| match canonym_core::kb::search::search(&self.kb, name, 1).first() {
            Some(hit) => {
                Link { candidates: vec![Candidate { concept: hit.concept, name: None, p_link: 0.9 }], nil: false }
            }
            None => Link { candidates: Vec::new(), nil: true },
        };
        Ok(names.iter().map(link).collect())
    }
}

/// The rules that most tests start with: the vectors of the published confidence.
pub fn rules() -> Vec<Rule> {
    vec![
        ("delirium", 0.90, vec![("T:2", 0.81), ("T:3", 0.79)]),
        ("confused", 0.60, vec![("T:3", 0.95), ("T:2", 0.40)]),
        ("pepcid", 0.50, vec![("T:5", 0.50)]),
    ]
}

/// A server and how it is asked.
pub struct Server {
    pub app: Arc<App>,
    pub router: Router,
    pub headers: Vec<(&'static str, String)>,
}

/// A time that goes on by a second each time it is asked for.
pub fn clock() -> Clock {
    let now = AtomicI64::new(1_700_000_000_000);
    Clock::of(move || now.fetch_add(1000, Ordering::Relaxed))
}

/// A folder that its owner alone may read, and an empty database for nobody else.
pub fn private(folder: &Path) {
    canonym_serve::store::folder::prepare(folder).unwrap();
}

pub fn config(folder: &Path) -> ServeConfig {
    ServeConfig { clock: clock(), runs_jobs: false, ..ServeConfig::new(folder) }
}

impl Server {
    pub fn new(folder: &Path) -> Server {
        Server::with(Ruled::new("first", rules()), None, config(folder))
    }

    /// A server for which no time passes.
    pub fn at_one_time(folder: &Path) -> Server {
        let config = ServeConfig { clock: Clock::of(|| 1_700_000_000_000), ..config(folder) };
        Server::with(Ruled::new("first", rules()), None, config)
    }

    pub fn with(engine: Arc<dyn Engine>, trainer: Option<Arc<dyn Trainer>>, config: ServeConfig) -> Server {
        let app = canonym_serve::open(engine, trainer, config).unwrap();
        let router = canonym_serve::api::router(&app);
        Server { app, router, headers: vec![("x-canonym", "1".to_owned())] }
    }

    /// The same server asked with other headers.
    pub fn asked_with(&self, headers: &[(&'static str, &str)]) -> Server {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Server { app: self.app.clone(), router: self.router.clone(), headers }
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

    async fn ask(&self, method: Method, path: &str, body: impl Into<Body>) -> (StatusCode, Value) {
        let response = self.send(method, &format!("/api/v1{path}"), body).await;
        let status = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let value = serde_json::from_slice(&bytes);
        (status, value.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask(Method::GET, path, Body::empty()).await;
        assert!(status.is_success(), "GET {path}: {status} {value}");
        value
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.ask(Method::POST, path, body.to_string()).await;
        assert!(status.is_success(), "POST {path} {body}: {status} {value}");
        value
    }

    pub async fn patch(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.ask(Method::PATCH, path, body.to_string()).await;
        assert!(status.is_success(), "PATCH {path}: {status} {value}");
        value
    }

    pub async fn delete(&self, path: &str) -> Value {
        let (status, value) = self.ask(Method::DELETE, path, Body::empty()).await;
        assert!(status.is_success(), "DELETE {path}: {status} {value}");
        value
    }

    /// The status of a request that fails, and its error, whose form is checked.
    pub async fn fail(&self, method: Method, path: &str, body: impl Into<Body>) -> (u16, Value) {
        let shown = format!("{method} {path}");
        let (status, value) = self.ask(method, path, body).await;
        assert!(status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE, "{shown}: {status} {value}");
        let error = &value["error"];
        assert!(error["code"].is_string() && error["message"].is_string(), "{shown}: {value}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && !message.ends_with('.'), "{shown}: {message}");
        (status.as_u16(), value)
    }

    /// A project with documents of PubTator, whose annotations are GOLD.
    pub async fn project(&self, pubtator: &str) -> i64 {
        let project = self.empty_project().await;
        self.import(project, "format=pubtator&annotations=gold", pubtator.as_bytes()).await;
        project
    }

    pub async fn empty_project(&self) -> i64 {
        self.post("/projects", json!({"name": "Test"})).await["id"].as_i64().unwrap()
    }

    /// Imports a file; the report.
    pub async fn import(&self, project: i64, query: &str, bytes: &[u8]) -> Value {
        let (status, report) =
            self.ask(Method::POST, &format!("/projects/{project}/import?{query}"), bytes.to_vec()).await;
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

    /// Decides on what stands there now.
    /// Finishing says how many open predictions it accepts, as the page does.
    pub async fn decide(&self, id: i64, mut decision: Value) -> Value {
        let document = self.document(id).await;
        if decision["kind"] == "finish" && decision["value"] == true && decision["accepts"].is_null() {
            let is_open = |mark: &&Value| mark["source"] == "PRED" && mark["state"] == "open";
            decision["accepts"] = document["marks"].as_array().unwrap().iter().filter(is_open).count().into();
        }
        let body = json!({"version": document["version"], "decisions": [decision]});
        self.post(&format!("/documents/{id}/decisions"), body).await
    }

    /// Makes everybody who has an account a member of a project.
    pub async fn let_all_in(&self, project: i64) {
        for person in self.get("/people").await["people"].as_array().unwrap() {
            self.post(&format!("/projects/{project}/people"), json!({"id": person["id"]})).await;
        }
    }

    /// Runs the jobs that wait.
    pub async fn run_jobs(&self) {
        let app = self.app.clone();
        tokio::task::spawn_blocking(move || while canonym_serve::jobs::run_next(&app) {}).await.unwrap();
    }

    /// Starts a prediction and runs it.
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
pub fn shown(document: &Value) -> Vec<String> {
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

/// The number of the mark of a text.
pub fn mark_of(document: &Value, text: &str) -> i64 {
    let marks = document["marks"].as_array().unwrap();
    let mark = marks.iter().find(|mark| mark["text"] == text).unwrap_or_else(|| panic!("no mark {text}: {document}"));
    mark["id"].as_i64().unwrap()
}
