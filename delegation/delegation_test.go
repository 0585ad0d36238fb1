package delegation

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/protocol"
)

func open(id string) *Order {
	return &Order{
		Format: Format, Revision: 3, ID: id, Copy: "backfill-1", Life: 1, Pipeline: "shop", Table: "Orders", Target: "orders",
		Export: Export{URL: "s3://b/x", Digest: "00", Files: 2500, Time: 90_000, Items: 9, Bytes: 99},
		Copied: []Range{{0, 9}, {2499, 2499}}, Version: 30_000, First: true, Opened: 100_000, Tombstones: time.Hour,
		Mappings: []Mapping{{
			Table: "Orders", Schema: change.KeySchema{Partition: change.KeyAttr{Name: "pk", Type: 'S'}}, Hash: "0f",
			Kept: json.RawMessage(`{"mapping":"x"}`),
		}},
	}
}

// instant is a moment on two clocks that agree.
func instant(d time.Duration) protocol.Instant {
	return protocol.Instant{Wall: time.UnixMilli(1_800_000_000_000).Add(d), Mono: time.Hour + d}
}

// TestLeaseOnAnOrder: each case is a history of readings, and what is permitted at the end.
func TestLeaseOnAnOrder(t *testing.T) {
	const s = time.Second
	type reading struct {
		at   time.Duration
		edit func(*Seen)
	}
	seen := func(date change.Millis, edit func(*Seen)) func(*Seen) {
		return func(x *Seen) {
			x.Beat.Date = date
			if edit != nil {
				edit(x)
			}
		}
	}
	first := reading{-time.Second, seen(1, nil)} // an earlier date
	good := func(at time.Duration, date change.Millis) reading { return reading{at, seen(date, nil)} }
	bad := func(edit func(*Seen)) []reading {
		return []reading{first, good(0, 1000), {15 * s, seen(16_000, edit)}, good(30*s, 31_000)}
	}
	for name, x := range map[string]struct {
		readings []reading
		at       time.Duration
		want     Verdict
	}{
		"before a reading":     {nil, 0, Unread},
		"after two readings":   {[]reading{first, good(0, 1000)}, 59 * s, Writes},
		"after one":            {[]reading{good(0, 1000)}, s, Silent},
		"an old date":          {[]reading{good(0, 1000), good(15*s, 1000)}, 16 * s, Silent},
		"too long after it":    {[]reading{first, good(0, 1000)}, 60 * s, Unread},
		"read again":           {[]reading{first, good(0, 1000), good(90*s, 2000)}, 91 * s, Writes},
		"closed":               {bad(func(x *Seen) { x.Order.Closed = 1 }), 31 * s, Closed},
		"no order":             {bad(func(x *Seen) { x.Order = nil }), 31 * s, Closed},
		"another order":        {bad(func(x *Seen) { x.Order.ID = "other" }), 31 * s, Closed},
		"another life":         {bad(func(x *Seen) { x.Life++ }), 31 * s, Closed},
		"fenced or recovering": {bad(func(x *Seen) { x.Held = true }), 31 * s, Closed},
		"no beat":              {[]reading{{0, func(x *Seen) { x.Beat = nil }}}, s, Silent},
		"beats of another order": {[]reading{
			{-time.Second, seen(1, func(x *Seen) { x.Beat.Order = "other" })},
			{0, seen(1000, func(x *Seen) { x.Beat.Order = "other" })},
		}, s, Silent},
		"beats that stand still": {[]reading{first, good(0, 1000), good(280*s, 1000)}, 300 * s, Silent},
		"beats that move again":  {[]reading{first, good(0, 1000), good(390*s, 1000), good(400*s, 2000)}, 401 * s, Writes},
		"the first after a week": {[]reading{first, good(0, 1000), good(168*3600*s, 2000)}, 168*3600*s + s, Silent},
		"lag":                    {[]reading{first, {0, seen(1000, func(x *Seen) { x.Beat.Lag = MostLag + 1 })}}, s, Waits},
		"paused":                 {[]reading{first, {0, seen(1000, func(x *Seen) { x.Beat.Paused = true })}}, s, Waits},
		"paused no more": {
			[]reading{first, {0, seen(1000, func(x *Seen) { x.Beat.Paused = true })}, good(15*s, 2000)}, 16 * s, Writes,
		},
	} {
		l := NewLease(open("o.1"))
		for _, r := range x.readings {
			v := Seen{Order: open("o.1"), Beat: &Beat{Order: "o.1"}, Life: 1}
			r.edit(&v)
			l.Note(instant(r.at), v)
		}
		if got := l.Judge(instant(x.at)); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// TestEitherClockEndsALease: the monotonic clock stands still while a machine is suspended, and the
// wall clock may be set back.
func TestEitherClockEndsALease(t *testing.T) {
	l := NewLease(open("o.1"))
	if l.Date(instant(0)) != 0 || l.ReadAfter() >= ReadEvery {
		t.Errorf("before a reading: date %d, the next in %s", l.Date(instant(0)), l.ReadAfter())
	}
	for _, date := range []change.Millis{4000, 5000} {
		l.Note(instant(0), Seen{Order: open("o.1"), Beat: &Beat{Order: "o.1", Date: date}, Life: 1})
	}
	if l.ReadAfter() != ReadEvery {
		t.Errorf("it is read again in %s", l.ReadAfter())
	}
	for name, now := range map[string]protocol.Instant{
		"suspended":       {Wall: instant(time.Hour).Wall, Mono: instant(time.Second).Mono},
		"wall clock back": {Wall: instant(-time.Hour).Wall, Mono: instant(time.Hour).Mono},
	} {
		if v := l.Judge(now); v.Permits() {
			t.Errorf("%s: %s", name, v)
		}
	}
	if got := l.Date(instant(40 * time.Second)); got != 45_000 {
		t.Errorf("the date is %d", got)
	}
}

// TestLeaseIsOverBeforeTheOrderCountsAsClosed also for the attempt of a call that was sent last.
func TestLeaseIsOverBeforeTheOrderCountsAsClosed(t *testing.T) {
	const attempt = 10 * time.Second
	if LeaseAge+attempt >= CloseWait || ReadEvery+attempt >= LeaseAge || BeatEvery+ReadEvery >= LongestSilence {
		t.Error("the times do not fit")
	}
}

// TestOrderThatIsClosedOpensNoMore, and one that is closed before it was stored is never opened: an
// opening that arrives late finds another value than the one that it replaces.
func TestOrderThatIsClosedOpensNoMore(t *testing.T) {
	closed := Closing(open("o.1"), "o.1", 1, CloseDone, 7)
	if closed == nil || closed.Open() || closed.Reason != CloseDone || closed.Revision != 7 || closed.Export.Files == 0 {
		t.Fatalf("%+v", closed)
	}
	if again := Closing(closed, "o.1", 1, CloseCancel, 8); again != nil {
		t.Errorf("closed twice: %+v", again)
	}
	instead := Closing(open("o.1"), "o.2", 1, CloseCancel, 2)
	if instead == nil || instead.ID != "o.2" || instead.Open() || instead.Revision != 4 {
		t.Errorf("in place of another: %+v", instead)
	}
	if first := Closing(nil, "o.2", 1, CloseCancel, 0); first == nil || first.Open() || first.Revision != 1 {
		t.Errorf("where there is none: %+v", first)
	}
	earlier := open("o.0")
	earlier.Life = 0
	for name, x := range map[string]struct {
		have *Order
		want Opening
	}{
		"none":                 {nil, OpensNew},
		"the same":             {open("o.1"), IsOpen},
		"the same, closed":     {closed, WasClosed},
		"another":              {open("o.0"), AnotherOpen},
		"another, closed":      {Closing(open("o.0"), "o.0", 1, CloseDone, 7), OpensNew},
		"another, of old life": {earlier, OpensNew},
	} {
		if got := JudgeOpening(x.have, open("o.1")); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// TestStoredValues come back as they were, and those of a later build are refused (Rule 11).
func TestStoredValues(t *testing.T) {
	o := open("o.1")
	check := func(got any, err error, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	text, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeOrder(text)
	check(back, err, o)
	beat := Beat{Format: Format, Order: "o.1", Date: 3, Lag: 4, Paused: true}
	text, _ = beat.Encode()
	backBeat, err := DecodeBeat(text)
	check(backBeat, err, &beat)
	mark := FileMark{Format: Format, Order: "o.1", Items: 1, Bytes: 2, Rows: 3, Skipped: 4, HandedBack: []int64{5}}
	text, _ = mark.Encode()
	backMark, err := DecodeFileMark(text)
	check(backMark, err, &mark)
	if !backMark.Of("o.1") || backMark.Of("o.2") || (*FileMark)(nil).Of("") {
		t.Error("a mark counts for another order")
	}

	_, ofOrder := DecodeOrder([]byte(`{"format":2}`))
	_, ofBeat := DecodeBeat([]byte(`{"format":2}`))
	_, ofMark := DecodeFileMark([]byte(`{"format":2}`))
	for _, err := range []error{ofOrder, ofBeat, ofMark} {
		if newer := (*NewerFormatError)(nil); !errors.As(err, &newer) || !strings.Contains(err.Error(), "format 2") {
			t.Errorf("of a later build: %v", err)
		}
	}
	_, ofOrder = DecodeOrder([]byte(`{`))
	_, ofBeat = DecodeBeat([]byte(`{`))
	_, ofMark = DecodeFileMark([]byte(`{`))
	for _, err := range []error{ofOrder, ofBeat, ofMark} {
		if err == nil {
			t.Error("broken, and read")
		}
	}
}

// TestFilesOfAnOrder: which are to be copied, and in which row each mark is.
func TestFilesOfAnOrder(t *testing.T) {
	o := open(ID("backfill-1", 77))
	if o.ID != "backfill-1.77" {
		t.Error(o.ID)
	}
	for file, want := range map[int]bool{-1: false, 0: false, 9: false, 10: true, 2498: true, 2499: false, 2500: false} {
		if o.Needs(file) != want {
			t.Errorf("file %d: %t", file, !want)
		}
	}
	if RowOf(999) != 0 || RowOf(1000) != 1 || Rows(0) != 0 || Rows(1000) != 1 || Rows(1001) != 2 {
		t.Error("rows of marks")
	}
}
