package status

import "slices"

// Reason is why a table is not ready.
//
// Rule 14: what is decided by a reason is decided by its code.
type Reason struct {
	Code ReasonCode `json:"code"`
	Text string     `json:"text"` // made from the code and the state, for people: nothing is decided by it
}

// ReasonCode names the kinds of a Reason.
type ReasonCode string

// The codes. One of each may stand in a table, but for halts and premises.
const (
	WhyNoOwner       ReasonCode = "no_owner"         // the log is released, or its owner shows no sign of life
	WhyNotStored     ReasonCode = "nothing_stored"   // by the owner, which is this process
	WhyNoLog         ReasonCode = "no_log"           // or nothing is known of it yet
	WhyNotStarted    ReasonCode = "not_started"      // no listing of the stream is in the log
	WhyNotAllRead    ReasonCode = "not_all_read"     // some shard has not been read and applied yet
	WhyStreamOff     ReasonCode = "stream_disabled"  //
	WhyOpenUnread    ReasonCode = "open_unread"      // shards that a listing shows open are not read
	WhyBehindFence   ReasonCode = "behind_fence"     // changes that Bigtable does not get
	WhyPaused        ReasonCode = "paused"           //
	WhyReadingPauses ReasonCode = "reading_pauses"   // the log is full
	WhyHalted        ReasonCode = "halted"           //
	WhyLowRetention  ReasonCode = "retention_low"    //
	WhyGap           ReasonCode = "gap"              //
	WhyCopyCanceled  ReasonCode = "copy_canceled"    //
	WhyUnconfirmed   ReasonCode = "copy_unconfirmed" // of an export that DynamoDB could not be asked about
	WhyDiffers       ReasonCode = "differs"          // because of gaps
	WhyResyncing     ReasonCode = "resync"           //
	WhyCopying       ReasonCode = "copying"          //
	WhyCopyDue       ReasonCode = "copy_due"         //
	WhyLetters       ReasonCode = "dead_letters"     //
	WhyLateRead      ReasonCode = "late_read"        // Moved may refute it
	WhyLateApplied   ReasonCode = "late_applied"     // Moved may refute it
	WhyPremise       ReasonCode = "premise"          // a setting of an outside system is not as it must be
	WhyVanished      ReasonCode = "vanished"         // DynamoDB does not have the table any more
	WhyUntagged      ReasonCode = "not_chosen"       // its tags match no selection any more
	WhyChosenElse    ReasonCode = "chosen_otherwise" // by other selections than when it began
	WhyNotReplicable ReasonCode = "not_replicable"   // a selection chooses it, and it cannot be replicated
	WhyNote          ReasonCode = "note"             // of any other kind
)

// Explain sets why the table is not ready, in place of what was known.
func (t *Table) Explain(why ...Reason) {
	t.Why, t.Reasons = nil, nil
	t.Add(why...)
}

// Add adds reasons behind the others. The lists may be shared with an earlier status, so they are
// copied.
func (t *Table) Add(why ...Reason) {
	t.Why = append(slices.Clip(t.Why), why...)
	t.Reasons = textsOf(t.Why)
}

// Put puts a reason before the others.
func (t *Table) Put(r Reason) { t.Explain(append([]Reason{r}, t.Why...)...) }

// textsOf returns what people read.
func textsOf(why []Reason) (texts []string) {
	for _, r := range why {
		texts = append(texts, r.Text)
	}
	return texts
}

// reason returns the first reason with one of the codes; nil without one.
func (t *Table) reason(codes ...ReasonCode) *Reason {
	if i := slices.IndexFunc(t.Why, func(r Reason) bool { return slices.Contains(codes, r.Code) }); i >= 0 {
		return &t.Why[i]
	}
	return nil
}

// Has reports whether the table is not ready for a reason with the code.
func (t *Table) Has(code ReasonCode) bool { return t.reason(code) != nil }
