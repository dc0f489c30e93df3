//! Logging in, people and tokens.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::{At, Json, within};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::guard::{Admin, COOKIE, cookie};
use crate::people::{checked_name, hash, key_hash, new_key, verify};
use crate::store::people::{self, Person, PersonChange, Role};
use crate::wire::{LoggedIn, Login, NewPassword, NewPerson, NewToken, People, PersonPatch, Token, Tokens};

/// Days for which a token may be made.
const MAX_DAYS: usize = 3650;

/// How long a login lasts, in seconds.
const SESSION: i64 = 7 * 24 * 3600;

/// `POST /login`: a name and a password for a cookie.
pub async fn login(State(app): State<Arc<App>>, Json(login): Json<Login>) -> ApiResult<Response> {
    let _door = app.doors.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let (person, key) = app
        .blocking(move |app| {
            let now = app.now();
            let name = login.name.trim();
            app.limiter.attempt(name, now)?;
            let known = app.store.read(|connection| people::by_name(connection, name))?;
            let is_right = verify(&login.password, known.as_ref().and_then(|(_, hash)| hash.as_deref()));
            let Some((person, _)) = known.filter(|(person, _)| is_right && person.is_active) else {
                return Err(ApiError { message: "name or password is wrong".to_owned(), ..ApiError::no_login() }
                    .hint("try again; after five failures one has to wait a minute"));
            };
            app.limiter.succeeded(name);
            let (key, key_hash) = new_key()?;
            app.store.write(|transaction| {
                people::remove_key(transaction, "", now)?;
                people::add_key(transaction, (&key_hash, "session", ""), person.id, (now, Some(now + SESSION * 1000)))
            })?;
            Ok((person, key))
        })
        .await?;
    let cookie = format!("{COOKIE}={key}; HttpOnly; SameSite=Strict; Path=/; Max-Age={SESSION}");
    Ok(([(header::SET_COOKIE, cookie)], axum::Json(LoggedIn { user: person })).into_response())
}

/// `POST /logout`: the cookie is worth nothing any more.
pub async fn logout(State(app): State<Arc<App>>, headers: HeaderMap) -> ApiResult<Response> {
    if let Some(key) = cookie(&headers) {
        let hash = key_hash(key);
        app.blocking(move |app| app.store.write(|transaction| people::remove_key(transaction, &hash, app.now())))
            .await?;
    }
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((StatusCode::OK, [(header::SET_COOKIE, gone)], axum::Json(serde_json::json!({}))).into_response())
}

/// `GET /people`: everybody.
pub async fn all(State(app): State<Arc<App>>, _: Person) -> ApiResult<axum::Json<People>> {
    let people = app.blocking(|app| app.store.read(people::all)).await?;
    Ok(axum::Json(People { people }))
}

/// `POST /people`: adds somebody. From the first on, everybody has to log in, so the first is an admin.
pub async fn add(
    State(app): State<Arc<App>>,
    _: Admin,
    Json(new): Json<NewPerson>,
) -> ApiResult<(StatusCode, axum::Json<Person>)> {
    let person = app.blocking(move |app| {
        let name = checked_name(&new.name)?;
        let hash = hash(&new.password)?;
        let now = app.now();
        let person = app.store.write(|transaction| {
            if people::by_name(transaction, name)?.is_some() {
                return Err(ApiError::conflict(format!("there is somebody called `{name}`")).hint("take another name"));
            }
            if new.role != Role::Admin && !people::has_admin(transaction)? {
                return Err(ApiError::conflict("the first account has to be one of an admin")
                    .hint("add an admin first; from then on everybody has to log in"));
            }
            people::put(transaction, name, (new.role, &hash), now)
        })?;
        app.accounts_exist();
        Ok(person)
    });
    Ok((StatusCode::CREATED, axum::Json(person.await?)))
}

/// `PATCH /people/{id}`: another role or password, or somebody who may not log in any more. What they did stays theirs.
pub async fn change(
    State(app): State<Arc<App>>,
    admin: Admin,
    At(id): At<i64>,
    Json(patch): Json<PersonPatch>,
) -> ApiResult<axum::Json<Person>> {
    let _door = app.doors.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let person = app.blocking(move |app| {
        let password = patch.password.as_deref().map(hash).transpose()?;
        app.store.write(|transaction| {
            let before = people::get(transaction, id)?;
            if before.name == people::LOCAL {
                return Err(ApiError::bad("`local` is the one who works where there are no accounts")
                    .hint("add an account for each person"));
            }
            if admin.0.id == id && patch.is_active == Some(false) {
                return Err(ApiError::conflict("nobody deactivates themselves").hint("ask another admin"));
            }
            let change = PersonChange { role: patch.role, password, is_active: patch.is_active };
            people::change(transaction, id, &change)?;
            if !people::has_admin(transaction)? {
                return Err(ApiError::conflict("this is the last admin who may log in")
                    .hint("make somebody else an admin first; nothing was changed"));
            }
            if change.password.is_some() || patch.is_active == Some(false) {
                people::remove_keys(transaction, id, "")?;
            }
            people::get(transaction, id)
        })
    });
    Ok(axum::Json(person.await?))
}

/// `POST /password`: a new password of one's own. It ends other logins and all tokens.
pub async fn password(
    State(app): State<Arc<App>>,
    person: Person,
    headers: HeaderMap,
    Json(new): Json<NewPassword>,
) -> ApiResult<axum::Json<serde_json::Value>> {
    let _door = app.doors.acquire().await.map_err(|error| ApiError::internal(&error))?;
    let this = cookie(&headers).map(key_hash).unwrap_or_default();
    app.blocking(move |app| {
        if !app.has_accounts() {
            return Err(ApiError::conflict("nobody has a password here")
                .hint("an admin adds accounts; from then on everybody has to log in"));
        }
        app.limiter.attempt(&person.name, app.now())?;
        let known = app.store.read(|connection| people::by_name(connection, &person.name))?;
        if !verify(&new.old, known.as_ref().and_then(|(_, hash)| hash.as_deref())) {
            return Err(ApiError::bad("the password until now is wrong").hint("nothing was changed; try again"));
        }
        app.limiter.succeeded(&person.name);
        let change = PersonChange { password: Some(hash(&new.new)?), ..PersonChange::default() };
        app.store.write(|transaction| {
            people::change(transaction, person.id, &change)?;
            people::remove_keys(transaction, person.id, &this)
        })
    })
    .await?;
    Ok(axum::Json(serde_json::json!({})))
}

/// `GET /tokens`: the tokens of the one who asks, without their secrets.
pub async fn tokens(State(app): State<Arc<App>>, person: Person) -> ApiResult<axum::Json<Tokens>> {
    let tokens = app.blocking(move |app| {
        let now = app.now();
        app.store.read(|connection| people::tokens(connection, person.id, now))
    });
    Ok(axum::Json(Tokens { tokens: tokens.await? }))
}

/// `DELETE /tokens/{t}`: a token of the one who asks is worth nothing any more.
pub async fn revoke(
    State(app): State<Arc<App>>,
    person: Person,
    At(id): At<String>,
) -> ApiResult<axum::Json<serde_json::Value>> {
    app.blocking(move |app| {
        match app.store.write(|transaction| people::remove_token(transaction, person.id, &id))? {
            true => Ok(()),
            false => Err(ApiError::not_found("you have no such token").hint("GET /api/v1/tokens lists them")),
        }
    })
    .await?;
    Ok(axum::Json(serde_json::json!({})))
}

/// `POST /tokens`: a token for programs that act in the name of the one who asks.
pub async fn token(
    State(app): State<Arc<App>>,
    person: Person,
    Json(new): Json<NewToken>,
) -> ApiResult<(StatusCode, axum::Json<Token>)> {
    let token = app.blocking(move |app| {
        let name = checked_name(&new.name)?.to_owned();
        let days = new.days.map(|days| within(Some(days), (1, days, MAX_DAYS), "days")).transpose()?;
        let (token, hash) = new_key()?;
        let now = app.now();
        let end = days.map(|days| now + days as i64 * 24 * 3_600_000);
        app.store.write(|transaction| people::add_key(transaction, (&hash, "token", &name), person.id, (now, end)))?;
        Ok(Token { name, token })
    });
    Ok((StatusCode::CREATED, axum::Json(token.await?)))
}
