package object

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/sink/archive/coverage"
	"github.com/tailrace-cdc/replicator/transform"
)

// damaged reads an object that may be damaged. It returns false where that is noticed. An event
// that is yielded must be the right one all the same.
func damaged(t *testing.T, what string, b []byte, want []*transform.Event) (unnoticed bool) {
	t.Helper()
	n := 0
	for e, err := range Read(bytes.NewReader(b), int64(len(b))) {
		if err != nil {
			return false
		}
		if n >= len(want) || string(e.Data()) != string(want[n].Data()) || e.ID() != want[n].ID() ||
			e.Source != want[n].Source || e.Class != want[n].Class {
			t.Fatalf("%s: event %d is %+v", what, n, e)
		}
		n++
	}
	if n != len(want) {
		t.Fatalf("%s: %d of %d events and no error", what, n, len(want))
	}
	return true
}

func TestTruncatedObjectsAreErrors(t *testing.T) {
	events := several(200)
	formats(t, func(t *testing.T, o Options) {
		b, _ := written(t, o, events...)
		for n := 0; n < len(b); n += 1 + n/40 {
			if damaged(t, "truncated", b[:n], events) {
				t.Errorf("%d of %d bytes were taken for the object", n, len(b))
			}
			if _, _, err := Verify(bytes.NewReader(b[:n]), int64(n)); err == nil {
				t.Errorf("%d of %d bytes were verified", n, len(b))
			}
			if damaged(t, "without its beginning", b[n+1:], events) {
				t.Errorf("without %d bytes it was taken for the object", n+1)
			}
		}
	})
}

// TestFlippedBitsGiveNoWrongEvent: what a flip changes without an error is not part of an event:
// statistics, for example.
func TestFlippedBitsGiveNoWrongEvent(t *testing.T) {
	events := several(8)
	formats(t, func(t *testing.T, o Options) {
		b, f := written(t, o, events...)
		r := rand.New(rand.NewPCG(1, 2))
		noticed, flips := 0, 500
		for range flips {
			bit := r.IntN(8 * len(b))
			b[bit/8] ^= 1 << (bit % 8)
			if !damaged(t, "flipped", b, events) {
				noticed++
			}
			got, problems, err := Verify(bytes.NewReader(b), int64(len(b)))
			if err == nil && len(problems) == 0 && got.Digest != f.Digest {
				t.Fatalf("bit %d: verified with another digest", bit)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
		t.Logf("%d of %d flips noticed, object of %d bytes", noticed, flips, len(b))
		if noticed < flips/4 {
			t.Errorf("%d of %d flips were noticed", noticed, flips)
		}
	})
}

// TestHeadersOfPagesAreChecked flips each bit at the beginning and the end: what a reader allocates
// by must not be believed before its checksum is.
func TestHeadersOfPagesAreChecked(t *testing.T) {
	events := several(2)
	formats(t, func(t *testing.T, o Options) {
		b, _ := written(t, o, events...)
		for bit := range 8 * len(b) {
			// The header of a zstd frame has bits without a meaning; the frame's checksum is that
			// of its content.
			if at := bit / 8; at < len(b)-300 && (at >= 100 || o.Format == JSONLines) {
				continue
			}
			b[bit/8] ^= 1 << (bit % 8)
			if damaged(t, "header", b, events) {
				t.Errorf("bit %d of byte %d was not noticed", bit%8, bit/8)
			}
			b[bit/8] ^= 1 << (bit % 8)
		}
	})
}

// FuzzRead: any bytes give an error or the events that they hold, and no panic.
func FuzzRead(f *testing.F) {
	events := several(3)
	for _, format := range []Format{Parquet, JSONLines} {
		b, _ := written(f, Options{Format: format}, events...)
		f.Add(b)
	}
	f.Fuzz(func(_ *testing.T, b []byte) {
		for _, err := range Read(bytes.NewReader(b), int64(len(b))) {
			if err != nil {
				break
			}
		}
		_, _, _ = Verify(bytes.NewReader(b), int64(len(b)))
	})
}

func several(n int) (events []*transform.Event) {
	for i := range n {
		item := item1K(i)
		if i%7 == 3 {
			item = ""
		}
		events = append(events, expired(i, item))
	}
	return events
}

// TestVerifyFindsWhatIsWrong makes objects that Write would refuse, by a footer that is changed
// before it is written.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*Footer)
		want  string
	}{
		"digest":   {func(f *Footer) { f.Digest = strings.Repeat("0", 64) }, "digest of the events is"},
		"count":    {func(f *Footer) { f.Events++ }, "footer says 11"},
		"hour":     {func(f *Footer) { f.Part.Hour++ }, "outside of the object's hour"},
		"coverage": {func(f *Footer) { f.Coverage = coverage.Set{} }, "outside of the object's coverage"},
	} {
		t.Run(name, func(t *testing.T) {
			formats(t, func(t *testing.T, o Options) {
				b := forged(t, o, several(10), tt.spoil)
				_, problems, err := Verify(bytes.NewReader(b), int64(len(b)))
				if err != nil || !strings.Contains(strings.Join(problems, "\n"), tt.want) {
					t.Errorf("problems %q (%v), want %q", problems, err, tt.want)
				}
				if name != "digest" { // which Read does not compute
					for _, readErr := range Read(bytes.NewReader(b), int64(len(b))) {
						err = readErr
					}
					if err == nil {
						t.Error("Read found nothing")
					}
				}
			})
		})
	}
}

func TestVerifyFindsAnEventThatIsThereTwice(t *testing.T) {
	formats(t, func(t *testing.T, o Options) {
		events := several(10)
		events[3], events[4] = events[4], events[3] // out of order, but once
		b, _ := written(t, o, events...)
		if _, problems, err := Verify(bytes.NewReader(b), int64(len(b))); err != nil || len(problems) > 0 {
			t.Errorf("%v %v", problems, err)
		}
		b, _ = written(t, o, append(events, events[2])...)
		_, problems, err := Verify(bytes.NewReader(b), int64(len(b)))
		if err != nil || len(problems) != 1 || !strings.Contains(problems[0], "twice") {
			t.Errorf("%v %v", problems, err)
		}
	})
}

// forged writes an object whose footer is changed before it is written.
func forged(t *testing.T, o Options, events []*transform.Event, spoil func(*Footer)) []byte {
	t.Helper()
	var b bytes.Buffer
	enc, err := newEncoder(&b, o)
	if err != nil {
		t.Fatal(err)
	}
	f := footer(events)
	if err := writeEvents(&spoiled{enc, spoil}, o, f, all(events)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type spoiled struct {
	encoder
	spoil func(*Footer)
}

func (s *spoiled) close(f *Footer) error {
	s.spoil(f)
	return s.encoder.close(f)
}

func TestNewerVersionIsRefused(t *testing.T) {
	formats(t, func(t *testing.T, o Options) {
		b := forged(t, o, several(1), func(f *Footer) { f.Version = Version + 1 })
		_, err := ReadFooter(bytes.NewReader(b), int64(len(b)))
		var newer *NewerVersionError
		if !errors.As(err, &newer) || newer.Need != Version+1 {
			t.Errorf("error %v", err)
		}
	})
}

// TestFooterIsReadFromTheEnd: of an object in a bucket, in one request.
func TestFooterIsReadFromTheEnd(t *testing.T) {
	formats(t, func(t *testing.T, o Options) {
		b, _ := written(t, o, several(2000)...)
		r := &counting{ReaderAt: bytes.NewReader(b)}
		if _, err := ReadFooter(r, int64(len(b))); err != nil || r.calls != 1 || r.bytes > 64<<10 {
			t.Errorf("%d bytes of %d in %d requests: %v", r.bytes, len(b), r.calls, err)
		}
	})
}

type counting struct {
	io.ReaderAt
	calls, bytes int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.calls++
	c.bytes += len(p)
	return c.ReaderAt.ReadAt(p, at)
}
