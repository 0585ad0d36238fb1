package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The layout of a record in a block of the server's file store: its length, with the highest bit
// set if there are headers; its sequence, with the two highest bits set if it is erased or a
// tombstone; a time; the length of the subject; then subject, headers and data, and a checksum.
const (
	recordHeader = 4 + 8 + 8 + 2
	leastRecord  = recordHeader + 8
	withHeaders  = 1 << 31
	erased       = 1 << 63
	tombstone    = 1 << 62
)

// holdsMessages reports whether a block may hold a message. A new stream that begins at a sequence
// has a tombstone before it, which is none. What is not understood, such as a compressed block,
// counts as a message.
func holdsMessages(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("open block: %w", err)
	}
	defer func() { _ = f.Close() }()
	for {
		var record [leastRecord]byte
		_, err := io.ReadFull(f, record[:])
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return false, nil // the kill cut it off: shorter than the shortest message
		}
		if err != nil {
			return false, fmt.Errorf("read block: %w", err)
		}
		length := binary.LittleEndian.Uint32(record[:]) &^ withHeaders
		sequence := binary.LittleEndian.Uint64(record[4:])
		if length != leastRecord || sequence&(erased|tombstone) == 0 {
			return true, nil
		}
	}
}
