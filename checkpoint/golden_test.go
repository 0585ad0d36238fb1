package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
)

// goldenLog is the log of a simulated history as a build wrote it whose newest format that was,
// with foreign messages and torn snapshots in between.
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
	l := &memLog{format: format}
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		l.msgs = append(l.msgs, b[n:n+int(size)])
		b = b[n+int(size):]
	}
	return l
}

var goldenSeed = flag.Uint64("golden.seed", 0, "write the golden log of the newest format anew, from this history")

// writeGolden writes the log of a simulated history, and the state that it folds to.
func writeGolden(t *testing.T, seed uint64) {
	t.Helper()
	l := &memLog{}
	history(t, seed, l)
	var b []byte
	for _, m := range l.msgs {
		b = append(binary.AppendUvarint(b, uint64(len(m))), m...)
	}
	name := fmt.Sprintf("testdata/format%d", newestFormat)
	err := errors.Join(os.WriteFile(name+".log.s2", s2.EncodeBest(nil, b), 0o600),
		os.WriteFile(name+".state.json", []byte(stateJSON(l.fold(t))+"\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
}

// TestLogOfEachFormatFoldsAsItAlwaysDid: the state beside each log is what the build that wrote it
// folded it to.
func TestLogOfEachFormatFoldsAsItAlwaysDid(t *testing.T) {
	if *goldenSeed > 0 {
		writeGolden(t, *goldenSeed)
	}
	for format := 1; format <= newestFormat; format++ {
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
