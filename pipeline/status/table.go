package status

import (
	"strconv"
	"time"

	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/pipeline/archiving"
	"github.com/tailrace-cdc/replicator/pipeline/limit"
	"github.com/tailrace-cdc/replicator/pipeline/resync"
	"github.com/tailrace-cdc/replicator/verify/continuous"
)

// Table is what a table's log shows about the table. It follows from the log alone, so the daemon
// and the status command show the same.
type Table struct {
	Source string `json:"source"`
	Target string `json:"target"`
	// State is running, copying, healing, recovering, paused, halted, gap, fenced,
	// written-behind-fence or waiting; standby where another process owns the log.
	State string `json:"state"`

	Shards struct {
		Open    int `json:"open"`
		Closed  int `json:"closed"`
		Waiting int `json:"waiting"`
		Done    int `json:"done"`
		// Unread count as read to their end although a listing shows them without one.
		Unread int `json:"open_unread"`
	} `json:"shards"`
	// Ended: no change comes any more, as when the table was deleted, and every sink has applied
	// them all.
	Ended bool `json:"stream_ended,omitempty"`

	// Time since everything was read into the log, and since everything was applied by every sink;
	// before that, since the start; -1 unknown. Behind a fence nothing is to be applied, so
	// AppliedLag counts up to the fence.
	SourceLag      float64    `json:"source_lag_s"`
	AppliedLag     float64    `json:"applied_lag_s"`
	AppliedThrough *time.Time `json:"applied_through"`  // everything written before it is in Bigtable
	Retention      float64    `json:"retention_left_s"` // until the oldest unread record may be lost; -1 unknown or none
	// Proof is proven if heartbeats prove ProvenThrough and each open shard has a recent one; else
	// assumed: as far as empty reads show, in Assumed of the open shards.
	Proof         string     `json:"proof"`
	ProvenThrough *time.Time `json:"proven_through,omitempty"`
	Assumed       int        `json:"shards_assumed"`
	Queue         Queue      `json:"queue"`
	DeadLetters   int        `json:"dead_letters"`
	LettersSince  *time.Time `json:"dead_letters_since,omitempty"` // when the oldest was refused, where a process knows it
	// LetterCodes are the dead letters by the code of their reason, where a process knows them.
	LetterCodes  map[string]int `json:"dead_letter_codes,omitempty"`
	Gaps         int            `json:"gaps"`
	Accepted     int            `json:"gaps_accepted"`
	Differing    int            `json:"gaps_differing"` // gaps that are neither healed nor waived for every sink
	DiffersSince *time.Time     `json:"differs_since"`  // from when on changes are missing because of them
	// OnlyArchiveDiffers: Bigtable has what the gaps lost, and the archive has not.
	OnlyArchiveDiffers bool `json:"only_archive_differs,omitempty"`
	CopyCanceled       bool `json:"copy_canceled,omitempty"` // and nothing has healed that yet
	// CopyUnconfirmed: DynamoDB could not be asked whether the copied export was whole, and no
	// comparison has shown it.
	CopyUnconfirmed bool `json:"copy_unconfirmed,omitempty"`
	// NotCopied is about how many items the table held at its first start that the configuration
	// did not let be copied, and that nothing has compared since. They are no reason against Ready.
	NotCopied int64 `json:"not_copied,omitempty"`

	Owner      string  `json:"owner"`
	Epoch      uint64  `json:"epoch"`
	LogFormat  int     `json:"log_format"`
	Changes    uint64  `json:"changes"`
	Foreign    uint64  `json:"foreign_messages"`
	ClockAhead float64 `json:"clock_ahead_s"`

	// Since is when State began, where the log records it, and PausedBy who paused the table.
	// PauseReason is why reading pauses, if it does. ThrottledSince is since when DynamoDB
	// throttles reading, as the reading process found.
	Since          *time.Time `json:"state_since,omitempty"`
	PausedBy       string     `json:"paused_by,omitempty"`
	PauseReason    string     `json:"reading_pauses,omitempty"`
	ThrottledSince *time.Time `json:"throttled_since,omitempty"`

	// How changes fare between DynamoDB and Bigtable, as the process that applies them counts; nil:
	// not known.
	Latency *Latency `json:"latency_s,omitempty"`
	Rate    *float64 `json:"changes_per_s,omitempty"`   // that became durable in Bigtable, in the last minute
	Pending *uint64  `json:"pending_changes,omitempty"` // that the log holds and Bigtable has not got yet
	// What limits the table now, and how many calls to its target there are, as the process that
	// applies its changes finds; left out where none does, and while a sink is halted.
	LimitedBy limit.By     `json:"limited_by,omitempty"`
	Calls     *limit.Calls `json:"calls,omitempty"`
	// Carries is how many changes the table can reach if no other one is busy, by the size of its
	// records and the latency of Bigtable as the process has measured them.
	Carries *limit.Carried `json:"carries,omitempty"`

	// What the table costs, as the process that carries it counts; nil: not known.
	Cost *Cost `json:"cost,omitempty"`

	// The halt that matters most: of the pipeline itself, else of Bigtable, else the oldest; its
	// code, its sink, and since when.
	Halt      string     `json:"halt,omitempty"`
	Code      string     `json:"halt_code,omitempty"`
	HaltSink  string     `json:"halt_sink,omitempty"`
	HaltSince *time.Time `json:"halt_since,omitempty"`
	// HeldEntry is the entry with the change that is refused, where on_reject: halt keeps the sink
	// before it.
	HeldEntry uint64 `json:"held_entry,omitempty"`

	Reasons []string `json:"reasons,omitempty"` // why it is not ready: the texts of Why
	Why     []Reason `json:"why,omitempty"`

	Copy *resync.Progress `json:"copy,omitempty"` // of the items that are older than the stream, while it is not complete

	Resync *resync.WholeStatus `json:"resync,omitempty"` // of the whole table, while one is pending and a process does it

	ResyncSince *time.Time `json:"resync_since,omitempty"` // when it was asked for

	Requests *resync.RequestsStatus `json:"requests,omitempty"` // for single items, while a process does some

	Verify *continuous.Status `json:"verify,omitempty"` // the continuous comparison, while a process does it

	Archive *archiving.Status `json:"archive,omitempty"` // of what the mapping archives, while a process does it

	Fence *Fence `json:"fence,omitempty"` // of a cutover

	// BehindFence is what the application wrote to DynamoDB behind the fence; nil for nothing.
	BehindFence *BehindFence `json:"behind_fence,omitempty"`

	Halts map[string]string `json:"halts"` // reasons by sink; "pipeline" is the pipeline itself

	lost int // gaps among Differing that lost changes of the stream: a copy leaves gaps too
}

// StandBy is the state of a table with a log owned by another process, as long as its owner shows
// life.
const StandBy = "standby"

// Queue is how full a table's log is.
type Queue struct {
	Bytes     uint64     `json:"bytes"`
	Limit     uint64     `json:"limit"`
	Oldest    *time.Time `json:"oldest"`
	HoursLeft float64    `json:"hours_left"` // -1: no limit in sight
}

// takeProof takes what heartbeats prove.
func (st *Table) takeProof(s *checkpoint.State) {
	p := &s.Proof
	if st.Assumed = p.Assumed; p.Assumed == 0 && p.Read == 0 {
		st.Assumed = st.Shards.Open // there are no heartbeats
	}
	through := s.ProvenWatermark()
	if through == 0 {
		return
	}
	at := through.Time().UTC()
	if st.ProvenThrough = &at; p.Assumed == 0 && p.Read > 0 {
		st.Proof = Proven
	}
}

// How it is known that idle shards are idle.
const (
	Proven  = "proven"
	Assumed = "assumed"
)

// plural returns a number with its noun.
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// streamEnded reports whether the live stream is disabled, and all that it will ever have is
// applied. The shards of a disabled stream are all known only after a complete listing that began
// behind the last sign of life of any of them.
func streamEnded(s *checkpoint.State) bool {
	live := s.LiveStream()
	return live != nil && s.Drained(live.ARN) && s.Listed >= s.ReadWatermark() && s.AllApplied()
}
