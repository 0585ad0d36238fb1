package object

import (
	"bytes"
	"testing"

	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// TestPagesAreCompressedAsByTheLibrary: the smaller window finds all that repeats in a page.
func TestPagesAreCompressedAsByTheLibrary(t *testing.T) {
	ours, err := newCodec()
	if err != nil {
		t.Fatal(err)
	}
	library := &parquetzstd.Codec{Level: parquetzstd.SpeedFastest}
	events := several(50)
	var page []byte
	for i := 0; len(page) < encoderWindow*3/4; i++ {
		page = append(page, events[i%50].Item...)
		if i%100 != 0 {
			continue
		}
		got, err := ours.Encode(nil, page)
		if err != nil {
			t.Fatal(err)
		}
		want, err := library.Encode(nil, page)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("a page of %d bytes: %d bytes, the library's encoder gives %d", len(page), len(got), len(want))
		}
	}
}
