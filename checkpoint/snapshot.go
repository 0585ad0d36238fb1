package checkpoint

import (
	"errors"
	"fmt"
)

// minSnapshotVolume is the least volume of log between two snapshots, in bytes.
const minSnapshotVolume = 4 << 20

// SnapshotDue reports whether enough log was written since the last snapshot: max(4 MiB, 4 × its
// size).
func (s *State) SnapshotDue(lastSize int) bool { return s.SnapshotDueAfter(0, lastSize) }

// SnapshotDueAfter is SnapshotDue after one more entry of so many bytes.
func (s *State) SnapshotDueAfter(bytes, lastSize int) bool {
	return s.BytesSinceSnapshot+int64(bytes) >= max(minSnapshotVolume, 4*int64(lastSize))
}

// SnapshotPart is one part of a snapshot, ready to be appended as an entry. Part 0 carries no
// First; the writer sets it in the others, once part 0 has its sequence.
type SnapshotPart struct {
	Body *Snapshot
	Data []byte
}

// Snapshot writes the whole state, in the format of the log, in parts of at most maxPart bytes of
// data.
func (s *State) Snapshot(maxPart int) ([]SnapshotPart, error) {
	return s.encodeParts(max(1, s.Format), maxPart)
}

// UpgradeSnapshot is Snapshot in a newer format. Storing it raises the log to that format.
func (s *State) UpgradeSnapshot(format, maxPart int) ([]SnapshotPart, error) {
	return s.encodeParts(format, maxPart)
}

// encodeParts encodes the state and cuts it. The data begins with the format.
func (s *State) encodeParts(format, maxPart int) ([]SnapshotPart, error) {
	if maxPart < 1 {
		return nil, fmt.Errorf("encode snapshot: parts of %d bytes", maxPart)
	}
	b, err := encodeState(s)
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	b = append([]byte{byte(format)}, compress(b)...)
	var parts []SnapshotPart
	for len(b) > 0 || len(parts) == 0 {
		n := min(len(b), maxPart)
		parts = append(parts, SnapshotPart{Body: &Snapshot{Part: len(parts), Format: format}, Data: b[:n]})
		b = b[n:]
	}
	for _, p := range parts {
		p.Body.Parts = len(parts)
	}
	return parts, nil
}

// Restore rebuilds the state that a complete snapshot holds, as it was just before part 0 at
// sequence first. The caller folds the parts themselves and what follows them.
func Restore(first uint64, msgs [][]byte) (*State, error) {
	s, err := restore(first, msgs)
	if err != nil {
		return nil, fmt.Errorf("restore snapshot at %d: %w", first, err)
	}
	return s, nil
}

// restore is Restore without the context of its errors.
func restore(first uint64, msgs [][]byte) (*State, error) {
	if len(msgs) == 0 {
		return nil, errors.New("no parts")
	}
	var data []byte
	entries := make([]*Entry, len(msgs))
	for i, msg := range msgs {
		e, err := Decode(msg)
		if err != nil {
			return nil, err
		}
		b, ok := e.Body.(*Snapshot)
		if !ok || b.Part != i || b.Parts != len(msgs) {
			return nil, fmt.Errorf("part %d is missing", i)
		}
		if i > 0 && b.First != first {
			return nil, fmt.Errorf("part %d belongs to another one", i)
		}
		entries[i], data = e, append(data, e.Data...)
	}
	s, err := decodeSnapshot(data)
	if err != nil {
		return nil, err
	}
	s.Seq, s.Hash = first-1, entries[0].Prev
	s.raiseFormat(FormatOf(entries[0].Body))
	chain := s.Chain // Rule 2: only the owner that the state names may have written it, in one go
	for i, e := range entries {
		if ok, err := chain.Accept(e, msgs[i]); err != nil {
			return nil, err
		} else if !ok {
			return nil, fmt.Errorf("part %d is not by the owner of the log, or belongs to another one", i)
		}
	}
	return s, nil
}

// decodeSnapshot decodes the data of all parts, joined.
func decodeSnapshot(data []byte) (*State, error) {
	if len(data) == 0 {
		return nil, errors.New("empty")
	}
	if int(data[0]) > Format { // Rule 11
		return nil, &NewerFormatError{Need: int(data[0]), Reads: Format}
	}
	if data[0] == 0 {
		return nil, errors.New("0 is not a format")
	}
	b, err := decompress(data[1:])
	if err != nil {
		return nil, err
	}
	return decodeState(b)
}

// applySnapshot notes where the last complete snapshot lies. Its content is the state itself by
// construction.
func (s *State) applySnapshot(seq uint64, b *Snapshot) {
	if b.Part == 0 {
		s.partFirst, s.partNext = seq, 0
	}
	// Restore takes parts that stand one after the other. The log is never trimmed below an
	// interrupted snapshot.
	if b.Part < 0 || b.Part != s.partNext || seq != s.partFirst+uint64(b.Part) || b.Part > 0 && b.First != s.partFirst {
		s.partNext = -1
		return
	}
	s.partNext++
	if s.partNext == b.Parts {
		s.SnapshotFirst, s.SnapshotLast, s.BytesSinceSnapshot = s.partFirst, seq, 0
		s.raiseFormat(FormatOf(b))
	}
}

// raiseFormat makes the state one of a newer format, at the end of the snapshot that raises the
// log. What a newer format stores differently is converted here. Restore calls it too, so a second
// call must change nothing.
func (s *State) raiseFormat(format int) { s.Format = max(s.Format, format) }
