//! Which callbacks reach the object of their run. The capability is the credential: it is checked before the body is read and
//! before an object wakes. Pure.

use crate::api::error::Error;
use crate::base::time::Millis;
use crate::run::{CallbackKey, Capability};

/// When a caller is to repeat a callback that could not be checked.
const RETRY_AFTER_S: &str = "5";

/// The deployment's settings for callbacks: rows of the table `settings` in D1.
pub struct CallbackSettings {
    pub key: CallbackKey,
    /// Until then every capability is forwarded to the object of its run, which checks it: there may be runs whose secrets
    /// are older than the key, because an earlier build started them or the key was lost.
    older_until: Millis,
}

impl CallbackSettings {
    /// `value` returns the value of a setting. The error says which one to correct, and quotes none.
    pub fn read<'a>(value: impl Fn(&str) -> Option<&'a str>) -> Result<CallbackSettings, String> {
        let key = value("callback_key").and_then(CallbackKey::parse);
        let key = key.ok_or(
            "the table settings in D1 has no callback_key of 64 hex digits; restore it from a backup of the database",
        )?;
        let older_until = value("callback_older_until").unwrap_or("0").parse();
        let older_until = older_until.map_err(
            |_| "callback_older_until in the table settings of D1 is not a moment in Unix milliseconds",
        )?;
        Ok(CallbackSettings { key, older_until })
    }

    /// Whether the run's object is to receive the callback.
    pub fn admits(&self, capability: &Capability, now: Millis) -> bool {
        self.key.proves(capability) || now < self.older_until
    }
}

/// The response to every wrong capability, whatever is wrong with it: a caller learns nothing about runs.
pub fn unknown() -> Error {
    Error::not_found("the callback")
}

/// The key cannot be read; the log says why. Nothing is known about the capability.
pub fn unchecked() -> Error {
    let message = "the capability cannot be checked, because the key is not readable in the database; nothing was done, repeat \
                   the request";
    Error::new(503, "callback_key_unreadable", message).with_header("retry-after", RETRY_AFTER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(rows: &[(&str, &str)]) -> Result<CallbackSettings, String> {
        CallbackSettings::read(|name| rows.iter().find(|(row, _)| *row == name).map(|(_, value)| *value))
    }

    #[test]
    fn settings_are_read_strictly() {
        let key = "0f".repeat(32);
        let older_until = |rows: &[(&str, &str)]| read(rows).map(|settings| settings.older_until);
        assert_eq!(older_until(&[("callback_key", &key)]), Ok(0));
        assert_eq!(
            older_until(&[("callback_older_until", "1700000000000"), ("callback_key", &key)]),
            Ok(1_700_000_000_000)
        );
        for rows in [
            &[][..],
            &[("callback_key", "")],
            &[("callback_key", "1234")],
            &[("callback_key", &key), ("callback_older_until", "tomorrow")],
            &[("callback_key", &key), ("callback_older_until", "")],
        ] {
            let message = older_until(rows).expect_err("they are not valid");
            assert!(
                message.contains("settings") && !message.contains("1234"),
                "{message}"
            );
        }
    }

    #[test]
    fn for_a_time_objects_check_capabilities_that_are_older_than_the_key() {
        let key = "0f".repeat(32);
        let settings = read(&[("callback_key", &key), ("callback_older_until", "1000")]).expect("valid");
        for text in ["run-1~t1~1~7a9ada99336f7b30", "run-1~t1~1~3e8-7a9ada99336f7b30"] {
            let capability = Capability::parse(text).expect("well-formed");
            assert!(settings.admits(&capability, 999));
            assert!(!settings.admits(&capability, 1_000));
        }
    }
}
