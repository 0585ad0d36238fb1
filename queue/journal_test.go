package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/queue/journal"
)

// archiveOf opens the archive's stream of a new log.
func archiveOf(t *testing.T, q *Queue) *journal.Journal {
	t.Helper()
	l, err := q.CreateLog(testContext(t), "Sessions", "token")
	if err != nil {
		t.Fatal(err)
	}
	j, err := l.Archive(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func withArchive(o *Options) { o.ArchiveMaxBytes = 1 << 20 }

// ends returns where a journal ends.
func ends(t *testing.T, j *journal.Journal) journal.End {
	t.Helper()
	info, err := j.Info(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	_, id, err := j.At(testContext(t), info.Last)
	if errors.Is(err, journal.ErrGap) {
		return journal.End{Last: info.Last}
	}
	if err != nil {
		t.Fatal(err)
	}
	return journal.End{Last: info.Last, ID: id}
}

func appendTo(t *testing.T, j *journal.Journal, at journal.End, text string) journal.End {
	t.Helper()
	end, err := j.Append(testContext(t), at, false, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestJournalIsReadInItsOrderByWhoWaits(t *testing.T) {
	j := archiveOf(t, embeddedIn(t, t.TempDir(), withArchive))
	at := ends(t, j)
	r := j.Read(at.Last + 1)
	defer r.Close(context.Background())
	for i := range 50 {
		at = appendTo(t, j, at, fmt.Sprint(i))
		seq, msg, err := r.Next(testContext(t))
		if err != nil || seq != at.Last || string(msg) != fmt.Sprint(i) {
			t.Fatalf("read %d %q, %v; stored %d at %d", seq, msg, err, i, at.Last)
		}
	}
}

// TestOvertakenWriterOfAJournalStoresNothing: Rule 2.
func TestOvertakenWriterOfAJournalStoresNothing(t *testing.T) {
	j := archiveOf(t, embeddedIn(t, t.TempDir(), withArchive))
	old := ends(t, j)
	now := appendTo(t, j, old, "a")
	if _, err := j.Append(testContext(t), old, false, []byte("late")); !errors.Is(err, journal.ErrOvertaken) {
		t.Errorf("a writer that was overtaken got %v", err)
	}
	// A store that went back and was filled up again has the same number and another id.
	other := now
	other.ID = "another"
	if _, err := j.Append(testContext(t), other, false, []byte("late")); !errors.Is(err, journal.ErrOvertaken) {
		t.Errorf("a writer of another history got %v", err)
	}
	if got := ends(t, j); got != now {
		t.Errorf("the journal ends at %v, not at %v", got, now)
	}
}

func TestFullJournalStoresNothingAndReadsOn(t *testing.T) {
	j := archiveOf(t, embeddedIn(t, t.TempDir(), withArchive))
	at, err := ends(t, j), error(nil)
	for n := 0; err == nil; n++ {
		if n > 100 {
			t.Fatal("the journal has no limit")
		}
		at, err = j.Append(testContext(t), at, false, make([]byte, 100<<10))
	}
	if !errors.Is(err, journal.ErrFull) {
		t.Fatalf("a full journal: %v", err)
	}
	if err := j.Trim(testContext(t), at.Last); err != nil {
		t.Fatal(err)
	}
	if at = appendTo(t, j, at, "there is room again"); at != ends(t, j) {
		t.Errorf("ends at %v, not at %v", ends(t, j), at)
	}
}

func TestReaderOfATrimmedJournalSaysSo(t *testing.T) {
	j := archiveOf(t, embeddedIn(t, t.TempDir(), withArchive))
	at := ends(t, j)
	first := at.Last + 1
	for range 3 {
		at = appendTo(t, j, at, "x")
	}
	if err := j.Trim(testContext(t), at.Last); err != nil {
		t.Fatal(err)
	}
	r := j.Read(first)
	defer r.Close(context.Background())
	ctx, cancel := context.WithTimeout(testContext(t), time.Minute)
	defer cancel()
	if seq, _, err := r.Next(ctx); !errors.Is(err, journal.ErrGap) {
		t.Errorf("read %d, %v from what was deleted", seq, err)
	}
}

func TestNewestSnapshotIsFound(t *testing.T) {
	j := archiveOf(t, embeddedIn(t, t.TempDir(), withArchive))
	if seq, msg, err := j.Newest(testContext(t)); seq != 0 || msg != nil || err != nil {
		t.Fatalf("a snapshot in an empty journal: %d %q %v", seq, msg, err)
	}
	at := appendTo(t, j, ends(t, j), "x")
	at, err := j.Append(testContext(t), at, true, []byte("state"))
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, j, at, "y")
	if seq, msg, err := j.Newest(testContext(t)); seq != at.Last || string(msg) != "state" || err != nil {
		t.Errorf("found %d %q %v, stored at %d", seq, msg, err, at.Last)
	}
}

// TestArchiveKeepsTheTokenOfItsLog: the log of a recovered table finds its archive again.
func TestArchiveKeepsTheTokenOfItsLog(t *testing.T) {
	q := embeddedIn(t, t.TempDir(), withArchive)
	appendTo(t, archiveOf(t, q), ends(t, archiveOf(t, q)), "x")
	l, err := q.Log(testContext(t), "Sessions")
	if err != nil {
		t.Fatal(err)
	}
	if err := q.DeleteLog(testContext(t), l); err != nil {
		t.Fatal(err)
	}
	if token, err := q.KeptToken(testContext(t), "Sessions"); token != "token" || err != nil {
		t.Errorf("token %q, %v", token, err)
	}
}
