package change

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// stamped makes the records of a page as the source hands them on.
func stamped(t *rapid.T) []Record {
	recs, _, err := ScanPage([]byte(notationOf(t).page(rapid.SliceOfN(genEvent(), 0, 6).Draw(t, "events"), "")), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range recs {
		recs[i].Version = Version(rapid.Int64().Draw(t, "version"))
		recs[i].KeyHash = rapid.Uint64().Draw(t, "hash")
	}
	return recs
}

func changesOf(recs []Record, feed Feed) (all []Change) {
	for _, r := range recs {
		all = append(all, Change{
			Op: r.Op, TTL: r.TTL, Version: r.Version, Created: r.Created, SequenceNumber: SequenceNumber(r.SequenceNumber),
			Feed:    feed,
			KeyHash: r.KeyHash, Raw: r.Raw, Keys: r.Keys, New: r.New, Old: r.Old,
		})
	}
	return all
}

func collect(b []byte, feed Feed) (all []Change, err error) {
	err = DecodeRecords(b, feed, func(c *Change) error {
		all = append(all, *c)
		return nil
	})
	return all, err
}

func TestRecordsComeOutOfTheLogAsTheyWentIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs, feed := stamped(t), Feed{"arn", "shard"}
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "prefix")
		b := AppendRecords(slices.Clone(prefix), recs)
		got, err := collect(b[len(prefix):], feed)
		if d := cmp.Diff(changesOf(recs, feed), got); d != "" || err != nil {
			t.Fatal(err, d)
		}
	})
}

func TestCutOrPaddedRecordsAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := AppendRecords(nil, stamped(t))
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		if _, err := collect(b[:cut], Feed{}); err == nil {
			t.Fatalf("cut at %d of %d is taken", cut, len(b))
		}
		if _, err := collect(append(b, 0), Feed{}); err == nil {
			t.Fatal("a byte too many is taken")
		}
	})
}

// Whatever a broken disk makes of a frame, its reader gets an error or other bytes, never a crash.
func TestBrokenRecordsDoNotCrash(t *testing.T) {
	r, err := ScanRecord([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	whole := AppendRecords(nil, []Record{r, r})
	for i := range whole {
		for _, flip := range []byte{0x01, 0x40, 0x80, 0xff} {
			b := slices.Clone(whole)
			b[i] ^= flip
			_, _ = collect(b, Feed{})
		}
	}
}

func TestNewerRecordFormatIsRefused(t *testing.T) {
	b := AppendRecords(nil, nil)
	b[0] = recordsFormat + 1
	if _, err := collect(b, Feed{}); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Fatalf("error %v", err)
	}
	b[0] = 0
	if _, err := collect(b, Feed{}); err == nil {
		t.Fatal("format 0 is taken")
	}
}

func TestErrorOfTheReaderEndsDecoding(t *testing.T) {
	r, err := ScanRecord([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	stop, n := errors.New("stop"), 0
	err = DecodeRecords(AppendRecords(nil, []Record{r, r}), Feed{}, func(*Change) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Fatalf("error %v after %d", err, n)
	}
}

// Stored nonsense could never be read again: a caller that mixes records up must not get that far.
func TestImageOfAnotherRecordIsNotStored(t *testing.T) {
	a, _ := ScanRecord([]byte(minimal))
	b, _ := ScanRecord([]byte(minimal + " "))
	a.Keys = b.Keys
	defer func() {
		if recover() == nil {
			t.Error("keys outside of their record are stored")
		}
	}()
	AppendRecords(nil, []Record{a})
}

func FuzzDecodeRecords(f *testing.F) {
	for i := range 10 {
		f.Add(rapid.Custom(func(t *rapid.T) []byte { return AppendRecords(nil, stamped(t)) }).Example(i))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = DecodeRecords(b, Feed{}, func(c *Change) error {
			if len(c.Raw) > len(b) || len(c.New) > len(c.Raw) || len(c.Keys) > len(c.Raw) {
				t.Fatal("a part is larger than the whole")
			}
			return nil
		})
	})
}

// Rule 5: versions grow strictly, stay within a burst's length of the event time, and replays give
// the same.
func TestClockGrowsAndReplaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		created := rapid.SliceOf(rapid.Int64Range(0, 50_000)).Draw(t, "created")
		start := Clock(rapid.Int64Range(0, 30_000).Draw(t, "start"))
		a, b := start, start
		newest := int64(start)
		for i, c := range created {
			before := int64(a)
			v := a.Next(Millis(c))
			if v <= Version(before) || v != Version(a) || v != b.Next(Millis(c)) {
				t.Fatalf("version %d after %d", v, before)
			}
			if newest = max(newest, c-c%1000); v < Version(c-c%1000) || v > Version(newest+int64(i)+1) {
				t.Fatalf("version %d of record %d created at %d, newest second %d", v, i, c, newest)
			}
			if i == len(created)/2 { // a restart in between: the clock is in the state
				b = Clock(int64(b))
			}
		}
	})
}
