package exchange

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// some are exchanges of all kinds.
func some() []*Exchange {
	at := time.Unix(1_790_000_000, 123_456_789)
	return []*Exchange{
		{
			Target: "DynamoDB_20120810.GetItem", Request: Body{Bytes: []byte(`{"TableName":"Orders"}`), Size: 22},
			Answer: Body{Bytes: []byte("\x1f\x8b"), Encoding: "gzip", Size: 2}, Status: 200, Begin: at,
			Duration: 3 * time.Millisecond,
		},
		{Target: "x", Request: Body{Size: 16 << 20}, Answer: Body{Bytes: []byte{}}, Begin: at, Cut: true},
		{Begin: at},
		{Request: Body{Bytes: bytes.Repeat([]byte("x"), MaxBody), Size: MaxBody}, Begin: at},
	}
}

// whole compares bodies as a whole: byte by byte 1 MiB takes minutes with the race detector.
var whole = cmp.Comparer(func(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) })

func TestExchangesPassAPipe(t *testing.T) {
	var pipe []byte
	for _, x := range some() {
		pipe = Append(pipe, x)
	}
	r := NewReader(bytes.NewReader(pipe))
	for i, want := range some() {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, whole); diff != "" {
			t.Errorf("exchange %d (-want +got):\n%s", i, diff)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last frame: %v", err)
	}
}

// TestFramesAreBounded: a reader accepts whatever Append writes.
func TestFramesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 2*MaxBody)
	x := &Exchange{Target: long, Status: 1 << 30, Begin: time.Unix(1<<32, 0), Duration: 1 << 62, Cut: true}
	for _, b := range []*Body{&x.Request, &x.Answer} {
		*b = Body{Bytes: []byte(long)[:MaxBody], Encoding: long, Size: 1 << 62}
	}
	if _, err := NewReader(bytes.NewReader(Append(nil, x))).Next(); err != nil {
		t.Errorf("the longest frame: %v", err)
	}
	x.Answer.Bytes = []byte(long)
	got, err := NewReader(bytes.NewReader(Append(nil, x))).Next()
	if err != nil || got.Answer.Bytes != nil || got.Answer.Whole() || !got.Request.Whole() && got.Request.Bytes == nil {
		t.Errorf("a body that is too long: %v", err)
	}
}

// TestDamagedFrameIsNamed changes each byte of the second frame, and cuts the pipe in each place.
func TestDamagedFrameIsNamed(t *testing.T) {
	first, second := Append(nil, some()[1]), Append(nil, some()[0])
	pipe := append(bytes.Clone(first), second...)
	read := func(pipe []byte) error {
		r := NewReader(bytes.NewReader(pipe))
		if _, err := r.Next(); err != nil {
			t.Fatalf("the frame before it: %v", err)
		}
		_, err := r.Next()
		return err
	}
	for i := range second {
		damaged := bytes.Clone(pipe)
		damaged[len(first)+i] ^= 0x40
		var bad *FrameError
		if err := read(damaged); !errors.As(err, &bad) || bad.Number != 2 || !strings.HasPrefix(err.Error(), "frame 2: ") {
			t.Errorf("byte %d of the frame is changed: %v", i, err)
		}
		if err := read(pipe[:len(first)+i]); i > 0 && !errors.As(err, &bad) || i == 0 && !errors.Is(err, io.EOF) {
			t.Errorf("the pipe ends behind %d bytes of the frame: %v", i, err)
		}
	}
}

// Attack 105: one that is longer than any is not waited for, and bytes behind the
// content are no part of it.
func TestFrameWithAWrongLength(t *testing.T) {
	frame := Append(nil, some()[0])
	long := binary.BigEndian.AppendUint32([]byte{version}, maxFrame+1)
	more := append(bytes.Clone(frame), 0)
	binary.BigEndian.PutUint32(more[1:], uint32(len(more)-prefix))
	binary.BigEndian.PutUint32(more[5:], crc32.Checksum(more[prefix:], castagnoli))
	for want, pipe := range map[string][]byte{"are more than": append(long, 0, 0, 0, 0), "1 bytes follow it": more} {
		if _, err := NewReader(bytes.NewReader(pipe)).Next(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func FuzzFrames(f *testing.F) {
	for _, x := range some()[:3] {
		f.Add(Append(nil, x)[prefix:])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		x, err := decode(content)
		if err != nil {
			return
		}
		got, err := NewReader(bytes.NewReader(Append(nil, x))).Next()
		if err != nil {
			t.Fatalf("%+v cannot be read back: %v", x, err)
		}
		texts := len(x.Target) + len(x.Request.Encoding) + len(x.Answer.Encoding)
		if diff := cmp.Diff(x, got, whole); diff != "" && texts <= MaxText {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
