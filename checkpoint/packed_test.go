package checkpoint

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
)

func TestClaimedSizeIsNotTrusted(t *testing.T) {
	state := bytes.Repeat([]byte(`{"id":"shardId-00000001790000000000-0000abcd","phase":"open"},`), 1000)
	if got, err := decompress(compress(state)); err != nil || !bytes.Equal(got, state) {
		t.Errorf("%d of %d bytes, %v", len(got), len(state), err)
	}
	bomb := binary.AppendUvarint(nil, 1<<32-1)
	if _, err := decompress(append(bomb, "xxxx"...)); err == nil || !strings.Contains(err.Error(), "claim to hold") {
		t.Errorf("9 bytes that claim to hold 4 GiB: %v", err)
	}
}

// A state may hold one long text, such as the reason of a halt that quotes an item of 400 KB.
func TestStateOfOneCharacterIsReadAgain(t *testing.T) {
	for _, n := range []int{400 << 10, 7 << 20} {
		state := []byte(`{"reason":"` + strings.Repeat("x", n) + `"}`)
		if got, err := decompress(compress(state)); err != nil || !bytes.Equal(got, state) {
			t.Errorf("%d of %d bytes, %v", len(got), len(state), err)
		}
	}
}
