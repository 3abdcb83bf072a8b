//! Types that every room uses: time, ids, limits, failures, JSON text and its size, the computation meter, a cache, trace ids.

pub mod base64;
pub mod base64url;
pub mod compute;
pub mod constant_time;
pub mod failure;
pub mod from_json;
pub mod hmac;
pub mod ids;
pub mod limits;
pub mod lru_cache;
pub mod ordered;
pub mod price;
pub mod suggest;
pub mod text;
pub mod time;
pub mod trace;
pub mod truncate;
