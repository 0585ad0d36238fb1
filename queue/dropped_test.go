package queue

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/queue/conn"
	"github.com/tailrace-cdc/replicator/queue/deadletter"
)

// idsIn returns the ids of the letters of a store, and compares their number with its count.
func idsIn(t *testing.T, d *deadletter.Store) (ids []string) {
	t.Helper()
	for l, err := range d.All(testContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	if n, err := d.Count(testContext(t)); n != len(ids) || err != nil {
		t.Errorf("count %d, %v, and %d are listed", n, err, len(ids))
	}
	return ids
}

// lettersOf opens the letters of a log that another process owns too, and some letters to store.
func lettersOf(t *testing.T, n int) (log *Log, owner *deadletter.Store, letters []*deadletter.Letter) {
	t.Helper()
	log = createLog(t, embeddedQueue(t))
	owner, err := log.DeadLetters(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changesOf(t, n) {
		letters = append(letters, deadletter.New("Orders", "bigtable", c, "mapping", "no rule", time.Now()))
	}
	return log, owner, letters
}

func command(t *testing.T, log *Log) *deadletter.Store {
	t.Helper()
	d, err := log.ExistingDeadLetters(testContext(t))
	if d == nil || err != nil {
		t.Fatalf("no letters: %v", err)
	}
	return d
}

// Attack 76: the change of a dropped letter is replayed, by an owner that knows of it and by one
// that does not yet, as a Put that arrives late.
func TestDroppedLetterStaysDropped(t *testing.T) {
	ctx := testContext(t)
	log, owner, letters := lettersOf(t, 4)
	for _, l := range letters {
		if err := owner.Put(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	ids := idsIn(t, owner)
	if err := command(t, log).Drop(ctx, ids[0], ids[2], "gone before"); err != nil {
		t.Fatal(err)
	}
	if err := owner.Put(ctx, letters[0]); err != nil { // it has not heard of the drop
		t.Fatal(err)
	}
	if _, dropped, err := owner.Look(ctx); !dropped || err != nil {
		t.Fatalf("the owner does not hear of the drop: %v", err)
	}
	want := []string{ids[1], ids[3]}
	if d := cmp.Diff(want, idsIn(t, owner)); d != "" {
		t.Errorf("after a late Put (-want +got):\n%s", d)
	}
	if err := owner.Put(ctx, letters[2]); !errors.Is(err, deadletter.ErrDropped) {
		t.Errorf("a replay: %v", err)
	}
	next, err := log.DeadLetters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*deadletter.Store{"the next owner": next, "a command": command(t, log)} {
		if d := cmp.Diff(want, idsIn(t, d)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if err := next.Put(ctx, letters[0]); !errors.Is(err, deadletter.ErrDropped) {
		t.Errorf("a replay by the next owner: %v", err)
	}
	if err := next.Forget(ctx, ids[1]); err != nil { // it was applied: what refuses it again is news
		t.Fatal(err)
	}
	if err := next.Put(ctx, letters[1]); err != nil || !slices.Contains(idsIn(t, next), ids[1]) {
		t.Errorf("a letter that was applied, and is refused again: %v", err)
	}
}

// TestDroppedIsForgottenAfterADay: the lists would grow for ever. Only the owner deletes them.
func TestDroppedIsForgottenAfterADay(t *testing.T) {
	ctx := testContext(t)
	log, owner, letters := lettersOf(t, 1)
	if err := owner.Put(ctx, letters[0]); err != nil {
		t.Fatal(err)
	}
	if err := command(t, log).Drop(ctx, letters[0].ID); err != nil {
		t.Fatal(err)
	}
	o := log.deadLetters()
	o.KeepDropped = time.Nanosecond
	late, err := deadletter.OpenExisting(ctx, log.q.conn, o)
	if err != nil {
		t.Fatal(err)
	}
	messages := func() uint64 {
		st, err := log.q.conn.JS.Stream(ctx, o.Stream)
		if err != nil {
			t.Fatal(err)
		}
		return st.CachedInfo().State.Msgs
	}
	if idsIn(t, late); messages() != 1 {
		t.Errorf("a command has deleted the list")
	}
	if late, err = deadletter.Open(ctx, log.q.conn, o); err != nil {
		t.Fatal(err)
	}
	if idsIn(t, late); messages() != 0 {
		t.Errorf("%d lists are left after their time", messages())
	}
	if err := late.Put(ctx, letters[0]); err != nil {
		t.Errorf("a day later: %v", err)
	}
}

// TestLettersAreDroppedFromAFullStream: the list of what was dropped follows the letters, which
// made room for it.
func TestLettersAreDroppedFromAFullStream(t *testing.T) {
	ctx := testContext(t)
	log := createLog(t, embeddedQueue(t))
	o := log.deadLetters()
	cfg := conn.KeyedConfig(o.Stream, o.Subject, o.Pipeline)
	cfg.MaxBytes, cfg.Subjects = 2000, append(cfg.Subjects, o.Subject+"dropped.*")
	if _, err := log.q.conn.CreateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	owner, err := log.DeadLetters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var first *deadletter.Letter
	for _, c := range changesOf(t, 20) {
		l := deadletter.New("Orders", "bigtable", c, "mapping", "no rule", time.Now())
		if err = owner.Put(ctx, l); err != nil {
			break
		}
		if first == nil {
			first = l
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Fatalf("put into full letters: %v", err)
	}
	if err := command(t, log).Drop(ctx, idsIn(t, owner)...); err != nil {
		t.Fatal(err)
	}
	if left := idsIn(t, owner); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if err := owner.Put(ctx, first); !errors.Is(err, deadletter.ErrDropped) {
		t.Errorf("a replay: %v", err)
	}
}

// TestLettersAreListedWithoutTheirCleanUp: Rule 15. What was dropped, and lists that have served
// their time, are deleted by the way; what is listed does not depend on it.
func TestLettersAreListedWithoutTheirCleanUp(t *testing.T) {
	ctx := testContext(t)
	log, owner, letters := lettersOf(t, 2)
	for _, l := range letters {
		if err := owner.Put(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	ids := idsIn(t, owner)
	if err := command(t, log).Drop(ctx, ids[0]); err != nil {
		t.Fatal(err)
	}
	back := slices.IndexFunc(letters, func(l *deadletter.Letter) bool { return l.ID == ids[0] })
	if err := owner.Put(ctx, letters[back]); err != nil {
		t.Fatal(err)
	}
	o := log.deadLetters()
	st, err := log.q.conn.JS.Stream(ctx, o.Stream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := st.CachedInfo().Config
	cfg.DenyPurge = true
	if _, err := log.q.conn.JS.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for l, err := range owner.All(ctx) {
		if err != nil {
			t.Fatalf("a dropped letter that cannot be deleted hides the others: %v", err)
		}
		listed = append(listed, l.ID)
	}
	if d := cmp.Diff([]string{ids[1]}, listed); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	o.KeepDropped = time.Nanosecond
	late, err := deadletter.OpenExisting(ctx, log.q.conn, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := late.Count(ctx); err != nil {
		t.Errorf("of a command: %v", err)
	}
}
