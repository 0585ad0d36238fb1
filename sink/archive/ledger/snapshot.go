package ledger

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// partialSnapshot is a snapshot that still lacks its last part.
type partialSnapshot struct {
	first uint64
	next  int
}

// SnapshotParts returns the state in parts of at most size bytes, for entries that follow each
// other.
func (s *State) SnapshotParts(size int) ([][]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	data := s2.Encode(nil, text)
	var parts [][]byte
	for len(data) > size {
		parts, data = append(parts, data[:size]), data[size:]
	}
	return append(parts, data), nil
}

// applySnapshot notes a part. A complete snapshot equals the state, so it changes nothing.
func (s *State) applySnapshot(seq uint64, b *Snapshot) {
	if b.Part == 0 {
		s.snapshot = &partialSnapshot{first: seq}
	}
	p := s.snapshot
	if p == nil || p.first != b.First && b.Part > 0 || p.next != b.Part {
		s.snapshot = nil // the rest of one that was given up
		return
	}
	if p.next++; p.next == b.Parts {
		s.SnapshotFirst, s.snapshot = p.first, nil
	}
}

// errSnapshot means that a snapshot is not complete, or not readable.
var errSnapshot = errors.New("snapshot of the archive is not complete")

// maxStateRatio and maxStateFree cap the buffer that is allocated for the size that a snapshot
// claims, the former as a multiple of its compressed size: one long text of one character is
// compressed to a thousandth and less.
const (
	maxStateRatio = 1000
	maxStateFree  = 8 << 20
)

// hasNull reports whether a map that the fold writes into was null in a snapshot. No build writes
// that.
func (s *State) hasNull() bool {
	for _, set := range s.Covered {
		if set == nil {
			return true
		}
	}
	for _, p := range s.Parts {
		if p.Coverage == nil {
			return true
		}
	}
	return s.Shards == nil || s.Parts == nil || s.Counts == nil || s.Covered == nil || s.CoveredAt == nil
}

// Restore returns the state as a snapshot's last part left it. parts are its messages, the first at
// sequence first.
func Restore(first uint64, parts [][]byte) (*State, error) {
	var data []byte
	var hash Hash
	for n, msg := range parts {
		e, err := Decode(msg)
		if err != nil {
			return nil, err
		}
		b, ok := e.Body.(*Snapshot)
		if !ok || b.Part != n || b.Parts != len(parts) {
			return nil, errSnapshot
		}
		data, hash = append(data, e.Data...), HashOf(msg)
	}
	if n, err := s2.DecodedLen(data); err != nil || n > max(maxStateRatio*len(data), maxStateFree) {
		return nil, fmt.Errorf("%w: %d bytes claim to hold %d", errSnapshot, len(data), n)
	}
	text, err := s2.Decode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	s := New()
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%w: %w", errSnapshot, err)
	}
	if s.hasNull() {
		return nil, errSnapshot
	}
	s.Seq, s.Hash, s.SnapshotFirst = first+uint64(len(parts))-1, hash, first
	return s, nil
}
