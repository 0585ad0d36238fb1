package object

import (
	"bytes"
	"fmt"
	"io"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/sink/archive/layout"
)

// Verify reads an object and returns its footer and what is wrong: the count and the digest must
// match the footer, each event must be in the footer's part and coverage, and no id may occur
// twice. Problems are sentences. An error means that the object cannot be read to its end.
func Verify(r io.ReaderAt, size int64) (*Footer, []string, error) {
	foot, all, err := scan(r, size, false)
	if err != nil {
		return nil, nil, err
	}
	v := newVerifier(foot)
	for row, err := range all {
		if err != nil {
			return foot, nil, fmt.Errorf("read event %d: %w", v.n, err)
		}
		v.add(row)
	}
	if v.unordered {
		if err := v.findDuplicates(r, size); err != nil {
			return foot, nil, err
		}
	}
	return foot, v.result(), nil
}

// maxProblems bounds what is said about single events.
const maxProblems = 20

type verifier struct {
	foot      *Footer
	n         int64
	sums      *digest
	problems  []string
	more      int
	key       []byte
	stream    []byte
	shard     []byte
	set       string // coverage.Key of stream and shard
	last      map[string]change.SequenceNumber
	unordered bool
}

func newVerifier(f *Footer) *verifier {
	return &verifier{foot: f, last: map[string]change.SequenceNumber{}, sums: newDigest()}
}

func (v *verifier) add(r *row) {
	v.n++
	v.sums.add(r.id, sumOf(r.item))
	if !bytes.Equal(r.stream, v.stream) || !bytes.Equal(r.shard, v.shard) || v.set == "" {
		v.stream, v.shard = append(v.stream[:0], r.stream...), append(v.shard[:0], r.shard...)
		v.set = coverage.Key(string(r.stream), string(r.shard))
	}
	v.key = append(append(append(v.key[:0], v.set...), '/'), r.sequence...)
	at := change.Millis(r.created).Time()
	if !bytes.Equal(v.key, r.id) {
		v.problem("event %s has the stream, shard and sequence number %s", r.id, v.key)
	}
	if layout.HourOf(at) != v.foot.Part.Hour {
		v.problem("event %s was deleted at %s, outside of the object's hour", r.id, at.UTC())
	}
	n := change.SequenceNumber(r.sequence)
	if !v.foot.Coverage.Contains(v.set, n) {
		v.problem("event %s is outside of the object's coverage", r.id)
	}
	// Events of a shard nearly always rise, and then none is there twice.
	if last, ok := v.last[v.set]; ok && last.Compare(n) >= 0 {
		v.unordered = true
	}
	v.last[v.set] = n
}

func (v *verifier) problem(format string, args ...any) {
	if len(v.problems) == maxProblems {
		v.more++
		return
	}
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

func (v *verifier) findDuplicates(r io.ReaderAt, size int64) error {
	_, all, err := scan(r, size, false)
	if err != nil {
		return err
	}
	seen := make(map[string]struct{}, v.n)
	for row, err := range all {
		if err != nil {
			return err
		}
		if _, ok := seen[string(row.id)]; ok {
			v.problem("event %s is there twice", row.id)
		}
		seen[string(row.id)] = struct{}{}
	}
	return nil
}

func (v *verifier) result() []string {
	out := v.problems
	if v.more > 0 {
		out = append(out, fmt.Sprintf("%d more events have problems", v.more))
	}
	if v.n != v.foot.Events {
		out = append(out, fmt.Sprintf("object holds %d events, its footer says %d", v.n, v.foot.Events))
	}
	if d := v.sums.String(); d != v.foot.Digest {
		out = append(out, fmt.Sprintf("digest of the events is %s, its footer says %s", d, v.foot.Digest))
	}
	return out
}
