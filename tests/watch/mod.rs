//! What the index is told of runs, and what it makes of it.

mod letters;
mod standing;
