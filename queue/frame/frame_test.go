package frame

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/queue/internal/testpage"
)

type seen struct {
	Seq, Keys, New, Old, Shard string
	Version                    int64
}

func unpacked(t rapid.TB, frames []Packed) (heads []checkpoint.PageHead, changes []seen) {
	t.Helper()
	var buf []byte
	for _, f := range frames {
		heads = append(heads, f.Body.Pages...)
		var err error
		buf, err = Unpack(&checkpoint.Entry{Kind: checkpoint.KindFrame, Body: f.Body, Data: f.Data}, buf,
			func(p *checkpoint.PageHead, c *change.Change) error {
				changes = append(changes, seen{string(c.SequenceNumber), string(c.Keys), string(c.New), string(c.Old),
					p.Feed.Shard, int64(c.Version)})
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	return heads, changes
}

func recordsOf(pages []*change.Page) (changes []seen) {
	for _, p := range pages {
		for _, r := range p.Records {
			changes = append(changes, seen{string(r.SequenceNumber), string(r.Keys), string(r.New), string(r.Old),
				p.Feed.Shard, int64(r.Version)})
		}
	}
	return changes
}

// For any pages, Unpack returns the records that were packed, every message fits, the parts of a
// page join without a gap, and only the last part is done.
func TestUnpackReturnsWhatWasPacked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var pages []*change.Page
		var pos change.Position
		clock := int64(0)
		for range rapid.IntRange(0, 6).Draw(rt, "pages") {
			p := testpage.After(t, pos, change.Version(clock), rapid.IntRange(0, 40).Draw(rt, "records"),
				rapid.SampledFrom([]int{0, 10, 900}).Draw(rt, "size"))
			p.Done = rapid.Bool().Draw(rt, "done")
			pages, pos, clock = append(pages, p), p.To, int64(p.Clock)
		}
		max := rapid.IntRange(8<<10, 64<<10).Draw(rt, "max payload")
		frames, err := Pack(pages, max)
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range frames {
			msg, err := checkpoint.Encode(nil, &checkpoint.Entry{Kind: checkpoint.KindFrame, Body: f.Body, Data: f.Data})
			if err != nil || len(msg)+512 > max {
				rt.Fatalf("message of %d bytes, limit %d (%v)", len(msg), max, err)
			}
		}
		heads, changes := unpacked(rt, frames)
		if d := cmp.Diff(recordsOf(pages), changes); d != "" {
			rt.Fatal(d)
		}
		checkHeads(rt, pages, heads)
	})
}

func checkHeads(t rapid.TB, pages []*change.Page, heads []checkpoint.PageHead) {
	t.Helper()
	for _, p := range pages {
		pos, clock, n := p.From, p.ClockFrom, 0
		for {
			if len(heads) == 0 {
				t.Fatal("parts are missing")
			}
			h := heads[0]
			heads = heads[1:]
			if h.From != pos || h.ClockFrom != clock {
				t.Fatalf("part from %v %d, want %v %d", h.From, h.ClockFrom, pos, clock)
			}
			pos, clock, n = h.To, h.Clock, n+h.Records
			if n == len(p.Records) {
				if h.Done != p.Done || pos != p.To || clock != p.Clock {
					t.Fatalf("last part ends with %v %d %v, page with %v %d %v", pos, clock, h.Done, p.To, p.Clock, p.Done)
				}
				break
			}
			if h.Done {
				t.Fatal("done before the last part")
			}
		}
	}
	if len(heads) > 0 {
		t.Fatalf("%d parts too many", len(heads))
	}
}

func TestPageLargerThanAFrameIsSplit(t *testing.T) {
	p := testpage.After(t, change.Position{}, 0, 6000, 500) // attack 27: 8 MB of JSON
	p.Done = true
	frames := mustPack(t, 8<<20, p)
	if len(frames) < 2 {
		t.Fatalf("%d frames of %d bytes", len(frames), p.Bytes)
	}
	heads, changes := unpacked(t, frames)
	checkHeads(t, []*change.Page{p}, heads)
	if len(changes) != 6000 {
		t.Fatalf("%d records", len(changes))
	}
}

func TestRecordLargerThanAFrameGoesAlone(t *testing.T) {
	p := testpage.After(t, change.Position{}, 0, 3, 10)
	big := testpage.After(t, p.To, p.Clock, 1, 2600<<10) // two images of 2.6 MB, escapes and base64 blow them up
	frames := mustPack(t, 8<<20, p, big)
	if _, changes := unpacked(t, frames); len(changes) != 4 || len(frames) != 2 {
		t.Fatalf("%d changes in %d frames", len(changes), len(frames))
	}
}

func TestRecordThatNeverFitsIsNamed(t *testing.T) {
	p := testpage.After(t, change.Position{}, 0, 3, 40<<10)
	_, err := Pack([]*change.Page{p}, 16<<10)
	var large *TooLargeError
	if !errors.As(err, &large) || !errors.Is(err, ErrTooLarge) || large.Seq != testpage.Sequence(1) {
		t.Fatalf("%v", err)
	}
}

func FuzzUnpack(f *testing.F) {
	p := testpage.After(f, change.Position{}, 0, 3, 20)
	frames := mustPack(f, 8<<20, p)
	f.Add(frames[0].Data, 0, len(frames[0].Data)*2)
	f.Fuzz(func(t *testing.T, data []byte, offset, length int) {
		body := &checkpoint.Frame{Pages: []checkpoint.PageHead{{Records: 1, Offset: offset, Length: length}}}
		_, _ = Unpack(&checkpoint.Entry{Body: body, Data: data}, nil,
			func(*checkpoint.PageHead, *change.Change) error { return nil })
	})
}

func mustPack(t testing.TB, maxPayload int, pages ...*change.Page) []Packed {
	t.Helper()
	frames, err := Pack(pages, maxPayload)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

func TestFramesCountWhatExpired(t *testing.T) {
	p := testpage.After(t, change.Position{}, 0, 300, 50)
	for i := range p.Records {
		p.Records[i].TTL, p.Records[i].Created = i%3 == 0, change.Millis(i%2)*3_600_000
	}
	frames := mustPack(t, 8<<20, p)
	total := int64(0)
	for _, f := range frames {
		for _, h := range f.Body.Pages {
			total += h.Expired[0] + h.Expired[1]
		}
	}
	if total != 100 {
		t.Errorf("%d of 100 deletions are counted", total)
	}
}

// Pages that fit together by Size become one frame, which is what the write loop counts with.
func TestPagesThatFitAreOneFrame(t *testing.T) {
	const payload = 64 << 10
	var pages []*change.Page
	var pos change.Position
	clock := change.Version(0)
	for size := 0; ; {
		p := testpage.After(t, pos, clock, 5, 900)
		if size += Size(p); size > Room(payload) {
			if frames := mustPack(t, payload, append(pages, p)...); len(frames) != 2 {
				t.Errorf("%d frames of what does not fit into one", len(frames))
			}
			break
		}
		pages, pos, clock = append(pages, p), p.To, p.Clock
	}
	if frames := mustPack(t, payload, pages...); len(frames) != 1 {
		t.Errorf("%d frames of %d pages that fit into one", len(frames), len(pages))
	}
}
