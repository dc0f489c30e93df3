//! Logging in, people and tokens.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Json;
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::guard::{Admin, COOKIE, cookie};
use crate::people::{checked_name, hash, key_hash, new_key, verify};
use crate::store::people::{self, Person};
use crate::wire::{LoggedIn, Login, NewPerson, NewToken, People, Token};

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
            let Some((person, _)) = known.filter(|_| is_right) else {
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
            if new.role != people::Role::Admin && !people::has_admin(transaction)? {
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

/// `POST /tokens`: a token for programs that act in the name of the one who asks.
pub async fn token(
    State(app): State<Arc<App>>,
    person: Person,
    Json(new): Json<NewToken>,
) -> ApiResult<(StatusCode, axum::Json<Token>)> {
    let token = app.blocking(move |app| {
        let name = checked_name(&new.name)?.to_owned();
        let (token, hash) = new_key()?;
        app.store
            .write(|transaction| people::add_key(transaction, (&hash, "token", &name), person.id, (app.now(), None)))?;
        Ok(Token { name, token })
    });
    Ok((StatusCode::CREATED, axum::Json(token.await?)))
}
