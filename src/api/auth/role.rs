//! Roles of credentials: each is a set of permissions, and every role includes `read`.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Read,
    /// Starts runs, sends signals, publishes events.
    Start,
    /// Decides gates.
    Decide,
    /// Start, decide, and every control of a run.
    Operate,
    /// Operate, and documents and breakers.
    Admin,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Read, Role::Start, Role::Decide, Role::Operate, Role::Admin];

    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Start => "start",
            Role::Decide => "decide",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }

    /// The roles that this one includes, itself among them.
    fn included(self) -> &'static [Role] {
        match self {
            Role::Read => &[Role::Read],
            Role::Start => &[Role::Read, Role::Start],
            Role::Decide => &[Role::Read, Role::Decide],
            Role::Operate => &[Role::Read, Role::Start, Role::Decide, Role::Operate],
            Role::Admin => &Role::ALL,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The roles of a caller, with those they include.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Roles {
    bits: u8,
}

impl Roles {
    pub const NONE: Roles = Roles { bits: 0 };

    pub fn of(role: Role) -> Roles {
        let bits = role.included().iter().map(|role| role.bit()).sum();
        Roles { bits }
    }

    pub fn union(self, other: Roles) -> Roles {
        Roles {
            bits: self.bits | other.bits,
        }
    }

    pub fn contains(self, role: Role) -> bool {
        self.bits & role.bit() != 0
    }
}

/// `start and decide`: the roles that no other one includes.
impl fmt::Display for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let held = || Role::ALL.into_iter().filter(|role| self.contains(*role));
        let is_implied = |role: Role| held().any(|other| other != role && other.included().contains(&role));
        let names: Vec<&str> = held().filter(|role| !is_implied(*role)).map(Role::name).collect();
        formatter.write_str(match names.is_empty() {
            true => "nothing",
            false => return formatter.write_str(&names.join(" and ")),
        })
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_role_includes() {
        for (role, expected) in [
            (Role::Read, "read"),
            (Role::Start, "read start"),
            (Role::Decide, "read decide"),
            (Role::Operate, "read start decide operate"),
            (Role::Admin, "read start decide operate admin"),
        ] {
            let roles = Roles::of(role);
            let held: Vec<&str> = Role::ALL
                .into_iter()
                .filter(|role| roles.contains(*role))
                .map(Role::name)
                .collect();
            assert_eq!(held.join(" "), expected);
            assert_eq!(Role::named(role.name()), Some(role));
        }
        assert_eq!(Role::named("Admin"), None);
    }

    #[test]
    fn start_and_decide_are_less_than_operate() {
        let both = Roles::of(Role::Start).union(Roles::of(Role::Decide));
        assert!(both.contains(Role::Start) && both.contains(Role::Decide));
        assert!(!both.contains(Role::Operate) && !both.contains(Role::Admin));
    }

    #[test]
    fn messages_name_the_highest_roles() {
        let both = Roles::of(Role::Start).union(Roles::of(Role::Decide));
        assert_eq!(both.to_string(), "start and decide");
        assert_eq!(Roles::of(Role::Admin).to_string(), "admin");
        assert_eq!(Roles::NONE.to_string(), "nothing");
    }
}
