//! Predictions and trainings: progress, success, failure with its reason, and cancelling.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::http::Method;
use canonym_serve::engine::{CurvePoint, DevFigures, Progress, Trained, Training, TrainingDocument, TrainingPlan};
use canonym_serve::{Engine, Trainer};
use serde_json::{Value, json};

use crate::support::{CORPUS, RuleEngine, Server, config, mark_lines, mark_of, rules};

/// A trainer that behaves as configured and records the mentions that it was given.
#[derive(Default)]
struct StubTrainer {
    fails: bool,
    /// The documents that are held out, by their ids.
    holds_out: Vec<&'static str>,
    /// Called between two steps.
    between: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    given: Mutex<Vec<String>>,
}

impl Trainer for StubTrainer {
    fn train(
        &self,
        training: &Training,
        on_progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> canonym_core::Result<Trained> {
        let marks = training.documents.iter().flat_map(|one| &one.document.annotations);
        *self.given.lock().unwrap() = marks.map(|one| format!("{} {}", one.text, one.ids.join("|"))).collect();
        for step in 1..=2 {
            let point = Some(CurvePoint { step, loss: 1.0 / step as f64, dev: None });
            let progress = Progress { done: step as f64 / 2.0, message: format!("step {step}"), point };
            if on_progress(progress).is_break() {
                return Err(canonym_core::Error::invalid("it was told to stop"));
            }
            if let Some(between) = self.between.lock().unwrap().take() {
                between();
            }
        }
        if self.fails {
            return Err(canonym_core::Error::invalid("two marks are too few to learn from").with_hint("decide on more"));
        }
        std::fs::create_dir(&training.output).unwrap();
        std::fs::write(training.output.join("model.bin"), "the weights").unwrap();
        let dev = Some(DevFigures {
            strict_f1: Some(0.5),
            spans_f1: Some(0.6),
            accuracy: Some(0.7),
            ..DevFigures::default()
        });
        Ok(Trained { name: "second".to_owned(), card: "Made of two steps.".to_owned(), dev })
    }

    fn plan(&self, documents: &[TrainingDocument], settings: &Value) -> canonym_core::Result<TrainingPlan> {
        if settings.as_object().is_some_and(|settings| settings.contains_key("speed")) {
            return Err(canonym_core::Error::invalid("these settings are not known: speed").with_hint("set `steps`"));
        }
        Ok(TrainingPlan {
            n_complete: documents.iter().filter(|one| one.is_finished).count(),
            n_incomplete: documents.iter().filter(|one| !one.is_finished).count(),
            steps: settings["steps"].as_u64().unwrap_or(60),
            hold_out: settings["hold_out"].as_u64().unwrap_or(5) as usize,
            ..TrainingPlan::default()
        })
    }

    fn held_out(&self, documents: &[TrainingDocument], _: &Value) -> canonym_core::Result<Vec<bool>> {
        let is_held_out = |one: &TrainingDocument| self.holds_out.contains(&one.document.document.id.as_str());
        Ok(documents.iter().map(is_held_out).collect())
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join("model.bin")
    }

    fn open(&self, folder: &Path) -> canonym_core::Result<Arc<dyn Engine>> {
        assert!(folder.is_dir());
        Ok(RuleEngine::new("second", vec![("delirium", 0.9, vec![("T:4", 0.9)]), ("unknown", 0.9, vec![])]))
    }
}

fn with_trainer(trainer: StubTrainer) -> (Server, Arc<StubTrainer>) {
    let trainer = Arc::new(trainer);
    (with_models(RuleEngine::new("first", rules()), Some(trainer.clone())), trainer)
}

fn with_models(engine: Arc<RuleEngine>, trainer: Option<Arc<dyn Trainer>>) -> Server {
    Server::in_temporary_folder(|folder| Server::with(engine, trainer, config(folder)))
}

#[tokio::test]
async fn model_is_trained_on_reviewed_marks_used_and_rolled_back() {
    let (server, trainer) = with_trainer(StubTrainer::default());
    let (project, ids) = server.corpus().await;
    server.predict(project).await;
    let predicted = server.document(ids[0]).await;
    server.decide(ids[0], json!({"kind": "accept", "mark": mark_of(&predicted, "delirium")})).await;
    let cancer = mark_of(&server.document(ids[1]).await, "cancer");
    server.decide(ids[1], json!({"kind": "reject", "mark": cancer})).await;
    let job =
        server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train", "settings": {"steps": 2}})).await;
    server.run_jobs().await;
    let job = server.get(&format!("/jobs/{}", job["id"])).await;
    assert_eq!(
        (&job["state"], &job["message"]),
        (
            &json!("SUCCEEDED"),
            &json!(
                "trained “second (training 2)”; offered, not used: it has no scores, because no documents were held out"
            )
        )
    );
    assert_eq!(job["curve"], json!([{"step": 1, "loss": 1.0, "dev": null}, {"step": 2, "loss": 0.5, "dev": null}]));
    // Open predictions and rejected marks are not trained on.
    let given = trainer.given.lock().unwrap().clone();
    assert_eq!(given, ["Famotidine T:5", "delirium T:2", "Breast cancer 6", "syndrome -1"]);

    let model = job["model"].as_i64().unwrap();
    let models = server.get(&format!("/models?project={project}")).await;
    assert_eq!((&models["models"][0]["is_current"], &models["models"][1]["is_current"]), (&json!(true), &json!(false)));
    server.post(&format!("/projects/{project}/models/{model}/use"), json!({})).await;
    let settings = job["settings"].clone();
    let job = server.predict(project).await;
    let models = server.get(&format!("/models?project={project}")).await;
    assert_eq!((&models["models"][0]["is_current"], &models["models"][1]["is_current"]), (&json!(false), &json!(true)));
    assert_eq!(
        (&models["models"][1]["parent"], &models["models"][1]["dev"]["strict_f1"]),
        (&models["models"][0]["id"], &json!(0.5))
    );
    assert_eq!(models["models"][1]["id"], json!(model));
    // The accepted mark stays, and the new model contradicts it.
    let document = server.document(ids[0]).await;
    assert_eq!(
        mark_lines(&document),
        [
            "GOLD accepted [[2,12]] Famotidine T:5",
            "USER accepted [[41,49]] delirium T:2",
            "PRED open [[41,49]] delirium T:4"
        ]
    );
    assert_eq!(document["marks"][1]["disagrees"], json!([document["marks"][2]["id"]]));
    assert_eq!(document["marks"][2]["disagrees"], json!([document["marks"][1]["id"]]));
    let changes = server.get(&format!("/projects/{project}/changes?from={}", job["id"])).await;
    let row = |at: usize| {
        let row = &changes["documents"][at];
        (
            row["external_id"].as_str().unwrap().to_owned(),
            row["added"].clone(),
            row["removed"].clone(),
            row["changed"].clone(),
        )
    };
    assert_eq!(row(0), ("1".to_owned(), json!(1), json!(1), json!(0)));
    assert_eq!((&changes["model_before"], &changes["model_after"]), (&json!("first"), &json!("second (training 2)")));
    assert_eq!(row(2), ("3".to_owned(), json!(1), json!(0), json!(0)));
    assert_eq!(settings, json!({"steps": 2}));
    // The changed marks, with the names of both models.
    let path = |id: i64| format!("/documents/{id}/changes?from={}", job["id"]);
    let changed = server.get(&path(ids[0])).await;
    assert_eq!((&changed["model_before"], &changed["model_after"]), (&json!("first"), &json!("second (training 2)")));
    let lines: Vec<String> = changed["marks"].as_array().unwrap().iter().map(changed_line).collect();
    assert_eq!(lines, ["added [[41,49]] delirium: - > T:4 0.9", "removed [[58,66]] confused: T:3 0.6 > -"]);
    assert_eq!(changed["sections"][0]["kind"], "title");
    assert_eq!(server.get(&format!("/documents/{}/changes?from=999", ids[0])).await["marks"], json!([]));
    assert_eq!(server.fail(Method::GET, &format!("/documents/{}/changes", ids[0]), "").await.0, 400);

    let first = models["models"][0]["id"].as_i64().unwrap();
    server.post(&format!("/projects/{project}/models/{first}/use"), json!({})).await;
    let back = server.predict(project).await;
    assert!(!mark_lines(&server.document(ids[0]).await).iter().any(|mark| mark.contains("T:4")));
    // Each run keeps the names of the models that it compares, whichever is in use now.
    for (run, before, after) in [(&job, "first", "second (training 2)"), (&back, "second (training 2)", "first")] {
        let changes = server.get(&format!("/projects/{project}/changes?from={}", run["id"])).await;
        assert_eq!((&changes["model_before"], &changes["model_after"]), (&json!(before), &json!(after)));
    }
    let stats = server.get(&format!("/projects/{project}/stats")).await;
    assert_eq!(stats["models"][1]["dev"]["accuracy"], 0.7);
}

/// A changed mark as a line.
fn changed_line(mark: &Value) -> String {
    let side = |side: &Value| match side {
        Value::Null => "-".to_owned(),
        side => format!("{} {}", side["concept"]["id"].as_str().unwrap_or("NIL"), side["score"]),
    };
    let word = |name: &str| mark[name].as_str().unwrap().to_owned();
    format!(
        "{} {} {}: {} > {}",
        word("change"),
        mark["spans"],
        word("text"),
        side(&mark["before"]),
        side(&mark["after"])
    )
}

#[tokio::test]
async fn relinked_mention_is_reported_with_both_concepts() {
    let engine = RuleEngine::new("first", rules());
    let server = with_models(engine.clone(), None);
    let (project, [id, ..]) = server.corpus().await;
    server.predict(project).await;
    *engine.rules.lock().unwrap() = vec![("delirium", 0.5, vec![("T:4", 0.9)]), ("confused", 0.7, vec![("T:3", 0.9)])];
    let job = server.predict(project).await;
    let changed = server.get(&format!("/documents/{id}/changes?from={}", job["id"])).await;
    let lines: Vec<String> = changed["marks"].as_array().unwrap().iter().map(changed_line).collect();
    assert_eq!(lines, ["relinked [[41,49]] delirium: T:2 0.9 > T:4 0.5"]);
    assert_eq!(changed["n_same"], 1);
}

#[tokio::test]
async fn training_plan_counts_documents_and_steps() {
    let (server, _) = with_trainer(StubTrainer::default());
    let project = server.project(&format!("{CORPUS}4|t|Nothing here.\n4|a|\n\n")).await;
    let plan = server.get(&format!("/projects/{project}/training?steps=120&hold_out=3")).await;
    assert_eq!(
        (&plan["n_complete"], &plan["n_incomplete"], &plan["steps"], &plan["hold_out"]),
        (&json!(3), &json!(1), &json!(120), &json!(3))
    );
    assert_eq!(server.get(&format!("/projects/{project}/training")).await["steps"], 60);
    let path = format!("/projects/{project}/jobs");
    let (status, answer) =
        server.fail(Method::POST, &path, json!({"kind": "train", "settings": {"speed": 9}}).to_string()).await;
    assert_eq!((status, &answer["error"]["hint"]), (400, &json!("set `steps`")));
    let (other, project, _) = Server::with_corpus().await;
    assert_eq!(other.fail(Method::GET, &format!("/projects/{project}/training"), "").await.0, 400);
}

#[tokio::test]
async fn document_imported_with_predictions_only_is_not_complete() {
    let (server, trainer) = with_trainer(StubTrainer::default());
    let project = server.project(CORPUS).await;
    server.predict(project).await;
    for format in ["jsonl", "pubtator", "texoo"] {
        let again = server.empty_project().await;
        let predicted = server.export(project, &format!("format={format}&sources=pred")).await;
        server.import(again, &format!("format={format}"), &predicted).await;
        let id = server.documents(again).await[0];
        let delirium = mark_of(&server.document(id).await, "delirium");
        server.decide(id, json!({"kind": "accept", "mark": delirium})).await;
        let plan = server.get(&format!("/projects/{again}/training")).await;
        assert_eq!((&plan["n_complete"], &plan["n_incomplete"]), (&json!(0), &json!(3)), "{format}");
        server.post(&format!("/projects/{again}/jobs"), json!({"kind": "train"})).await;
        server.run_jobs().await;
        assert_eq!(*trainer.given.lock().unwrap(), ["delirium T:2"], "{format}");
    }
}

#[tokio::test]
async fn finished_documents_get_no_new_predictions() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
    server.decide(id, json!({"kind": "finish", "value": true})).await;
    let job = server.predict(project).await;
    assert_eq!(job["message"], "predicted 2 documents; 1 changed");
    assert_eq!(mark_lines(&server.document(id).await), ["GOLD accepted [[2,12]] Famotidine T:5"]);
}

#[tokio::test]
async fn document_finished_during_prediction_gets_no_predictions() {
    let engine = RuleEngine::new("first", rules());
    let server = with_models(engine.clone(), None);
    let (project, [finished, open, _]) = server.corpus().await;
    engine.gate.set(true);
    let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    let app = server.app.clone();
    let running = tokio::task::spawn_blocking(move || canonym_serve::jobs::run_next(&app));
    while engine.batches.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    // The engine has the texts of all documents, and holds them until the gate opens.
    server.decide(finished, json!({"kind": "finish", "value": true})).await;
    engine.gate.set(false);
    assert!(running.await.unwrap());
    let job = server.get(&format!("/jobs/{}", job["id"])).await;
    assert_eq!((&job["state"], &job["message"]), (&json!("SUCCEEDED"), &json!("predicted 3 documents; 1 changed")));
    let document = server.document(finished).await;
    assert_eq!(document["is_finished"], true);
    assert_eq!(mark_lines(&document), ["GOLD accepted [[2,12]] Famotidine T:5"]);
    assert!(mark_lines(&server.document(open).await).contains(&"PRED open [[32,38]] pepcid T:5".to_owned()));
}

#[tokio::test]
async fn models_are_compared_on_the_same_documents_and_a_worse_one_is_not_used() {
    let (server, _) = with_trainer(StubTrainer { holds_out: vec!["1", "2"], ..StubTrainer::default() });
    let corpus = "1|t|She had delirium.\n1|a|\n1\t8\t16\tdelirium\tDisorder\tT:2\n\n2|t|No pepcid here.\n2|a|\n2\t3\t9\tpepcid\tDrug\tT:5\n\n3|t|Pain.\n3|a|\n3\t0\t4\tPain\tX\t-1\n\n";
    let project = server.project(corpus).await;
    let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
    server.run_jobs().await;
    let job = server.get(&format!("/jobs/{}", job["id"])).await;
    assert_eq!(
        job["message"],
        "trained “second (training 1)”; offered, not used: it is not better (linking F1 0.00 [0.00, 0.00], “first” 1.00 [1.00, 1.00], on 2 held-out documents)"
    );
    let models = server.get(&format!("/models?project={project}")).await;
    let (first, second) = (&models["models"][0], &models["models"][1]);
    assert_eq!((&first["is_current"], &second["is_current"]), (&json!(true), &json!(false)));
    let same = |value: f64| json!({"low": value, "high": value});
    let expected = json!({
        "strict_f1": 1.0, "spans_f1": 1.0, "accuracy": 0.0, "n_documents": 2, "test_set": second["dev"]["test_set"],
        "strict_f1_ci": same(1.0), "spans_f1_ci": same(1.0), "accuracy_ci": same(0.0)
    });
    assert_eq!(first["dev"], expected);
    assert_eq!((&second["dev"]["gain"], &second["dev"]["gain_ci"]), (&json!(-1.0), &same(-1.0)));
    assert_eq!(second["dev"]["spans_f1"], json!(2.0 / 3.0));
    assert!(second["dev"]["test_set"].is_string());
    // It can still be used on request.
    server.post(&format!("/projects/{project}/models/{}/use", second["id"]), json!({})).await;
}

/// Notes numbered from 1 with these texts, and `delirium` annotated as emergence delirium, which only the second model knows.
fn notes(texts: &[&str]) -> String {
    let note = |(row, text): (usize, &&str)| {
        let id = row + 1;
        let start = text.find("delirium");
        let mention = start.map(|at| format!("{id}\t{at}\t{}\tdelirium\tDisorder\tT:4\n", at + 8)).unwrap_or_default();
        format!("{id}|t|{text}\n{id}|a|\n{mention}\n")
    };
    texts.iter().enumerate().map(note).collect()
}

#[tokio::test]
async fn model_is_used_only_if_it_is_better_beyond_chance() {
    let (delirium, nothing) = ("She had delirium.", "She went home.");
    let few = "there are too few held-out documents to tell whether it is better (linking F1 1.00 [1.00, 1.00], “first” 0.00 [0.00, 0.00], on 2 held-out documents)";
    let chance =
        "the gain may be chance (linking F1 1.00 [0.00, 1.00], “first” 0.00 [0.00, 0.00], on 6 held-out documents)";
    for (texts, offered) in [
        (vec![delirium; 6], None),
        (vec![delirium; 2], Some(few)),
        (vec![delirium, nothing, nothing, nothing, nothing, nothing], Some(chance)),
    ] {
        let (server, _) =
            with_trainer(StubTrainer { holds_out: vec!["1", "2", "3", "4", "5", "6"], ..StubTrainer::default() });
        let project = server.project(&notes(&texts)).await;
        for id in server.documents(project).await {
            server.decide(id, json!({"kind": "finish", "value": true})).await;
        }
        let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
        server.run_jobs().await;
        let message = server.get(&format!("/jobs/{}", job["id"])).await["message"].as_str().unwrap().to_owned();
        let rest = message.strip_prefix("trained “second (training 1)”; ").unwrap_or_else(|| panic!("{message}"));
        match offered {
            None => assert!(rest.starts_with("predicted"), "{message}"),
            Some(offered) => assert_eq!(rest, format!("offered, not used: {offered}")),
        }
        let models = server.get(&format!("/models?project={project}")).await;
        assert_eq!(models["models"][1]["is_current"], offered.is_none(), "{message}");
    }
}

#[tokio::test]
async fn held_out_documents_are_listed_and_scores_on_the_same_ones_are_comparable() {
    let (server, _) = with_trainer(StubTrainer { holds_out: vec!["1", "2"], ..StubTrainer::default() });
    let project = server.project(&notes(&["She had delirium.", "Severe delirium.", "No delirium."])).await;
    let path = format!("/projects/{project}/documents");
    let held_out = async |query: &str| -> Vec<(Value, Value)> {
        let rows = server.get(&format!("{path}{query}")).await["documents"].as_array().unwrap().clone();
        rows.into_iter().map(|row| (row["external_id"].clone(), row["is_held_out"].clone())).collect()
    };
    assert_eq!(held_out("?state=held_out").await, []);
    for _ in 0..2 {
        server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
        server.run_jobs().await;
    }
    let of = |id: &str, is_held_out: bool| (json!(id), json!(is_held_out));
    assert_eq!(held_out("").await, [of("1", true), of("2", true), of("3", false)]);
    assert_eq!(held_out("?state=held_out").await, [of("1", true), of("2", true)]);
    let models = server.get(&format!("/models?project={project}")).await["models"].as_array().unwrap().clone();
    let names: Vec<&str> = models.iter().map(|model| model["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["first", "second (training 1)", "second (training 2)"]);
    let sets: Vec<&Value> = models.iter().map(|model| &model["dev"]["test_set"]).collect();
    assert!(sets[0].is_string() && sets.iter().all(|set| *set == sets[0]), "{sets:?}");
}

#[tokio::test]
async fn corrected_held_out_document_changes_the_test_set() {
    let (server, _) = with_trainer(StubTrainer { holds_out: vec!["1", "2"], ..StubTrainer::default() });
    let project = server.project(&notes(&["She had delirium.", "Severe delirium.", "No delirium."])).await;
    let train = async || {
        let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
        server.run_jobs().await;
        let job = server.get(&format!("/jobs/{}", job["id"])).await;
        let models = server.get(&format!("/models?project={project}")).await["models"].as_array().unwrap().clone();
        (job["message"].as_str().unwrap().to_owned(), models)
    };
    train().await;
    let [first, _, third] = server.documents(project).await[..] else { panic!("three documents") };
    // A correction outside of the test set is none of it.
    server.decide(third, json!({"kind": "add", "spans": [[0, 2]], "is_nil": true})).await;
    let (message, models) = train().await;
    assert!(!message.contains("test set") && models[2]["dev"]["changed_since"].is_null(), "{message}");
    server.decide(first, json!({"kind": "add", "spans": [[0, 3]], "is_nil": true})).await;
    let (message, models) = train().await;
    let told = "; the test set changed since “second (training 2)”, so earlier scores are not comparable";
    assert!(message.ends_with(told), "{message}");
    let dev = |row: usize| &models[row]["dev"];
    assert_eq!(dev(3)["changed_since"], "second (training 2)");
    assert!(models[3]["card"].as_str().unwrap().contains("The test set changed since"), "{}", models[3]["card"]);
    assert_ne!(dev(2)["test_set"], dev(3)["test_set"]);
    // The model in use was scored again, on the corrected document.
    assert_eq!((dev(0)["test_set"].clone(), &dev(1)["test_set"]), (dev(3)["test_set"].clone(), &dev(2)["test_set"]));
}

#[tokio::test]
async fn documents_seen_by_any_model_are_excluded_from_all_scores() {
    let corpus = "1|t|She had delirium.\n1|a|\n1\t8\t16\tdelirium\tDisorder\tT:2\n\n2|t|No pepcid here.\n2|a|\n2\t3\t9\tpepcid\tDrug\tT:5\n\n3|t|Pain.\n3|a|\n3\t0\t4\tPain\tX\t-1\n\n";
    let one = "1 of 2 held-out documents was seen in training and is left out.";
    let both = "2 of 2 held-out documents were seen in training and are left out; there are no figures.";
    let worse = "trained “second (training 1)”; offered, not used: it is not better (linking F1 0.00 [0.00, 0.00], “first” 1.00 [1.00, 1.00], on 1 held-out document)";
    let without = "trained “second (training 1)”; offered, not used: it has no scores, because every held-out document was seen in training";
    for (seen, figures, told, message) in
        [(vec!["No pepcid here."], 1, one, worse), (vec!["No pepcid here.", "She had delirium."], 0, both, without)]
    {
        let engine = RuleEngine::new("first", rules());
        *engine.trained_on.lock().unwrap() = seen.iter().map(|text| (*text).to_owned()).collect();
        let trainer = StubTrainer { holds_out: vec!["1", "2"], ..StubTrainer::default() };
        let server = with_models(engine, Some(Arc::new(trainer)));
        let project = server.project(corpus).await;
        let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
        server.run_jobs().await;
        let job = server.get(&format!("/jobs/{}", job["id"])).await;
        assert!(job["message"].as_str().unwrap().starts_with(message), "{job}");
        let models = server.get(&format!("/models?project={project}")).await;
        let (first, second) = (&models["models"][0]["dev"], &models["models"][1]);
        let card = second["card"].as_str().unwrap();
        assert!(card.starts_with(&format!("Made of two steps. {told}")), "{second}");
        // The scores of the card are on the remaining documents.
        assert_eq!(card.contains("Linking F1 on 1 held-out document: 100.0 before, 0.0 after."), figures > 0, "{card}");
        match figures {
            0 => assert!(first.is_null() && second["dev"].is_null(), "{models}"),
            n => {
                assert_eq!((&first["n_documents"], &first["n_seen"]), (&json!(n), &json!(1)));
                assert_eq!((&second["dev"]["n_documents"], &second["dev"]["n_seen"]), (&json!(n), &json!(1)));
            }
        }
    }
}

#[tokio::test]
async fn project_model_links_texts_streams_and_mentions() {
    let (server, _) = with_trainer(StubTrainer::default());
    let project = server.project(CORPUS).await;
    let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
    server.run_jobs().await;
    let model = server.get(&format!("/jobs/{}", job["id"])).await["model"].clone();
    server.post(&format!("/projects/{project}/models/{model}/use"), json!({})).await;
    let best = |linked: &Value| linked["annotations"][0]["candidates"][0]["id"].clone();
    assert_eq!(best(&server.post("/link", json!({"text": "A delirium."})).await), "T:2");
    assert_eq!(best(&server.post("/link", json!({"text": "A delirium.", "project": project})).await), "T:4");
    let line = |query: &str| format!("/link/stream{query}");
    let stream = async |query: &str| {
        let response =
            server.send(Method::POST, &format!("/api/v1{}", line(query)), "{\"text\": \"A delirium.\"}").await;
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        best(&serde_json::from_slice(&bytes).unwrap())
    };
    assert_eq!((stream("").await, stream(&format!("?project={project}")).await), (json!("T:2"), json!("T:4")));
    let id = server.documents(project).await[0];
    let choices = server.get(&format!("/documents/{id}/candidates?start=2&end=12")).await;
    assert_eq!(choices["candidates"][0]["id"], "T:3", "what the trained model thinks: {choices}");
    let (status, _) = server.fail(Method::POST, "/link", json!({"text": "x", "project": 99}).to_string()).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn trained_model_is_downloaded_renamed_and_deleted() {
    let (server, _) = with_trainer(StubTrainer::default());
    let project = server.project(CORPUS).await;
    let job = server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
    server.run_jobs().await;
    let model = server.get(&format!("/jobs/{}", job["id"])).await["model"].as_i64().unwrap();
    let path = format!("/projects/{project}/models/{model}");
    server.patch(&path, json!({"name": "ward notes 1"})).await;
    server.post(&format!("{path}/use"), json!({})).await;
    let response = server.send(Method::GET, &format!("/api/v1{path}/file"), "").await;
    assert_eq!(response.headers()["content-disposition"], "attachment; filename=\"ward-notes-1.bin\"");
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!(&bytes[..], b"the weights");
    // A model that is in use cannot be deleted, nor can the base model.
    let (status, answer) = server.fail(Method::DELETE, &path, "").await;
    assert_eq!((status, &answer["error"]["message"]), (409, &json!("model “ward notes 1” is in use")));
    let base = server.get("/models").await["models"][0]["id"].as_i64().unwrap();
    assert_eq!(server.fail(Method::DELETE, &format!("/projects/{project}/models/{base}"), "").await.0, 404);
    server.post(&format!("/projects/{project}/models/{base}/use"), json!({})).await;
    let lies = server.folder().join("models").join(format!("job-{}", job["id"]));
    assert!(lies.exists());
    server.delete(&path).await;
    assert!(!lies.exists());
    assert_eq!(server.get(&format!("/models?project={project}")).await["models"].as_array().unwrap().len(), 1);
    assert_eq!(server.get(&format!("/jobs/{}", job["id"])).await["model"], json!(null));
}

#[tokio::test]
async fn failed_training_reports_the_reason() {
    let (server, _) = with_trainer(StubTrainer { fails: true, ..StubTrainer::default() });
    let project = server.project(CORPUS).await;
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
    server.run_jobs().await;
    let job = server.get("/jobs/1").await;
    assert_eq!((&job["state"], &job["model"]), (&json!("FAILED"), &json!(null)));
    assert_eq!(job["error"], "two marks are too few to learn from; decide on more");
    assert_eq!(server.get("/models").await["models"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn running_and_queued_jobs_are_cancelled() {
    let (server, trainer) = with_trainer(StubTrainer::default());
    let project = server.project(CORPUS).await;
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "train"})).await;
    let path = format!("/projects/{project}/jobs");
    assert_eq!(server.fail(Method::POST, &path, json!({"kind": "train"}).to_string()).await.0, 409);
    let app = server.app.clone();
    *trainer.between.lock().unwrap() = Some(Box::new(move || app.jobs.cancel(1)));
    server.post(&path, json!({"kind": "predict"})).await;
    assert_eq!(server.post("/jobs/2/cancel", json!({})).await["state"], "CANCELLED");
    server.run_jobs().await;
    let job = server.get("/jobs/1").await;
    assert_eq!((&job["state"], &job["error"]), (&json!("CANCELLED"), &json!(null)));
    assert_eq!(server.fail(Method::POST, "/jobs/1/cancel", "").await.0, 409);
    // A stopping server fails the running job.
    server.post(&path, json!({"kind": "train"})).await;
    let app = server.app.clone();
    *trainer.between.lock().unwrap() = Some(Box::new(move || app.stop()));
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/3").await["error"], "the server was stopped");
}

#[tokio::test]
async fn training_without_a_trainer_fails_with_a_hint() {
    let (server, project, _) = Server::with_corpus().await;
    let (status, answer) =
        server.fail(Method::POST, &format!("/projects/{project}/jobs"), json!({"kind": "train"}).to_string()).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("canonym train"));
    let empty = server.post("/projects", json!({"name": "Empty"})).await["id"].as_i64().unwrap();
    assert_eq!(
        server.fail(Method::POST, &format!("/projects/{empty}/jobs"), json!({"kind": "predict"}).to_string()).await.0,
        409
    );
}

#[tokio::test]
async fn event_stream_reports_changes_of_its_project() {
    use axum::body::Body;
    use tokio_stream::StreamExt;
    let (server, project, _) = Server::with_corpus().await;
    let response = server.send(Method::GET, &format!("/api/v1/events?project={project}"), Body::empty()).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut stream = response.into_body().into_data_stream();
    let mut next = async || {
        loop {
            let told = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
            if told != ": alive\n\n" {
                return told;
            }
        }
    };
    assert_eq!(next().await, ": listening\n\n");
    server.project(CORPUS).await; // events of another project are not sent
    let id = server.documents(project).await[0];
    let decided = server.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    assert_eq!(next().await, format!("event: document\ndata: {{\"id\":{id},\"version\":{}}}\n\n", decided["version"]));
    server.predict(project).await;
    let told = next().await;
    assert!(told.starts_with("event: job\ndata: {\"id\":1,") && told.contains("QUEUED"), "{told}");
    assert!(next().await.contains("RUNNING"));
    server.app.stop();
}
