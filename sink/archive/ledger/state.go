package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
	"github.com/tailrace-cdc/replicator/sink/archive/manifest"
	"github.com/tailrace-cdc/replicator/transform"
)

// State is what the entries of an archive's stream add up to. Only Apply changes it.
type State struct {
	Seq  uint64 `json:"-"` // of the newest entry
	Hash Hash   `json:"-"` // of it

	Claim   Claim            `json:"claim"` // the newest
	Shards  map[string]Shard `json:"shards"`
	Parts   map[PartKey]Part `json:"parts"`   // events that no intent covers
	Intents []Intent         `json:"intents"` // objects that may be there or not
	Objects []Object         `json:"objects"` // that are there, and in no manifest

	// Covered is what the objects of the last days cover, by class, and CoveredAt the hour in which
	// a record of each shard was archived last. Records are read again for a day at most.
	Covered   map[transform.EventClass]coverage.Set `json:"covered,omitempty"`
	CoveredAt map[string]layout.Hour                `json:"covered_at,omitempty"`

	Counts map[layout.Hour]Counts `json:"counts"`
	Lost   []Lost                 `json:"lost,omitempty"`
	Newest layout.Hour            `json:"newest"` // of all records

	Began  layout.Hour   `json:"began"`           // the hour of the first claim
	Whole  bool          `json:"whole"`           // nothing is missing before it
	Place  string        `json:"place,omitempty"` // where the objects are; "": not known
	Closed layout.Hour   `json:"closed"`          // all hours before it are closed
	Head   manifest.Head `json:"head"`

	// Subject is the entry up to which the subject has everything; nil: there is no subject.
	// SubjectSince is when it began, 0 with the stream; the same for the objects.
	Subject      *uint64     `json:"subject,omitempty"`
	SubjectSince layout.Hour `json:"subject_since,omitempty"`
	ObjectsSince layout.Hour `json:"objects_since,omitempty"`

	// Columns are the configured columns that objects have, by name.
	Columns map[string]Column `json:"columns,omitempty"`

	SnapshotFirst uint64 `json:"-"` // of the last complete snapshot
	BytesSince    int64  `json:"-"` // bytes of entries since then
	Strays        int    `json:"-"` // messages since then that are none of an archive's

	snapshot *partialSnapshot
}

// Object is an object that is there.
type Object struct {
	manifest.Object
	Class transform.EventClass `json:"class"`
	Hour  layout.Hour          `json:"hour"`
}

// ErrFork means that an entry does not continue the one before it, or contradicts it: the stream
// was put back to an older copy and written again, or a byte of it is damaged.
var ErrFork = errors.New("the archive's stream contradicts itself")

// New returns the state of an empty stream.
func New() *State {
	return &State{
		Shards: map[string]Shard{}, Parts: map[PartKey]Part{}, Counts: map[layout.Hour]Counts{},
		CoveredAt: map[string]layout.Hour{}, Covered: map[transform.EventClass]coverage.Set{},
	}
}

// Apply folds the message stored at seq. It returns nil for a stray one, which is only counted: the
// next entry continues the one before it. Errors: ErrFork, ErrForeign, *NewerFormatError; the state
// is then no longer usable.
func (s *State) Apply(seq uint64, msg []byte) (*Entry, error) {
	if Stray(msg) && (s.Seq == 0 || seq == s.Seq+1) {
		s.Seq, s.Strays = seq, s.Strays+1
		return nil, nil
	}
	e, err := Decode(msg)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", seq, err)
	}
	if e.Prev != s.Hash || s.Seq != 0 && seq != s.Seq+1 {
		return nil, fmt.Errorf("entry %d behind %d: %w", seq, s.Seq, ErrFork)
	}
	return e, s.apply(seq, e, msg)
}

// apply folds an entry that continues the chain.
func (s *State) apply(seq uint64, e *Entry, msg []byte) error {
	var what error
	switch b := e.Body.(type) {
	case *Claim:
		s.applyClaim(seq, b)
	case *Events:
		s.applyEvents(seq, b)
	case *Intent:
		s.applyIntent(b)
	case *Done:
		what = s.applyDone(b)
	case *Superseded:
		what = s.applySuperseded(b)
	case *Adopted:
		s.applyAdopted(b)
	case *Subject:
		s.Subject = &b.Seq
	case *ManifestWritten:
		s.applyManifest(b)
	case *Placed:
		s.applyPlaced(b)
	case *ColumnsAdded:
		s.applyColumns(b)
	case *Snapshot:
		s.applySnapshot(seq, b)
	}
	if what != nil {
		return fmt.Errorf("entry %d: %w: %w", seq, ErrFork, what)
	}
	s.Seq, s.Hash = seq, HashOf(msg)
	if s.BytesSince += int64(len(msg)); e.Kind == KindSnapshot {
		s.BytesSince = 0
	}
	return nil
}

// applyClaim notes the owner. A sink that the stream never had begins with what follows.
func (s *State) applyClaim(seq uint64, c *Claim) {
	first := s.Claim.Epoch == 0
	hour := layout.HourOf(c.Date.Time())
	if first {
		s.Began, s.Closed, s.Whole = hour, hour, c.FromStart && c.Lost == nil
	}
	switch {
	case !c.Objects: // an object that is there after all is found when there are objects again
		s.Parts, s.Intents = map[PartKey]Part{}, nil
	case !s.Claim.Objects && !first:
		s.ObjectsSince = hour
		if s.Head.N == 0 {
			s.Closed = hour
		}
		s.Lost = append(s.Lost, Lost{
			ID: fmt.Sprintf("archive-objects-off-%d", c.Epoch), Why: "there were no objects", Since: s.Closed, Until: hour,
		})
	}
	if c.Resumed && !first {
		s.resume(c, hour)
	}
	switch {
	case !c.Subject:
		s.Subject, s.SubjectSince = nil, 0
	case s.Subject == nil:
		at := seq
		if s.Subject = &at; !first {
			s.SubjectSince = hour
		}
	}
	if c.Lost != nil {
		s.Lost = append(s.Lost, *c.Lost)
		// The hours are closed although nothing of them is known, so that manifests say that they
		// are incomplete.
		s.lowerClosed(cmp.Or(c.Lost.Since, hour-keepShards))
	}
	s.Claim = *c
}

func (s *State) applyEvents(seq uint64, b *Events) {
	for key, sh := range b.Shards {
		s.Shards[key] = sh
		s.Newest = max(s.Newest, sh.Hour)
	}
	for hour, c := range b.Counts {
		sum, known := s.Counts[hour]
		sum.Added = sum.Added || !known && s.Forgotten(hour)
		sum.add(c)
		s.Counts[hour] = sum
		s.lowerClosed(hour)
	}
	for i := range b.Groups {
		s.lowerClosed(b.Groups[i].Hour)
		if s.Claim.Objects {
			s.addGroup(seq, &b.Groups[i])
		}
	}
	s.forget()
}

// lowerClosed begins the first manifest with the oldest record, which may be older than the first
// claim.
func (s *State) lowerClosed(hour layout.Hour) {
	if s.Head.N == 0 {
		s.Closed = min(s.Closed, hour)
	}
}

func (s *State) addGroup(seq uint64, g *Group) {
	key := PartKey{g.Class, g.Hour}
	p, ok := s.Parts[key]
	if !ok {
		p = Part{First: seq, Coverage: coverage.Set{}}
	}
	p.Last = seq
	p.Events += g.Events
	p.Bytes += int64(g.Length)
	p.Coverage.Union(g.Coverage)
	s.Parts[key] = p
}

// cover notes what an object covers that is there.
func (s *State) cover(class transform.EventClass, hour layout.Hour, c coverage.Set) {
	if s.Covered[class] == nil {
		s.Covered[class] = coverage.Set{}
	}
	s.Covered[class].Union(c)
	for key := range c { // a dead letter of an old hour may be archived now, and be retried once more
		s.CoveredAt[key] = max(s.CoveredAt[key], hour, s.Newest)
	}
}

// holds reports whether an event is in an object, or waits for one.
func (s *State) holds(class transform.EventClass, hour layout.Hour, key string, n change.SequenceNumber) bool {
	for i := range s.Intents {
		if s.Intents[i].Class == class && s.Intents[i].Coverage.Contains(key, n) {
			return true
		}
	}
	return s.Covered[class].Contains(key, n) || s.Parts[PartKey{class, hour}].Coverage.Contains(key, n)
}

// applyIntent moves the events of an object out of its part.
func (s *State) applyIntent(b *Intent) {
	key := PartKey{b.Class, b.Hour}
	p := s.Parts[key]
	p.Events -= b.Events
	p.Bytes -= b.Stored
	p.First = b.Last + 1
	if p.Coverage != nil {
		p.Coverage.Subtract(b.Coverage)
		s.leaveOut(p.Coverage, b.Class)
	}
	if s.Parts[key] = p; len(p.Coverage) == 0 { // Events counts those, too, that an adopted object has
		delete(s.Parts, key)
	}
	if b.Events > 0 { // else there will be no object: adopted ones have all of them
		s.Intents = append(s.Intents, *b)
	}
}

// takeIntent removes an intent.
func (s *State) takeIntent(name string) (Intent, error) {
	at := slices.IndexFunc(s.Intents, func(i Intent) bool { return i.Name == name })
	if at < 0 {
		return Intent{}, fmt.Errorf("no intent of object %s", name)
	}
	i := s.Intents[at]
	s.Intents = slices.Delete(s.Intents, at, at+1)
	return i, nil
}

func (s *State) applyDone(b *Done) error {
	i, err := s.takeIntent(b.Name)
	if err != nil {
		return err
	}
	s.cover(i.Class, i.Hour, i.Coverage)
	s.Objects = append(s.Objects, Object{Class: i.Class, Hour: i.Hour, Object: manifest.Object{
		Name: b.Name, Bytes: b.Bytes, SHA256: b.SHA256, Events: i.Events, Digest: i.Digest,
	}})
	return nil
}

// applySuperseded puts the events of an object back into their part.
func (s *State) applySuperseded(b *Superseded) error {
	i, err := s.takeIntent(b.Name)
	if err != nil {
		return err
	}
	key := PartKey{i.Class, i.Hour}
	p, ok := s.Parts[key]
	if !ok {
		p.Coverage = coverage.Set{}
	}
	p.First, p.Last = i.First, max(p.Last, i.Last)
	p.Events += i.Events
	p.Bytes += i.Stored
	p.Coverage.Union(i.Coverage)
	s.leaveOut(p.Coverage, i.Class)
	if s.Parts[key] = p; len(p.Coverage) == 0 {
		delete(s.Parts, key)
	}
	return nil
}

func (s *State) applyAdopted(b *Adopted) {
	s.cover(b.Class, b.Hour, b.Coverage)
	// The stream may have the same events: its end was lost, with the entries that said what became
	// of them.
	if p, ok := s.Parts[PartKey{b.Class, b.Hour}]; ok {
		if p.Coverage.Subtract(b.Coverage); len(p.Coverage) == 0 {
			delete(s.Parts, PartKey{b.Class, b.Hour})
		}
	}
	if b.Class == transform.ClassHealed { // its hour is that of a gap, long before the loss
		s.noteLoss(s.Closed)
	} else {
		s.noteLoss(b.Hour)
	}
	s.Newest = max(s.Newest, b.Hour)
	s.Objects = append(s.Objects, Object{Object: b.Object, Class: b.Class, Hour: b.Hour})
}

func (s *State) applyManifest(b *ManifestWritten) {
	if s.Head.N == 0 && b.Closed > 0 { // a new stream's first claim is no reason to leave hours out
		s.Closed = b.Closed
	}
	s.Head, s.Closed = b.Head, max(s.Closed, b.Closed)
	named := make(map[string]bool, len(b.Named))
	for _, name := range b.Named {
		named[name] = true
	}
	s.Objects = slices.DeleteFunc(s.Objects, func(o Object) bool { return named[o.Name] })
	s.forgetCounts()
}

// Needed returns the lowest entry that is needed: those before it may be deleted.
func (s *State) Needed() uint64 {
	least := s.SnapshotFirst
	for _, p := range s.Parts {
		least = min(least, p.First)
	}
	for i := range s.Intents {
		least = min(least, s.Intents[i].First)
	}
	if s.Subject != nil {
		least = min(least, *s.Subject+1)
	}
	return least
}

// Waiting returns how many events are in no object yet, and the bytes of their blocks.
func (s *State) Waiting() (events, bytes int64) {
	for _, p := range s.Parts {
		events, bytes = events+p.Events, bytes+p.Bytes
	}
	for i := range s.Intents {
		events, bytes = events+s.Intents[i].Events, bytes+s.Intents[i].Stored
	}
	return events, bytes
}
