package status

import (
	"fmt"
	"time"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
)

// judgeBehindFence finds what the application still writes to DynamoDB. Before the certificate the
// cutover is undone and begun again. Behind it the rows may be the application's, so nothing but
// the application can carry the changes over.
func judgeBehindFence(_ *Outlook, t *Table) *finding {
	b := t.BehindFence
	if b == nil {
		return nil
	}
	next := stepBehind
	if t.Fence.Certified != nil {
		next = stepBehindCertified
	}
	return &finding{
		state: StateBehind, since: &b.Since, next: next.of(t), weight: float64(b.Changes),
		cause: fmt.Sprintf("%s of %s %s made in DynamoDB behind the fence of cutover %s, and Bigtable does not get %s",
			plural(int(b.Changes), "change"), t.Source, oneOf(int(b.Changes), "was", "were"), t.Fence.ID,
			oneOf(int(b.Changes), "it", "them")),
	}
}

func judgeFence(_ *Outlook, t *Table) *finding {
	if t.Fence == nil {
		return nil
	}
	f := &finding{
		state: StateFenced, since: &t.Fence.Since,
		cause: t.Source + " is fenced for cutover " + t.Fence.ID + ": nothing behind the fence is written",
		next:  stepFenced.of(t),
	}
	if t.Fence.Certified != nil {
		f.cause = t.Source + " is fenced for cutover " + t.Fence.ID +
			", which is certified: the application may write to Bigtable"
		f.next = stepCertified.of(t)
	}
	return f
}

// Fence is a fence in the log: nothing behind it is applied to Bigtable, while reading and the
// archive go on.
type Fence struct {
	ID      string    `json:"id"` // of the cutover
	Since   time.Time `json:"since"`
	Entry   uint64    `json:"entry"`
	Reached bool      `json:"reached"` // everything before it is in Bigtable
	// Certified is when the certificate was issued; nil: none was, as far as the log shows.
	Certified *time.Time `json:"certified,omitempty"`
}

// BehindFence are changes behind a fence: Bigtable does not get them. Deletions by TTL and
// heartbeats do not count.
type BehindFence struct {
	Changes uint64    `json:"changes"`
	Since   time.Time `json:"since"`
	// KeyHashes are the key hashes of some of the items, where the log was searched for them.
	KeyHashes []string `json:"key_hashes,omitempty"`
}

// WrittenBehindFence is the state of a fenced table when the application still writes to DynamoDB.
const WrittenBehindFence = "written-behind-fence"

// takeFence takes from the log whether the table is fenced, whether its cutover is certified, and
// what was written behind the fence. It returns when the fence was raised; 0 without one.
func (st *Table) takeFence(s *checkpoint.State) (at change.Millis) {
	f := s.Fence
	if f == nil {
		return 0
	}
	st.Fence = &Fence{ID: f.ID, Since: f.At.Time().UTC(), Entry: f.Seq, Reached: s.StandsAtFence()}
	if f.Certified > 0 {
		at := f.Certified.Time().UTC()
		st.Fence.Certified = &at
	}
	if f.Behind > 0 {
		st.BehindFence = &BehindFence{Changes: f.Behind, Since: f.BehindSince.Time().UTC()}
	}
	return f.At
}

// behindReason returns the reason for a fenced table while the application still writes to
// DynamoDB; "" otherwise.
func (st *Table) behindReason() string {
	b := st.BehindFence
	if b == nil {
		return ""
	}
	return fmt.Sprintf("was written to behind the fence of cutover %s: %s since %s, and Bigtable does not get %s",
		st.Fence.ID, plural(int(b.Changes), "change"), b.Since.Format(time.RFC3339), oneOf(int(b.Changes), "it", "them"))
}
