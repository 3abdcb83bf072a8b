//! What happened in a world, for the one who asks whether it was unkind enough.

#[derive(Debug, Default)]
pub struct Outcome {
    pub events: u64,
    pub crashes_before_commit: u64,
    pub crashes_after_commit: u64,
    pub evictions: u64,
    pub stale_answers: u64,
    pub late_alarms: u64,
    pub completed: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub cancelled: u64,
    pub runs: u64,
    pub pauses: u64,
    pub decisions: u64,
    pub signals: u64,
    pub letters: u64,
    pub letters_lost: u64,
    pub joins_fired: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Outcome) {
        self.events += other.events;
        self.crashes_before_commit += other.crashes_before_commit;
        self.crashes_after_commit += other.crashes_after_commit;
        self.evictions += other.evictions;
        self.stale_answers += other.stale_answers;
        self.late_alarms += other.late_alarms;
        self.completed += other.completed;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.cancelled += other.cancelled;
        self.runs += other.runs;
        self.pauses += other.pauses;
        self.decisions += other.decisions;
        self.signals += other.signals;
        self.letters += other.letters;
        self.letters_lost += other.letters_lost;
        self.joins_fired += other.joins_fired;
    }
}
