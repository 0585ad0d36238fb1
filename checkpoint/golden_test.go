package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

// goldenLog is the log of a simulated history as a build wrote it whose newest format that was, with foreign messages
// and torn snapshots in between.
func goldenLog(t testing.TB, format int) *memLog {
	t.Helper()
	packed, err := os.ReadFile(fmt.Sprintf("testdata/format%d.log.s2", format))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s2.Decode(nil, packed)
	if err != nil {
		t.Fatal(err)
	}
	l := &memLog{old: format == 1, format: format}
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		l.msgs = append(l.msgs, b[n:n+int(size)])
		b = b[n+int(size):]
	}
	return l
}

// TestLogOfEachFormatFoldsAsItAlwaysDid: the state beside each log is what the build that wrote it folded it to.
func TestLogOfEachFormatFoldsAsItAlwaysDid(t *testing.T) {
	for format := 1; format <= Format; format++ {
		want, err := os.ReadFile(fmt.Sprintf("testdata/format%d.state.json", format))
		if err != nil {
			t.Fatalf("format %d needs a log of the build that wrote it: %v", format, err)
		}
		l := goldenLog(t, format)
		for what, s := range map[string]*State{"folded": l.fold(t), "restored": l.restored(t)} {
			if d := cmp.Diff(string(bytes.TrimSpace(want)), stateJSON(s)); d != "" {
				t.Errorf("format %d, %s: %s", format, what, d)
			}
			if s.Format != format {
				t.Errorf("format %d, %s: format %d", format, what, s.Format)
			}
		}
	}
}

// TestLogOfEachFormatGoesOnInIt: a build of that format reads what this one adds to its log, and a build of the format
// before it, wherever it begins to read, refuses an entry before it misreads one, and says what to do.
func TestLogOfEachFormatGoesOnInIt(t *testing.T) {
	for format := 1; format <= Format; format++ {
		l := goldenLog(t, format)
		was := len(l.msgs)
		w, err := claim(t, l, l.restored(t), "newer", 7)
		if err != nil {
			t.Fatal(err)
		}
		w.must(t, &Beat{Date: w.s.Date + 2})
		if err := w.snapshot(t, 1<<20); err != nil {
			t.Fatal(err)
		}
		for i, m := range l.msgs[was:] {
			if _, err := decode(m, format); err != nil {
				t.Errorf("entry %d after a log of format %d: %v", i+1, format, err)
			}
		}
		sameState(t, fmt.Sprint("format ", format), l.fold(t), l.restored(t))
		if format == 1 {
			continue
		}
		newer := (*NewerFormatError)(nil)
		if _, err := decode(l.msgs[len(l.msgs)-1], format-1); !errors.As(err, &newer) || newer.Need != format ||
			!strings.Contains(err.Error(), "upgrade the replicator") {
			t.Errorf("a build of format %d reads a snapshot of format %d: %v", format-1, format, err)
		}
		for _, m := range l.msgs {
			if e, err := Decode(m); err != nil || e.Kind != KindClaim {
				continue // a foreign message
			}
			if _, err := decode(m, format-1); !errors.As(err, &newer) {
				t.Errorf("a build of format %d reads the first claim of a log of format %d: %v", format-1, format, err)
			}
			break
		}
	}
}

// TestLogIsRaisedToEachFormat: a log is raised step by step, and each older build refuses it from then on.
func TestLogIsRaisedToEachFormat(t *testing.T) {
	for from := 1; from < Format; from++ {
		for to := from + 1; to <= Format; to++ {
			l := goldenLog(t, from)
			w, err := claim(t, l, l.restored(t), "newer", 7)
			if err != nil {
				t.Fatal(err)
			}
			parts, err := w.s.UpgradeSnapshot(to, 700)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.appendParts(t, parts); err != nil {
				t.Fatal(err)
			}
			if w.s.Format != to {
				t.Errorf("raised from %d to %d: format %d", from, to, w.s.Format)
			}
			for _, m := range l.msgs[len(l.msgs)-len(parts):] {
				if _, err := decode(m, to-1); !errors.As(err, new(*NewerFormatError)) {
					t.Errorf("raised from %d to %d: a build of format %d reads it: %v", from, to, to-1, err)
				}
				if _, err := decode(m, to); err != nil {
					t.Errorf("raised from %d to %d: %v", from, to, err)
				}
			}
			sameState(t, fmt.Sprintf("raised from %d to %d", from, to), l.fold(t), l.restored(t))
		}
	}
}
