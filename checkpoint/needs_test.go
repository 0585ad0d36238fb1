package checkpoint

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/tailrace-cdc/replicator/change"
)

// needs is what no entry may drop before it is done: the copy's marks, the pending resync, gaps,
// the highest version.
type needs struct {
	top      change.Version
	copy     *CopyState
	resync   *PendingResync
	mapping  string
	switches *Accept  // the mapping that it is to be switched to
	open     []string // gaps for which Bigtable differs
	fence    *Fence
}

func needsOf(s *State) needs {
	n := needs{top: s.TopClock(), mapping: mappingOf(s), switches: s.Accepting, fence: s.Fence}
	if s.Copy != nil {
		c := *s.Copy
		c.Marks = maps.Clone(c.Marks)
		n.copy = &c
	}
	if s.Resync != nil {
		r := *s.Resync
		n.resync = &r
	}
	for i := range s.Gaps {
		if s.BigtableDiffers(&s.Gaps[i]) {
			n.open = append(n.open, s.Gaps[i].ID())
		}
	}
	return n
}

func mappingOf(s *State) string {
	if s.Identity == nil {
		return ""
	}
	return s.Identity.Mapping
}

// keptBy checks the state after an entry.
func (n needs) keptBy(t *testing.T, s *State, e *Entry) {
	t.Helper()
	var body any
	if e != nil {
		body = e.Body
	}
	control, _ := body.(*Control)
	if s.TopClock() < n.top {
		t.Fatalf("entry %d: the highest version goes back from %d to %d", s.Seq, n.top, s.TopClock())
	}
	if c := n.copy; c != nil && s.Copy.ID == c.ID {
		for part, m := range c.Marks {
			if now := s.Copy.Marks[part]; now.Items < m.Items || m.Done && !now.Done {
				t.Fatalf("entry %d: part %d of copy %s goes back from %+v to %+v", s.Seq, part, c.ID, m, now)
			}
		}
		resumed := control != nil && control.Copy != nil && control.Copy.Do == CopyResume
		if c.Canceled && !s.Copy.Canceled ||
			c.Paused && !s.Copy.Paused && !resumed && !s.Copy.Done() {
			t.Fatalf("entry %d: copy %+v goes on as %+v", s.Seq, c, s.Copy)
		}
		marks, ok := body.(*CopyMarks)
		if closes := ok && marks.Closed; c.Delegated > 0 && s.Copy.Delegated < c.Delegated && !closes {
			t.Fatalf("entry %d: workers of copy %s are forgotten by %T", s.Seq, c.ID, body)
		}
	} else if c != nil && !c.Done() && !c.Canceled {
		t.Fatalf("entry %d: copy %s is forgotten", s.Seq, c.ID)
	}
	undone := control != nil && control.Fence != nil && control.Fence.Undo
	if want := n.fenceBehind(s, body); want != nil && (s.Fence == nil && !undone || s.Fence != nil && *s.Fence != *want) {
		t.Fatalf("entry %d: fence %+v becomes %+v, want %+v", s.Seq, n.fence, s.Fence, want)
	}
	healed, _ := body.(*Healed)
	n.resyncKeptBy(t, s, healed)
	waived := control != nil && control.Waive != nil
	if control != nil && control.Verified != nil {
		waived = waived || !slices.ContainsFunc(n.open, func(id string) bool { // it ends doubts, and nothing else
			g := s.GapByID(id)
			return g != nil && g.Doubt == "" && !s.BigtableDiffers(g)
		})
	}
	for _, id := range n.open {
		ends := healed != nil && slices.Contains(healed.Gaps, id) && n.resync != nil && n.resync.ID == healed.ID
		if g := s.GapByID(id); g == nil || !s.BigtableDiffers(g) && !ends && !waived {
			t.Fatalf("entry %d: gap %s is closed by %T", s.Seq, id, body)
		}
	}
	if now := mappingOf(s); now != n.mapping && n.mapping != "" {
		if control == nil || control.Accept == nil || !control.Accept.Done || n.switches == nil || n.switches.To != now {
			t.Fatalf("entry %d: mapping %s becomes %s", s.Seq, n.mapping, now)
		}
	}
}

// fenceBehind returns the fence behind an entry: as it was, with the changes of a frame and the
// note of a certificate.
func (n needs) fenceBehind(s *State, body any) *Fence {
	if n.fence == nil {
		return nil
	}
	want := *n.fence
	switch b := body.(type) {
	case *Frame:
		for _, p := range b.Pages {
			if p.Records > 0 && (want.Behind == 0 || p.Oldest < want.BehindSince) {
				want.BehindSince = p.Oldest
			}
			want.Behind += uint64(p.Records)
		}
	case *Control:
		if b.Certify != nil && want.Certified == 0 && want.Behind == 0 && b.Certify.ID == want.ID {
			want.Certified = max(b.At, s.Date)
		}
	}
	return &want
}

// resyncKeptBy checks that only its own end ends a pending resync, or takes gaps from it.
func (n needs) resyncKeptBy(t *testing.T, s *State, healed *Healed) {
	t.Helper()
	if n.resync == nil {
		return
	}
	ends := healed != nil && healed.ID == n.resync.ID
	if s.Resync == nil {
		if !ends {
			t.Fatalf("entry %d: resync %+v is forgotten", s.Seq, n.resync)
		}
		return
	}
	for _, id := range n.resync.Gaps {
		if !s.Resync.Heals(id) && (!ends || !slices.Contains(healed.Gaps, id)) {
			t.Fatalf("entry %d: the resync heals gap %s no more", s.Seq, id)
		}
	}
	if s.Resync.Above < n.resync.Above || n.resync.Recover && !s.Resync.Recover {
		t.Fatalf("entry %d: resync %+v becomes %+v", s.Seq, n.resync, s.Resync)
	}
}

// refusedByOlder checks that an older build reads a log as long as it is of its format, and
// refuses, wherever it begins to read, the first entry that it could misread.
func refusedByOlder(t *testing.T, l *memLog) {
	t.Helper()
	s := NewState()
	for i, m := range l.msgs {
		was := s.Format
		e, err := s.Apply(uint64(i+1), m)
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			continue
		}
		_, err = decode(m, newestFormat)
		refused := errors.As(err, new(*NewerFormatError))
		beat, _ := e.Body.(*Beat)
		later := beat != nil && beat.Invented || e.Kind == KindSnapshot && was > newestFormat ||
			e.Kind == KindClaim && was == 0 && s.Format > newestFormat
		if later && !refused {
			t.Fatalf("entry %d, %s: an older build reads it", i+1, e.Kind)
		}
		if refused && !later && e.Kind != KindSnapshot { // of an upgrade, perhaps a torn one
			t.Fatalf("entry %d, %s: an older build refuses it: %v", i+1, e.Kind, err)
		}
	}
}
