package checkpoint

import (
	"fmt"

	"github.com/klauspost/compress/s2"
)

// maxRatio and maxFree cap the buffer that is allocated for a claimed size, the former as a
// multiple of the compressed size. The state of 180,000 shards is compressed to an eleventh; one
// with a long text of one character, such as an error that quotes an item, to a thousandth and
// less. No entry that brings such a text is larger than maxFree.
const (
	maxRatio = 1000
	maxFree  = 8 << 20
)

// compress compresses a state.
func compress(state []byte) []byte { return s2.EncodeBetter(nil, state) }

// decompress returns what Encode compressed. Data that claims to hold more than any state
// compresses to is an error.
func decompress(data []byte) ([]byte, error) {
	n, err := s2.DecodedLen(data)
	if err != nil {
		return nil, fmt.Errorf("decompress state: %w", err)
	}
	if n > max(maxRatio*len(data), maxFree) {
		return nil, fmt.Errorf("decompress state: %d bytes claim to hold %d", len(data), n)
	}
	state, err := s2.Decode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("decompress state: %w", err)
	}
	return state, nil
}
