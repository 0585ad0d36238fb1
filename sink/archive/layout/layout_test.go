package layout

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tailrace-cdc/replicator/transform"
)

func TestNamesAreReadBack(t *testing.T) {
	at := time.Date(2026, 5, 4, 23, 59, 59, 0, time.FixedZone("", -3600)) // 5 May, 00:59 UTC
	p := Part{Table: "My.Table-1_x", Class: transform.ClassTTL, Hour: HourOf(at)}
	name := p.Object(1777939200000001, 1777939200000077, "0123456789abcdef", "parquet")
	want := "tr_table=My.Table-1_x/tr_class=ttl/tr_dt=2026-05-05/tr_hr=00/" +
		"1777939200000001-1777939200000077-01234567.parquet"
	if name != want {
		t.Errorf("name %s\nwant %s", name, want)
	}
	if got, ok := ParseObject(name); !ok || got != p {
		t.Errorf("read back as %+v, %v", got, ok)
	}
	for _, bad := range []string{
		"", "a/b", "tr_table=T/tr_class=ttl/tr_dt=2026-05-05/tr_hr=00/",
		"tr_table=T/tr_class=ttl/tr_dt=2026-05-05/tr_hr=24/x",
		"tr_table=T/tr_class=ttl/tr_dt=2026-5-05/tr_hr=00/x", "tr_table=T/tr_class=ttl/tr_dt=2026-05-05/tr_hr=0/x",
		"_tailrace/T/manifest-000000000001.json", "tr_table=/tr_class=ttl/tr_dt=2026-05-05/tr_hr=00/x",
	} {
		if p, ok := ParseObject(bad); ok {
			t.Errorf("%q was read as an object of %+v", bad, p)
		}
	}
	manifest := Manifest("T", 42)
	if n, ok := ParseManifest("T", manifest); !ok || n != 42 || manifest != "_tailrace/T/manifest-000000000042.json" {
		t.Errorf("manifest %s is read back as %d, %v", manifest, n, ok)
	}
	for _, bad := range []string{
		"_tailrace/T/manifest-42.json", "_tailrace/U/manifest-000000000042.json", "_tailrace/T/life-1",
	} {
		if n, ok := ParseManifest("T", bad); ok {
			t.Errorf("%q was read as manifest %d", bad, n)
		}
	}
	var h Hour
	err := h.UnmarshalText([]byte("2026-05-05T00"))
	if err != nil || h != p.Hour || !h.End().Equal(h.Time().Add(time.Hour)) {
		t.Errorf("hour %v, %v", h, err)
	}
}

// TestAnyTableIsReadBack: names that stores take for something else are written in another way, and
// no two alike.
func TestAnyTableIsReadBack(t *testing.T) {
	tables := map[string]string{} // by prefix
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"_", "__0x", "0x", ".", "-", "a", "Z9"}), 1, 8).Draw(t, "words")
		p := Part{Table: strings.Join(words, ""), Class: transform.ClassTTL, Hour: 494_000}
		name := p.Object(1, 2, "01234567", "parquet")
		if got, ok := ParseObject(name); !ok || got != p {
			t.Errorf("%s is read back as %+v, %v", name, got, ok)
		}
		if n, ok := ParseManifest(p.Table, Manifest(p.Table, 7)); !ok || n != 7 {
			t.Errorf("manifest %s is read back as %d, %v", Manifest(p.Table, 7), n, ok)
		}
		for _, name := range []string{name, Manifest(p.Table, 7), Life(p.Table, 7)} {
			if strings.Contains(name, "__0x") || strings.Contains(name, "./") {
				t.Errorf("name %s", name)
			}
		}
		prefix := Table(p.Table)
		if other, ok := tables[prefix]; ok && other != p.Table {
			t.Errorf("%s is the prefix of %s and %s", prefix, other, p.Table)
		}
		tables[prefix] = p.Table
	})
	if _, ok := ParseObject("tr_table=a!b/tr_class=ttl/tr_dt=2026-05-05/tr_hr=00/x"); ok {
		t.Error("a name that is not written so was read")
	}
}
